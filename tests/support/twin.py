"""A query twice: as the Spark SQL that weft and Spark read, and as Python callables that the oracle calls.

Rows are dictionaries by column name; an event time is an integer number of microseconds, or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from weft.model import Window

Row = Mapping[str, Any]
Truth = bool | None


@dataclass(frozen=True)
class Fragment:
    """A filter, a group key or an argument: `sql` and `of` must give the same value on every row."""

    sql: str
    of: Callable[[Row], Any] = field(compare=False)

    @classmethod
    def column(cls, name: str) -> Fragment:
        return cls(name, lambda row: row[name])


@dataclass(frozen=True)
class Call:
    """One aggregate call. `first` and `last` go by event time, which the text does not say."""

    function: str
    arguments: tuple[Fragment, ...] = ()
    condition: Fragment | None = None
    ignore_nulls: bool = False

    @property
    def sql(self) -> str:
        arguments = ", ".join(a.sql for a in self.arguments) or "*"
        nulls = " IGNORE NULLS" if self.ignore_nulls else ""
        if self.function == "count_distinct":
            return f"count(DISTINCT {arguments}){_filter_clause(self.condition)}"
        return f"{self.function}({arguments}){_filter_clause(self.condition)}{nulls}"

    @property
    def spark_sql(self) -> str:
        """The same for plain Spark, whose own `first` and `last` go by the order in which rows happen to come."""
        by_time = {"first": "min_by", "last": "max_by"}.get(self.function)
        if by_time is None:
            return self.sql
        argument = self.arguments[0].sql
        conditions = [f"({self.condition.sql})"] if self.condition else []
        if self.ignore_nulls:
            conditions.append(f"({argument}) IS NOT NULL")
        clause = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
        return f"{by_time}({argument}, ts){clause}"

    def values(self, row: Row) -> tuple[Any, ...] | None:
        """The arguments for one row, or None where the FILTER drops it."""
        if self.condition is not None and self.condition.of(row) is not True:
            return None
        values = tuple(a.of(row) for a in self.arguments)
        if self.function not in ("first", "last"):
            return values
        return None if self.ignore_nulls and values[0] is None else (*values, row["ts"])


def _filter_clause(condition: Fragment | None) -> str:
    return f" FILTER (WHERE {condition.sql})" if condition else ""


@dataclass(frozen=True)
class KeyColumn:
    """The group key number `index`, under its own name or another."""

    index: int
    alias: str | None = None


@dataclass(frozen=True)
class WindowColumn:
    """The window as a struct, or one end of it."""

    part: Literal["window", "start", "end"] = "window"
    alias: str | None = None


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class ValueColumn:
    """Arithmetic over calls: `template` with `{0}`, `{1}`, ... for them, and `of` their values.

    `gain` bounds how much an error in one of the calls grows in the result.
    """

    calls: tuple[Call, ...]
    template: str = "{0}"
    of: Callable[..., Any] = field(default=_same, compare=False)
    alias: str | None = None
    gain: float = 1.0


Column = KeyColumn | WindowColumn | ValueColumn


@dataclass(frozen=True)
class Query:
    """A windowed aggregate query over `stream`. `having` is a column without alias that gives a truth value."""

    name: str
    window: Window
    columns: tuple[Column, ...]
    keys: tuple[Fragment, ...] = ()
    where: Fragment | None = None
    having: ValueColumn | None = None
    cql: bool = False
    window_position: int = 0
    """Where the window stands among the group keys."""

    @property
    def text(self) -> str:
        """What weft is given."""
        return self._render(cql=self.cql, call_sql=lambda call: call.sql)

    @property
    def spark_sql(self) -> str:
        """What plain Spark is given: the specification of the answers."""
        return self._render(cql=False, call_sql=lambda call: call.spark_sql)

    @property
    def names(self) -> tuple[str | None, ...]:
        """Output names; None where Spark makes one up."""
        return tuple(self._name(c) for c in self.columns)

    @property
    def key_positions(self) -> tuple[int, ...]:
        """The output columns that tell one answer of this query from another."""
        return tuple(i for i, c in enumerate(self.columns) if not isinstance(c, ValueColumn))

    def _name(self, column: Column) -> str | None:
        if column.alias is not None:
            return column.alias
        if isinstance(column, WindowColumn):
            return column.part
        if isinstance(column, KeyColumn) and self.keys[column.index].sql.isidentifier():
            return self.keys[column.index].sql
        return None

    def _render(self, cql: bool, call_sql: Callable[[Call], str]) -> str:
        select = ", ".join(self._column_sql(c, call_sql) for c in self.columns)
        groups = [k.sql for k in self.keys]
        source = "stream"
        if cql:
            source += f" [RANGE {spell(self.window.length).upper()} SLIDE {spell(self.window.slide).upper()}]"
        else:
            groups.insert(self.window_position, window_sql(self.window))
        lines = [f"SELECT {select}", f"FROM {source}"]
        if self.where is not None:
            lines.append(f"WHERE {self.where.sql}")
        if groups:
            lines.append(f"GROUP BY {', '.join(groups)}")
        if self.having is not None:
            lines.append(f"HAVING {self.having.template.format(*map(call_sql, self.having.calls))}")
        return "\n".join(lines)

    def _column_sql(self, column: Column, call_sql: Callable[[Call], str]) -> str:
        alias = column.alias
        match column:
            case KeyColumn():
                sql = self.keys[column.index].sql
            case WindowColumn():
                sql = "window" if column.part == "window" else f"window.{column.part}"
            case ValueColumn():
                sql = column.template.format(*map(call_sql, column.calls))
                written = column.template.format(*(call.sql for call in column.calls))
                if alias is None and sql != written:
                    alias = written  # the rewritten call keeps the name of the one that was written
        return sql if alias is None else f"{sql} AS {quote(alias)}"


def quote(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


UNITS = ((86_400_000_000, "day"), (3_600_000_000, "hour"), (60_000_000, "minute"), (1_000_000, "second"))


def spell(micros: int) -> str:
    """An interval in the largest unit that holds it exactly.

    >>> spell(90_000_000), spell(60_000_000), spell(-1_500_000)
    ('90 seconds', '1 minute', '-1500 milliseconds')
    """
    for unit, name in (*UNITS, (1000, "millisecond"), (1, "microsecond")):
        if micros % unit == 0:
            count = micros // unit
            return f"{count} {name}{'' if abs(count) == 1 else 's'}"
    raise AssertionError("every integer is a multiple of one")


def window_sql(window: Window) -> str:
    """`window(...)` with as few arguments as say it."""
    arguments = [spell(window.length)]
    if window.slide != window.length or window.offset:
        arguments.append(spell(window.slide))
    if window.offset:
        arguments.append(spell(window.offset))
    return f"window(ts, {', '.join(repr(a) for a in arguments)})"


# Spark's logic and order on Python values: NULL is None, NaN is greater than every other number and equal to itself.


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def order(value: Any) -> tuple[bool, Any]:
    """A sort key in Spark's order."""
    return (True, 0) if is_nan(value) else (False, value)


def equal(left: Any, right: Any) -> Truth:
    return None if left is None or right is None else order(left) == order(right)


def greater(left: Any, right: Any) -> Truth:
    return None if left is None or right is None else order(left) > order(right)


def negation(truth: Truth) -> Truth:
    return None if truth is None else not truth


def both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Truth, right: Truth) -> Truth:
    return negation(both(negation(left), negation(right)))


def apply(function: Callable[..., Any], *values: Any) -> Any:
    """NULL in, NULL out."""
    return None if any(v is None for v in values) else function(*values)


def remainder(dividend: int, divisor: int) -> int:
    """With the sign of the dividend, as in Java."""
    return int(math.fmod(dividend, divisor))
