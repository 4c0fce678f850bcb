"""What random queries are made of: columns, calls of Spark's own functions, and partial functions with their guards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tests.support.query_values import Expr, Guarded, expr
from tests.support.random_rows import ID, RandomTable
from tests.support.spark_functions import Piece, SparkFunctions

INTEGERS = ("tinyint", "smallint", "int", "bigint")
NUMBERS = (*INTEGERS, "float", "double")


def is_number(type: str) -> bool:
    return type in NUMBERS or type.startswith("decimal")


def is_ordered(type: str) -> bool:
    """Whether Spark orders the type: `max` takes it, and a comparison."""
    return not any(word in type for word in ("map", "variant", "geo", "interval year", "interval month", "void"))


TAME = {"k", "x", "f", "n", "m", "a b", "größe", "Mixed", "mixed", "tiny", "small"}

GUARDED = (
    ("double", "1 / k", "k <> 0", True),
    ("bigint", "n % k", "k <> 0", True),
    ("bigint", "n div k", "k <> 0", True),
    ("int", "cast(num AS int)", "num RLIKE '^[0-9]{1,5}$'", True),
    ("double", "cast(num AS double)", "num RLIKE '^[0-9]{1,5}$'", True),
    ("int", "arr[0]", "size(arr) > 0", False),
    ("int", "element_at(arr, 2)", "size(arr) >= 2", False),
    ("string", "split(s, '-')[1]", "s LIKE '%-%'", False),
    ("date", "to_date(s)", "s RLIKE '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'", False),
    ("tinyint", "cast(n AS tinyint)", "n BETWEEN -100 AND 100", True),
    ("tinyint", "cast(i AS tinyint)", "i BETWEEN -128 AND 127", True),
    ("int", "i + 1", "i < 2147483647", False),
    ("int", "abs(i)", "i > -2147483648", False),
    ("bigint", "big * 2", "big BETWEEN -1000 AND 1000", True),
    ("bigint", "factorial(k)", "k >= 0", True),
    ("int", "cast(wild AS int)", "wild BETWEEN -1000 AND 1000", True),
    ("date", "date_add(day, k)", "day BETWEEN DATE'1900-01-01' AND DATE'2100-01-01'", False),
    ("date", "make_date(2024, `a b` + 1, 1)", "`a b` >= 0", False),
    ("decimal(9,2)", "cast(x AS decimal(9,2)) / k", "k > 0", False),
)
"""Type, partial function, guard, and whether its values are tame."""


def guarded_functions() -> tuple[Guarded, ...]:
    return tuple(Guarded(expr(t, value, tame=tame), expr("boolean", guard)) for t, value, guard, tame in GUARDED)


def column_exprs(table: RandomTable, simple_types: dict[str, str]) -> tuple[Expr, ...]:
    """The columns themselves, their fields and elements. `simple_types` are Spark's names of their types."""
    found = [expr(simple_types[c.name], c.sql, tame=c.name in TAME) for c in table.columns]
    found.append(expr("bigint", ID))
    found.append(expr("int", "st.`a b`"))
    found.append(expr("string", "stream.st.n"))
    found.append(expr("int", "map['a']"))
    return tuple(found)


@dataclass
class Pool:
    """Typed expressions to draw from."""

    columns: tuple[Expr, ...]
    calls: tuple[Expr, ...] = ()
    """Of functions, which Spark evaluates on every row."""
    failing: tuple[Expr, ...] = ()
    """Of functions, which Spark's analyser accepts and which fail on some row."""
    guarded: tuple[Guarded, ...] = field(default_factory=guarded_functions)

    def of(self, fits: Callable[[Expr], bool]) -> list[Expr]:
        return [e for e in (*self.columns, *self.calls) if fits(e)]


# Calls of Spark's functions

KINDS: dict[str, Callable[[str], bool]] = {
    "string": lambda type: type == "string",
    "integer": lambda type: type in INTEGERS,
    "fraction": is_number,
    "date": lambda type: type in ("date", "timestamp", "timestamp_ntz"),
    "timestamp": lambda type: type in ("date", "timestamp", "timestamp_ntz"),
    "binary": lambda type: type in ("binary", "string"),
}
"""The types of expressions that may stand for a literal of a documented example."""


class CallDrawer:
    """Draws calls that Spark's analyser accepts, and finds out whether they fail on a row of the table."""

    def __init__(self, random: Random, functions: SparkFunctions, frame: Any, columns: tuple[Expr, ...]) -> None:
        self._random = random
        self._functions = functions
        self._frame = frame
        self._columns = columns

    def draw(self, count: int, failing: int = 2) -> Pool:
        """A pool with this number of calls. Later calls may have earlier ones as arguments."""
        typed: list[Expr] = []
        for _ in range(count * 20):
            if len(typed) < count and (call := self._call((*self._columns, *typed))):
                typed.append(call)
        calls = typed if self._evaluates(typed) else [call for call in typed if self._evaluates([call])]
        partial = [call for call in typed if call not in calls]
        return Pool(self._columns, tuple(calls), tuple(partial[:failing]))

    def _call(self, arguments: tuple[Expr, ...]) -> Expr | None:
        name = self._random.choice(self._functions.names)
        examples = self._functions.examples(name)
        if examples is None:
            return None
        if examples and self._random.random() < 0.8:
            parts = self._like(self._random.choice(examples), arguments)
        else:
            chosen = self._random.choices(arguments, k=self._random.choice((1, 1, 2, 2, 3)))
            parts = [f"{name}(", chosen[0], *(p for a in chosen[1:] for p in (", ", a)), ")"]
        return self._typed(parts)

    def _like(self, example: tuple[Piece, ...], arguments: tuple[Expr, ...]) -> list[str | Expr]:
        """The example with one or two of its literals replaced by expressions of the kind."""
        literals = [i for i, piece in enumerate(example) if piece.kind]
        replaced = set(self._random.sample(literals, min(len(literals), self._random.choice((1, 1, 2)))))
        parts: list[str | Expr] = []
        for i, piece in enumerate(example):
            fitting = [a for a in arguments if i in replaced and KINDS[piece.kind or ""](a.type)]
            parts.append(self._random.choice(fitting) if fitting else piece.text)
        return parts

    def _typed(self, parts: list[str | Expr]) -> Expr | None:
        untyped = Expr(tuple(parts), "")
        try:
            fields = self._frame.selectExpr(untyped.sql).schema.fields
        except (PySparkException, Py4JError):
            return None
        if len(fields) != 1 or not any(isinstance(p, Expr) for p in parts) or " AS " in untyped.sql.upper():
            return None
        return Expr(untyped.parts, fields[0].dataType.simpleString())

    def _evaluates(self, calls: list[Expr]) -> bool:
        try:
            self._frame.selectExpr(*(call.sql for call in calls))._jdf.queryExecution().executedPlan().executeCollect()
        except (PySparkException, Py4JError):
            return False
        return True
