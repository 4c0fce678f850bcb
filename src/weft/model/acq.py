"""An aggregate continuous query (ACQ): parsed, without types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, overload

from weft.model.errors import WeftError
from weft.model.expression import Expression
from weft.model.window import Window

RefreshMode = Literal["exact", "at_most"]


class InvalidWorkload(WeftError):
    """Queries that cannot be in one workload."""


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate call, arguments in canonical Spark SQL: equal calls have equal text.

    `function` is the registry's name (lower case, aliases resolved: `mean` is `avg`, `std` is `stddev_samp`). A
    `FILTER (WHERE ...)` is in `condition`.
    """

    function: str
    arguments: tuple[str, ...] = ()
    condition: str | None = None
    ignore_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the answer."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Ttl:
    """A query answers the windows that end by `until`, or within `length` from when it joins; event time, microseconds.

    >>> Ttl(length=10).begun(at=100), Ttl(until=50).begun(at=100)
    (Ttl(length=10, until=110), Ttl(length=None, until=50))
    """

    length: int | None = None
    until: int | None = None

    def begun(self, at: int | None) -> Ttl:
        """With an end, if the query begins `at` a known time."""
        if self.until is not None or self.length is None or at is None:
            return self
        return Ttl(self.length, at + self.length)


@dataclass(frozen=True, slots=True)
class ACQ:
    """Aggregates, filter, group keys and window of one query.

    `source`, `event_time`, `keys` and `where` are canonical Spark SQL; `text` is what the user wrote, `spark_sql` the
    query as plain Spark would run it (a CQL window becomes `window()`), the specification of its answers.
    """

    name: str
    window: Window
    calls: tuple[Call, ...]
    outputs: tuple[Output, ...]
    source: str = "stream"
    event_time: str = "ts"
    keys: tuple[str, ...] = ()
    where: str | None = None
    having: Expression | None = None
    refresh: RefreshMode = "exact"
    requested_window: Window | None = None
    """SLIDE AT MOST: the window as the user wrote it; `window` then has an interval for its slide."""
    priority: int = 0
    """SLIDE AT MOST: of queries that are due at the same time, the one with the greater priority comes first."""
    text: str = field(default="", compare=False)
    spark_sql: str = field(default="", compare=False)
    ttl: Ttl | None = field(default=None, compare=False)
    """None: until the job ends."""
    begins: tuple[int, int] = field(default=(1, 1), compare=False)
    """Line and column where `text` begins in the file or string that it comes from."""

    @property
    def shown(self) -> Window:
        """The window as the user wrote it."""
        return self.requested_window or self.window

    @property
    def identity(self) -> str:
        """Equal for queries with equal answers; can be parsed again."""
        return self.text if self.refresh == "at_most" else self.spark_sql

    @property
    def grouping(self) -> tuple[str, str, tuple[str, ...]]:
        """Queries can share a tree only where this is equal: same rows, same clock, same groups."""
        return (self.source, self.event_time, self.keys)


class Workload(Sequence[ACQ]):
    """Queries with different names, in the order of the input."""

    def __init__(self, queries: Iterable[ACQ]) -> None:
        self._queries = tuple(queries)
        self.by_name = {q.name: q for q in self._queries}
        if len(self.by_name) < len(self._queries):
            names = [q.name for q in self._queries]
            twice = next(n for n in names if names.count(n) > 1)
            raise InvalidWorkload(f"two queries are named {twice}; give one of them another name")

    @overload
    def __getitem__(self, index: int) -> ACQ: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ACQ, ...]: ...
    def __getitem__(self, index: int | slice) -> ACQ | tuple[ACQ, ...]:
        return self._queries[index]

    def __len__(self) -> int:
        return len(self._queries)

    def __iter__(self) -> Iterator[ACQ]:
        return iter(self._queries)
