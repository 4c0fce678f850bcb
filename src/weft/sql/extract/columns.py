"""PySpark's Column expressions as Spark SQL."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.sql.extract.extracted import CannotImport
from weft.sql.extract.names import Names
from weft.sql.refuse import Refused, Source
from weft.sql.tokens import is_call, tokenize

OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.BitAnd: "AND", ast.BitOr: "OR",
    ast.Eq: "=", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip

ALL_COLUMNS = {
    "corr", "covar_samp", "covar_pop", "max_by", "min_by", "greatest", "least", "coalesce", "concat", "struct", "array",
    "hash", "xxhash64", "atan2", "pow", "power", "hypot", "nanvl", "ifnull", "nvl", "nullif", "regr_avgx",
    "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
}  # fmt: skip
"""Functions whose string arguments are all column names; for others only the first is, and the rest are values."""

VALUE_FIRST = {"date_trunc", "concat_ws", "format_string", "lit", "expr"}
"""Functions whose first string argument is a value."""

RENAMED = {
    "countDistinct": "count_distinct", "sumDistinct": "sum_distinct", "approxCountDistinct": "approx_count_distinct",
    "toDegrees": "degrees", "toRadians": "radians",
}  # fmt: skip

METHODS = {"like": "LIKE", "rlike": "RLIKE", "eqNullSafe": "<=>"}
CALLED = {"startswith": "startswith", "endswith": "endswith", "contains": "contains", "substr": "substring"}


@dataclass
class Columns:
    """Turns expressions into SQL; `derived` are columns that the script defined before, by name."""

    names: Names
    derived: Mapping[str, str] = field(default_factory=dict)

    def sql(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=value):
                return literal(node, value)
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return f"power({self.sql(left)}, {self.sql(right)})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return f"({self.sql(left)} {OPERATORS[type(op)]} {self.sql(right)})"
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
                return f"({self.sql(left)} {OPERATORS[type(op)]} {self.sql(right)})"
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return f"(NOT {self.sql(operand)})"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(- {self.sql(operand)})"
            case ast.Subscript(value=ast.Call() as column, slice=ast.Constant(value=str(name))):
                return f"{self.sql(column)}.{quoted(name)}"
            case ast.Subscript(value=ast.Name(), slice=ast.Constant(value=str(name))):
                return self.column(name)
            case ast.Attribute(value=ast.Name(), attr=name):
                return self.column(name)
            case ast.Attribute(value=ast.Call() as column, attr=name):
                return f"{self.sql(column)}.{quoted(name)}"
            case ast.Name() | ast.JoinedStr():
                constant = self.names.constant(node)
                if constant is not None:
                    return literal(node, constant)
        raise CannotImport(node.lineno, f"{ast.unparse(node)} is not an expression that can be read without running it")

    def column(self, path: str) -> str:
        first, dot, rest = path.partition(".")
        derived = self.derived.get(first)
        if derived is None:
            return ".".join(map(quoted, path.split(".")))
        return f"{derived}{dot}{rest}"

    def of_text(self, node: ast.expr, text: str) -> str:
        """SQL from a string of the script, with derived columns replaced by their expressions."""
        try:
            tokens = tokenize(Source(text))
        except Refused as error:
            raise CannotImport(node.lineno, f"{text!r}: {error.reason}") from None
        parts, at = [], 0
        for i, token in enumerate(tokens):
            after_dot = i > 0 and tokens[i - 1].text == "."
            if token.is_name and token.plain in self.derived and not after_dot and not is_call(tokens, i):
                parts += [text[at : token.start], self.derived[token.plain]]
                at = token.end
        return f"({''.join(parts)}{text[at:]})"

    def named(self, node: ast.expr) -> tuple[str, str | None]:
        """The SQL of a column, and its alias, if it ends with one."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("alias", "name"):
            name = self.names.constant(node.args[0]) if len(node.args) == 1 else None
            if isinstance(name, str):
                return self.named(node.func.value)[0], name
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.column(node.value), None
        return self.sql(node), None

    def _call(self, node: ast.Call) -> str:
        function = self.names.function(node.func)
        if function is not None:
            return self._function(node, RENAMED.get(function, function))
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        raise CannotImport(node.lineno, f"{ast.unparse(node.func)} is the script's own, which SQL does not know")

    def _function(self, node: ast.Call, name: str) -> str:
        if name in ("col", "column"):
            return self.column(self.text(node.args[0]))
        if name == "expr":
            return self.of_text(node, self.text(node.args[0]))
        if name == "lit":
            return self.sql(node.args[0])
        if name == "when":
            return f"CASE WHEN {self.sql(node.args[0])} THEN {self.sql(node.args[1])} END"
        if name in ("udf", "pandas_udf", "broadcast"):
            raise CannotImport(node.lineno, f"{name} is Python code, which SQL does not know")
        ignore = [k for k in node.keywords if k.arg in ("ignorenulls", "ignoreNulls")]
        if len(ignore) < len(node.keywords):
            raise CannotImport(node.lineno, f"{ast.unparse(node)} has arguments by name; give them by their place")
        arguments = [self._argument(name, place, a) for place, a in enumerate(node.args)]
        if name in ("first", "last") and len(arguments) == 2:
            ignore, arguments = [ast.keyword("ignorenulls", node.args[1])], arguments[:1]
        wanted = bool(ignore) and bool(self.names.constant(ignore[0].value))
        distinct = name in ("count_distinct", "sum_distinct")
        listed = f"{'DISTINCT ' if distinct else ''}{', '.join(arguments)}"
        return f"{name.removesuffix('_distinct') if distinct else name}({listed}){' IGNORE NULLS' if wanted else ''}"

    def _argument(self, function: str, place: int, node: ast.expr) -> str:
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str):
            if value == "*":
                return "*"
            is_column = (place == 0) != (function in VALUE_FIRST) if place < 2 else False
            if function in ALL_COLUMNS or is_column:
                return self.column(value)
        return self.sql(node)

    def _method(self, node: ast.Call, called: ast.Attribute) -> str:
        method, args = called.attr, node.args
        if method == "otherwise":
            return f"{self.sql(called.value).removesuffix(' END')} ELSE {self.sql(args[0])} END"
        if method == "when":
            before = self.sql(called.value).removesuffix(" END")
            return f"{before} WHEN {self.sql(args[0])} THEN {self.sql(args[1])} END"
        column = self.sql(called.value)
        match method, args:
            case (("cast" | "astype"), [kind]):
                return f"CAST({column} AS {self._type(kind)})"
            case "isNull", []:
                return f"({column} IS NULL)"
            case "isNotNull", []:
                return f"({column} IS NOT NULL)"
            case "between", [low, high]:
                return f"({column} BETWEEN {self.sql(low)} AND {self.sql(high)})"
            case "isin", _:
                several = len(args) == 1 and isinstance(args[0], ast.List | ast.Tuple | ast.Set)
                listed = args[0].elts if several else args  # type: ignore[attr-defined]
                return f"({column} IN ({', '.join(map(self.sql, listed))}))"
            case (("getField" | "getItem"), [ast.Constant(value=str(name))]):
                return f"{column}.{quoted(name)}"
            case _ if method in METHODS and len(args) == 1:
                return f"({column} {METHODS[method]} {self.sql(args[0])})"
            case _ if method in CALLED:
                return f"{CALLED[method]}({', '.join([column, *map(self.sql, args)])})"
            case (("alias" | "name"), _):
                return column
        raise CannotImport(node.lineno, f".{method}(...) of a column is not known here; write it with expr()")

    def _type(self, node: ast.expr) -> str:
        name = self.names.constant(node)
        if isinstance(name, str):
            return name
        if isinstance(node, ast.Call):  # DoubleType()
            called = ast.unparse(node.func).rpartition(".")[2]
            if called.endswith("Type") and not node.args:
                return {"IntegerType": "int", "LongType": "bigint"}.get(called, called.removesuffix("Type").lower())
        raise CannotImport(node.lineno, f"{ast.unparse(node)} is no type that can be read here; name it, as 'double'")

    def text(self, node: ast.expr) -> str:
        value = self.names.constant(node)
        if isinstance(value, str):
            return value
        raise CannotImport(node.lineno, f"{ast.unparse(node)} is not a constant text here")


def quoted(name: str) -> str:
    """
    >>> quoted("price"), quoted("unit price")
    ('price', '`unit price`')
    """
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name.replace('`', '``')}`"


def literal(node: ast.expr, value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return f"{value!r}D"
        case None:
            return "NULL"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
    raise CannotImport(node.lineno, f"{value!r} has no literal in SQL")
