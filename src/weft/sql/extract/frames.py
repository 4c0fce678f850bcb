"""A DataFrame as a script builds it, step by step, up to a window aggregation and what is done with it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.sql.extract.columns import Columns, quoted
from weft.sql.extract.extracted import CannotImport
from weft.sql.extract.names import Names

SAME_ROWS = {"cache", "persist", "unpersist", "repartition", "coalesce", "hint", "checkpoint", "alias"}
UNORDERED = {"orderBy", "sort"}
COUNTED = {"count", "sum", "avg", "mean", "max", "min"}

ONE_SELECT = "weft serves one SELECT over one stream"

IN_THE_WAY = {
    "join": "a join needs a second stream or table",
    "crossJoin": "a join needs a second stream or table",
    "union": "rows of two DataFrames come together",
    "unionByName": "rows of two DataFrames come together",
    "distinct": "rows are made distinct before they are aggregated",
    "dropDuplicates": "rows are made distinct before they are aggregated",
    "dropDuplicatesWithinWatermark": "rows are made distinct before they are aggregated",
    "pivot": "a pivot has columns that depend on the rows",
    "rollup": "rollup asks for several groupings in one",
    "cube": "cube asks for several groupings in one",
    "applyInPandas": "Python code is run over the groups",
    "transform": "Python code makes the DataFrame",
    "limit": "limit takes any rows",
}


@dataclass(frozen=True)
class Frame:
    """`outputs` are None before the aggregation, and (name, SQL) after; the name is None if Spark chooses it."""

    source: str
    derived: Mapping[str, str] = field(default_factory=dict)
    where: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    window: str | None = None
    event_time: str = "ts"
    outputs: tuple[tuple[str | None, str], ...] | None = None
    having: tuple[str, ...] = ()
    line: int = 0
    notes: tuple[str, ...] = ()

    @property
    def aggregated(self) -> bool:
        return self.outputs is not None

    def sql(self) -> str:
        items = [sql if name is None or name == sql else f"{sql} AS {quoted(name)}" for name, sql in self.outputs or ()]
        where = f"\nWHERE {_all(self.where)}" if self.where else ""
        having = f"\nHAVING {_all(self.having)}" if self.having else ""
        groups = ", ".join([*(sql for _, sql in self.keys), str(self.window)])
        return f"SELECT {', '.join(map(bare, items))}\nFROM {self.source}{where}\nGROUP BY {groups}{having}"


@dataclass(frozen=True)
class Grouped:
    """Between groupBy and agg; `order` has keys and window in the order of the script, the window as None."""

    frame: Frame
    order: tuple[str | None, ...]


def bare(sql: str) -> str:
    """Without enclosing parentheses.

    >>> bare("(a > 1)"), bare("(a) + (b)"), bare("('(' = x)")
    ('a > 1', '(a) + (b)', "('(' = x)")
    """
    if not (sql.startswith("(") and sql.endswith(")")) or "'" in sql:
        return sql
    depth = 0
    for place, sign in enumerate(sql):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and place < len(sql) - 1:
            return sql
    return sql[1:-1]


def _all(conditions: tuple[str, ...]) -> str:
    """The conjunction; each condition is in parentheses if there are several."""
    return bare(conditions[0]) if len(conditions) == 1 else " AND ".join(conditions)


def step(names: Names, frame: Frame | Grouped, method: str, node: ast.Call) -> Frame | Grouped:
    """The DataFrame after one more call."""
    if isinstance(frame, Grouped):
        return _aggregate(names, frame, method, node)
    if method in IN_THE_WAY:
        raise CannotImport(node.lineno, f".{method}(...): {IN_THE_WAY[method]}, and {ONE_SELECT}")
    if method in SAME_ROWS:
        return frame
    return _after(names, frame, method, node) if frame.aggregated else _before(names, frame, method, node)


def _before(names: Names, frame: Frame, method: str, node: ast.Call) -> Frame | Grouped:
    columns, args = Columns(names, frame.derived), _flat(node.args)
    match method:
        case "filter" | "where":
            return replace(frame, where=(*frame.where, _condition(columns, args[0])))
        case "withWatermark":
            time, delay = (names.constant(a) for a in args)
            return replace(frame, notes=(*frame.notes, f"run it with --event-time {time} --watermark '{delay}'"))
        case "withColumn":
            return replace(frame, derived={**frame.derived, columns.text(args[0]): columns.sql(args[1])})
        case "withColumnRenamed":
            old, new = (columns.text(a) for a in args)
            return replace(frame, derived={**frame.derived, new: columns.column(old)})
        case "select":
            made = {alias: sql for sql, alias in map(columns.named, args) if alias is not None}
            return replace(frame, derived={**frame.derived, **made})
        case "drop":
            return frame
        case "groupBy" | "groupby":
            return _group(names, frame, args, node.lineno)
    raise CannotImport(node.lineno, f".{method}(...) before the aggregation is not known here")


def _condition(columns: Columns, node: ast.expr) -> str:
    text = columns.names.constant(node)
    return columns.of_text(node, text) if isinstance(text, str) else columns.sql(node)


def _group(names: Names, frame: Frame, args: list[ast.expr], line: int) -> Grouped:
    columns = Columns(names, frame.derived)
    keys: list[tuple[str, str]] = []
    order: list[str | None] = []
    for arg in args:
        inner = arg
        while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "alias":
            inner = inner.func.value
        if isinstance(inner, ast.Call) and names.function(inner.func) in ("window", "session_window"):
            if names.function(inner.func) == "session_window":
                raise CannotImport(arg.lineno, "session_window has windows that depend on the rows")
            if inner is not arg:
                raise CannotImport(arg.lineno, "the window has another name; call it window, and rename it in a select")
            time, window = _window(names, columns, inner)
            frame = replace(frame, window=window, event_time=time)
            order.append(None)
            continue
        sql, alias = columns.named(arg)
        name = alias or _name(arg) or sql
        keys.append((name, sql))
        order.append(name)
    if frame.window is None:
        raise CannotImport(line, "this groupBy has no window(...)")
    return Grouped(replace(frame, keys=tuple(keys), line=line), tuple(order))


def _window(names: Names, columns: Columns, node: ast.Call) -> tuple[str, str]:
    arguments: dict[str, ast.expr] = dict(
        zip(("timeColumn", "windowDuration", "slideDuration", "startTime"), node.args)
    )
    arguments |= {k.arg: k.value for k in node.keywords if k.arg}
    time = columns.named(arguments["timeColumn"])[0]
    parts = []
    for name in ("windowDuration", "slideDuration", "startTime"):
        value = names.constant(arguments[name]) if name in arguments else None
        if name in arguments and value is None and not isinstance(arguments[name], ast.Constant):
            written = ast.unparse(arguments[name])
            raise CannotImport(node.lineno, f"the {name} of this window is {written}, which is no constant")
        parts.append(value)
    if parts[1] is None and parts[2] is not None:
        parts[1] = parts[0]
    lengths = ", ".join(f"'{p}'" for p in parts if p is not None)
    return time, f"window({time}, {lengths})"


def _aggregate(names: Names, grouped: Grouped, method: str, node: ast.Call) -> Frame:
    frame = grouped.frame
    columns = Columns(names, frame.derived)
    by_name = dict(frame.keys)
    outputs: list[tuple[str | None, str]] = [
        ("window", "window") if name is None else (name, by_name[name]) for name in grouped.order
    ]
    if method == "agg":
        outputs += [_agged(columns, arg) for arg in _flat(node.args)]
    elif method in COUNTED:
        texts = [columns.text(arg) for arg in node.args]
        function = "avg" if method == "mean" else method
        made = [(f"{function}({text})", f"{function}({columns.column(text)})") for text in texts]
        outputs += made if method != "count" else [("count", "count(*)")]
        if method != "count" and not texts:
            raise CannotImport(node.lineno, f".{method}() of all numeric columns depends on the schema; name them")
    else:
        reason = IN_THE_WAY.get(method, "only agg, count, sum, avg, max and min are known after a groupBy")
        raise CannotImport(node.lineno, f".{method}(...): {reason}")
    return replace(frame, outputs=tuple(outputs), line=node.lineno)


def _agged(columns: Columns, node: ast.expr) -> tuple[str | None, str]:
    if isinstance(node, ast.Dict):
        raise CannotImport(node.lineno, "agg({...}) with a dictionary; write F.sum('x').alias('name')")
    sql, alias = columns.named(node)
    return alias, sql


def _after(names: Names, frame: Frame, method: str, node: ast.Call) -> Frame:
    """Steps after the aggregation; columns are those of the answers."""
    outputs = list(frame.outputs or ())
    made = {name: sql for name, sql in outputs if name is not None}
    columns, args = Columns(names, made), _flat(node.args)
    match method:
        case "filter" | "where":
            return replace(frame, having=(*frame.having, _condition(columns, args[0])))
        case "select":
            chosen = []
            for arg in args:
                sql, alias = columns.named(arg)
                chosen.append((alias or _name(arg), sql))
            return replace(frame, outputs=tuple(chosen))
        case "withColumn":
            name, sql = columns.text(args[0]), columns.sql(args[1])
            kept = [(n, s) for n, s in outputs if n != name]
            positions = [i for i, (n, _) in enumerate(outputs) if n == name]
            kept.insert(positions[0] if positions else len(kept), (name, sql))
            return replace(frame, outputs=tuple(kept))
        case "withColumnRenamed":
            old, new = (columns.text(a) for a in args)
            return replace(frame, outputs=tuple((new if n == old else n, s) for n, s in outputs))
        case "drop":
            gone = {columns.text(a) for a in args}
            return replace(frame, outputs=tuple((n, s) for n, s in outputs if n not in gone))
        case _ if method in UNORDERED:
            return replace(frame, notes=(*frame.notes, f"without .{method}(...): answers on a stream have no order"))
        case "groupBy" | "groupby":
            raise CannotImport(node.lineno, f"the answers are aggregated once more, and {ONE_SELECT}")
    raise CannotImport(node.lineno, f".{method}(...) after the aggregation is not known here")


def _name(node: ast.expr) -> str | None:
    """The name that Spark gives to a column of a column: its last part."""
    match node:
        case ast.Constant(value=str(path)):
            return path.rpartition(".")[2]
        case ast.Call(func=func, args=[ast.Constant(value=str(path))]) if ast.unparse(func).endswith(("col", "column")):
            return path.rpartition(".")[2]
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Attribute(attr="getField"), args=[ast.Constant(value=str(name))]):
            return name
    return None


def _flat(args: list[ast.expr]) -> list[ast.expr]:
    """Columns may also be in lists."""
    columns: list[ast.expr] = []
    for arg in args:
        columns.extend(arg.elts if isinstance(arg, ast.List | ast.Tuple) else [arg])
    return columns
