"""PySpark code, parsed but not run: simple assignments and chains of DataFrame calls are followed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from weft.sql.extract.extracted import CannotImport
from weft.sql.extract.frames import Frame, Grouped, step
from weft.sql.extract.names import Names

READING = {"load", "table", "csv", "json", "parquet", "orc", "text", "createDataFrame", "toDF"}
UNNAMED = "stream"
"""A source of rows that has no variable name yet."""
ENDS = {"writeStream", "write", "show", "toPandas", "collect", "createOrReplaceTempView", "createTempView", "foreach"}
"""Calls that end a chain: the script uses the DataFrame as it is."""


@dataclass(frozen=True)
class Broken:
    """A DataFrame that cannot be followed from some line on."""

    line: int
    reason: str


Value = Frame | Grouped | Broken | None


@dataclass
class Aggregation:
    """A window aggregation of the script: what it is called there, and whether only another is made from it."""

    frame: Frame
    name: str | None
    line: int
    extended: bool = False
    wanted: bool = False

    @property
    def stands(self) -> bool:
        return self.wanted or not self.extended


@dataclass
class Script:
    """The window aggregations and SQL texts of a script; `broken` is what could not be followed."""

    names: Names = field(default_factory=Names)
    aggregations: list[Aggregation] = field(default_factory=list)
    texts: list[tuple[int, str, str | None]] = field(default_factory=list)
    """Line, SQL, and the variable that the result is assigned to."""
    broken: list[CannotImport] = field(default_factory=list)
    _frames: dict[str, Value] = field(default_factory=dict)
    _bound: dict[str, Aggregation] = field(default_factory=dict)

    def read(self, text: str) -> None:
        self._statements(ast.parse(text).body)

    def _statements(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            self.names.learn(node)
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self.names.own.add(node.name)
                    outer = dict(self._frames), dict(self._bound)
                    if not isinstance(node, ast.ClassDef):
                        for parameter in node.args.args:
                            self._frames.pop(parameter.arg, None)
                            self._bound.pop(parameter.arg, None)
                    self._statements(node.body)
                    self._frames, self._bound = outer
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._assign(name, value)
                case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                    self._assign(name, value)
                case ast.Return(value=value) if value is not None:
                    self._use(value, None)
                case ast.Expr(value=value):
                    self._use(value, None)
                case ast.Assign(value=value):
                    self._use(value, None)
                case _:
                    for part in ("body", "orelse", "finalbody"):
                        self._statements(getattr(node, part, []))
                    for handler in getattr(node, "handlers", []):
                        self._statements(handler.body)

    def _assign(self, name: str, value: ast.expr) -> None:
        self.names.own.add(name)
        constant = self.names.constant(value)
        if constant is not None:
            self.names.constants[name] = constant
            return
        self.names.constants.pop(name, None)
        made = self._use(value, name)
        if isinstance(made, Aggregation):
            self._bound[name], self._frames[name] = made, made.frame
        else:
            self._bound.pop(name, None)
            unnamed = isinstance(made, Frame) and made.source == UNNAMED
            self._frames[name] = Frame(source=name) if unnamed else made

    def _use(self, node: ast.expr, name: str | None) -> Aggregation | Value:
        """Follow an expression: a new aggregation, SQL texts, or uses of aggregations before it."""
        self._find_texts(node, name)
        for inner in _arguments(node):
            self._want(inner)
        chain = _until_end(node)
        if chain is not node:
            self._want(chain)
        try:
            value = self._value(chain)
        except CannotImport as stop:
            if self._has_window(chain):
                self.broken.append(stop)
            return Broken(stop.line, stop.reason)
        if isinstance(value, Frame) and value.aggregated and not isinstance(chain, ast.Name):
            made = Aggregation(value, _query_name(node, self.names) or name, value.line, wanted=chain is not node)
            self.aggregations.append(made)
            return made
        return value

    def _want(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name) and node.id in self._bound:
            self._bound[node.id].wanted = True

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name):
                return self._frames[name] if name in self._frames else Frame(source=name)
            case ast.Call(func=ast.Attribute(value=base, attr=method)):
                if _reads(node):
                    return Frame(source=self._table(node))
                before = self._value(base)
                if isinstance(before, Broken) and self._has_window(node):
                    raise CannotImport(before.line, before.reason)
                if before is None or isinstance(before, Broken):
                    return before
                if isinstance(base, ast.Name) and base.id in self._bound:
                    self._bound[base.id].extended = True
                return step(self.names, before, method, node)
        return None

    def _table(self, node: ast.Call) -> str:
        name = self.names.constant(node.args[0]) if len(node.args) == 1 else None
        is_table = isinstance(node.func, ast.Attribute) and node.func.attr == "table"
        return name if is_table and isinstance(name, str) else UNNAMED

    def _has_window(self, node: ast.expr) -> bool:
        calls = (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))
        return any(self.names.function(call.func) in ("window", "session_window") for call in calls)

    def _find_texts(self, node: ast.expr, name: str | None) -> None:
        for call in ast.walk(node):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "sql"):
                continue
            text = self.names.constant(call.args[0]) if call.args else None
            if isinstance(text, str):
                self.texts.append((call.lineno, text, name))
            elif call.args and "window" in ast.unparse(call.args[0]):
                self.broken.append(CannotImport(call.lineno, "this SQL is put together when the script runs"))


def _reads(node: ast.expr) -> bool:
    """Whether a call reads rows, such as `spark.read.parquet(...)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr=method)):
            text = ast.unparse(base)
            return method in READING and ("read" in text or "spark" in text.lower())
    return False


def _until_end(node: ast.expr) -> ast.expr:
    """The DataFrame of a chain that ends with `writeStream...start()` or the like; otherwise the chain itself."""
    inner = node
    while True:
        match inner:
            case ast.Attribute(value=base, attr=attr) if attr in ENDS:
                return base
            case ast.Call(func=ast.Attribute() as called):
                inner = called
            case ast.Attribute(value=base):
                inner = base
            case _:
                return node


def _arguments(node: ast.expr) -> Iterator[ast.expr]:
    """Expressions that are passed on as they are: to a function, in a collection, or as the result."""
    yield node
    for inner in ast.walk(node):
        match inner:
            case ast.Call(args=args, keywords=keywords):
                yield from (*args, *(keyword.value for keyword in keywords))
            case ast.Dict(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
                yield from values


def _query_name(node: ast.expr, names: Names) -> str | None:
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(attr="queryName"), args=[argument]):
                name = names.constant(argument)
                return name if isinstance(name, str) else None
    return None
