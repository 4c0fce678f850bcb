"""Queries as values that can be shrunk: typed expressions, windows, SELECT lists, and their text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.support.random_rows import SECOND


@dataclass(frozen=True)
class Expr:
    """SQL with its type; the parts that are expressions themselves can be simplified."""

    parts: tuple[str | Expr, ...]
    type: str
    tame: bool = False
    """A number whose sums have no rounding error to speak of."""

    @property
    def sql(self) -> str:
        return "".join(p if isinstance(p, str) else p.sql for p in self.parts)

    def __str__(self) -> str:
        return self.sql

    @property
    def simpler(self) -> Iterator[Expr]:
        """Itself with one part fewer: a part of the same type in its place, or a simpler part."""
        for i, part in enumerate(self.parts):
            if isinstance(part, Expr):
                if part.type == self.type:
                    yield part
                for simple in part.simpler:
                    yield replace(self, parts=(*self.parts[:i], simple, *self.parts[i + 1 :]))


def expr(type: str, *parts: str | Expr, tame: bool = False) -> Expr:
    return Expr(parts, type, tame)


@dataclass(frozen=True)
class Guarded:
    """An expression that Spark evaluates without an error where its guard holds."""

    value: Expr
    guard: Expr


@dataclass(frozen=True)
class OutputColumn:
    """A column of the SELECT list."""

    value: Expr
    alias: str | None
    unordered: bool = False
    """An array whose order Spark does not determine."""

    @property
    def sql(self) -> str:
        return self.value.sql if self.alias is None else f"{self.value.sql} AS {self.alias}"


@dataclass(frozen=True)
class WindowText:
    """A window in microseconds, and whether it is written in CQL's way."""

    length: int
    slide: int
    offset: int = 0
    cql: bool = False

    @property
    def spark(self) -> str:
        lengths = [self.length]
        if self.slide != self.length or self.offset:
            lengths.append(self.slide)
        if self.offset:
            lengths.append(self.offset)
        return f"window(ts, {', '.join(repr(interval(n)) for n in lengths)})"

    @property
    def brackets(self) -> str:
        offset = f" OFFSET {interval(self.offset).upper()}" if self.offset else ""
        return f" [RANGE {interval(self.length).upper()} SLIDE {interval(self.slide).upper()}{offset}]"

    @property
    def simpler(self) -> Iterator[WindowText]:
        if self.cql:
            yield replace(self, cql=False)
        if self.offset:
            yield replace(self, offset=0)
        if self.slide != self.length:
            yield replace(self, slide=self.length)
            if self.length % self.slide:
                yield replace(self, length=self.slide * 2)
        if self != WindowText(10 * SECOND, 10 * SECOND):
            yield WindowText(10 * SECOND, 10 * SECOND)


def interval(micros: int) -> str:
    """
    >>> interval(1_500_000)
    '1500 milliseconds'
    """
    for unit, length in (("minutes", 60 * SECOND), ("seconds", SECOND), ("milliseconds", 1000)):
        if micros % length == 0:
            return f"{micros // length} {unit}"
    return f"{micros} microseconds"


@dataclass(frozen=True)
class RandomQuery:
    """One SELECT. It has its text for Spark and its text for weft, which differ in CQL's window alone."""

    columns: tuple[OutputColumn, ...]
    window: WindowText
    where: tuple[Expr, ...] = ()
    keys: tuple[Expr, ...] = ()
    having: Expr | None = None
    ordered: bool = False
    """Whether it asks for the first or last row, so that other orders of the rows have other answers."""

    @property
    def spark_sql(self) -> str:
        return self._sql("", [*self.keys, self.window.spark])

    @property
    def weft_sql(self) -> str:
        return self._sql(self.window.brackets, self.keys) if self.window.cql else self.spark_sql

    def _sql(self, brackets: str, groups: Sequence[object]) -> str:
        select = ", ".join(c.sql for c in self.columns)
        where = f" WHERE {' AND '.join(c.sql for c in self.where)}" if self.where else ""
        by = f" GROUP BY {', '.join(map(str, groups))}" if groups else ""
        having = f" HAVING {self.having}" if self.having is not None else ""
        return f"SELECT {select} FROM stream{brackets}{where}{by}{having}"

    @property
    def simpler(self) -> Iterator[RandomQuery]:
        """Smaller queries, the greatest cuts first. Some of them are no longer valid: the law tells."""
        if self.having is not None:
            yield replace(self, having=None)
        for name in ("columns", "where", "keys"):
            items = getattr(self, name)
            for i in range(len(items)):
                if name != "columns" or len(items) > 1:
                    yield replace(self, **{name: (*items[:i], *items[i + 1 :])})
        for i in range(len(self.keys)):
            chosen = [j for j, c in enumerate(self.columns) if c.value == self.keys[i]]
            left = tuple(c for j, c in enumerate(self.columns) if j not in chosen)
            if chosen and left:
                yield replace(self, keys=(*self.keys[:i], *self.keys[i + 1 :]), columns=left)
        for window in self.window.simpler:
            yield replace(self, window=window)
        for i, column in enumerate(self.columns):
            for value in column.value.simpler:
                yield replace(self, columns=(*self.columns[:i], replace(column, value=value), *self.columns[i + 1 :]))
        for i, condition in enumerate(self.where):
            for value in condition.simpler:
                yield replace(self, where=(*self.where[:i], value, *self.where[i + 1 :]))
        if self.having is not None:
            for value in self.having.simpler:
                yield replace(self, having=value)
