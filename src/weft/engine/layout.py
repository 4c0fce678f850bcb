"""What the final aggregation needs of a plan, with every type bound: frozen, picklable, sent to each bucket.

A tree describes its own partials, so that they can be read after the plan that created them is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.aggregates import Component, Kind
from weft.aggregates.lowering import AnswerLowering
from weft.engine.project import Typed
from weft.model import Edges, Refresh, Window

FOREVER = 2**62
"""A watermark that no event time reaches: what `drain` advances to."""


class FilterBit(NamedTuple):
    """Where a signature says whether a row passes a filter: a number in one of its words is from `least` to `most`.

    Range filters over one column share a number, the position between their limits. Any other filter has one bit.
    """

    word: int
    shift: int
    mask: int = 1
    least: int = 1
    most: int = 1 << 62

    def passed(self, words: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.bool_]:
        """Whether each of the signatures in these words passes the filter."""
        number = (words[self.word] >> self.shift) & self.mask
        passes: npt.NDArray[np.bool_] = (number >= self.least) & (number <= self.most)
        return passes


MARKS = (pa.field("weft_revision", pa.int64(), False), pa.field("weft_retracted", pa.bool_(), False))
"""Columns of answers that may be revised: 0 or the batch that revised the row; whether the row is retracted."""


@dataclass(frozen=True, slots=True)
class CallLayout:
    """An aggregate call: how its answer is computed, and from which components."""

    lower: AnswerLowering
    components: tuple[Component, ...]
    type: pa.DataType
    numbers: tuple[float, ...] = ()
    """Numbers of the call that the answer depends on, such as the fractions of a percentile."""


@dataclass(frozen=True, slots=True)
class QueryLayout:
    name: str
    window: Window
    filter: str | None
    calls: tuple[CallLayout, ...]
    outputs: tuple[Typed, ...]
    having: Typed | None
    schema: pa.Schema
    since: int | None = None
    """The query has no windows that begin before it; None: no limit."""
    until: int | None = None
    """The query has no windows that end after it; None: no limit."""
    older: tuple[int, ...] = ()
    """Trees of former plans that still hold rows of its windows."""
    requested_window: Window | None = None
    """SLIDE AT MOST: the window in the SQL; `window` slides by the interval. None: every window is answered."""
    priority: int = 0
    """SLIDE AT MOST: of queries that are due at the same time, the one with the greater priority comes first."""

    @property
    def components(self) -> tuple[Component, ...]:
        return tuple(dict.fromkeys(c for call in self.calls for c in call.components))

    def first_open(self, watermark: int) -> int:
        """The begin of the earliest window that may still be answered.

        It is the first window that has not ended at the watermark; for SLIDE AT MOST the last that has.
        """
        ended = self.window.last_ended(watermark)
        return self.window.begin(ended + 1 if self.requested_window is None else ended)


@dataclass(frozen=True, slots=True)
class GroupingLayout:
    """Trees over the same keys share their group numbers, also across plans."""

    number: int
    keys: tuple[pa.Field, ...]


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """What each partial of a tree holds, and the queries that are answered from it."""

    number: int
    """Unique among the trees of all plans of the job."""
    grouping: GroupingLayout
    edges: Edges
    components: tuple[Component, ...]
    filters: Mapping[str | None, FilterBit | None]
    """The bit of each filter; None: every row of the tree passes it. The key None is for queries without one."""
    words: int
    """How many signature words a partial has."""
    queries: tuple[QueryLayout, ...]
    serving: Mapping[str, str] = field(default_factory=dict)
    """The technique that builds windows from slices, by operator."""
    begins: Edges | None = None
    """The edges where windows begin: slices before the watermark are compacted between them. None: every edge."""
    since: int | None = None
    """Rows before it may lie in trees of former plans; None: the tree has all rows."""
    pinned_bucket: int | None = None
    """The bucket that holds all its groups; None: the groups are distributed over all buckets."""

    def reads(self, query: QueryLayout) -> tuple[str, ...]:
        """What the tree prepares before it answers a query: one name per component."""
        where = f"tree {self.number}, {query.filter}, every {query.window.slide}"
        return tuple(f"{c.kind}({', '.join(c.arguments)}) {c.setting} of {where}" for c in query.components)


@dataclass(frozen=True, slots=True)
class FeedLayout:
    """One native aggregation. `key_columns` and `columns` name the columns of the partials that Spark sends."""

    number: int
    grouping: GroupingLayout
    edges: Edges
    key_columns: tuple[str, ...]
    words: tuple[str, ...]
    components: tuple[Component, ...]
    columns: tuple[tuple[str, ...], ...]
    trees: tuple[TreeLayout, ...]
    backfill: bool = False
    """Its rows were read again for a query that joined: none of them is late."""


@dataclass(frozen=True, slots=True)
class Layout:
    feeds: tuple[FeedLayout, ...]
    ansi: bool
    time_type: pa.DataType
    """The type of window starts and ends: with the session's time zone, or without any."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    """Kinds of components that weft does not define, such as those of users' aggregates, for executors."""
    older: tuple[TreeLayout, ...] = ()
    """Trees of former plans: they get no new rows, and are removed when no open window needs their slices."""
    joining: frozenset[str] = frozenset()
    """Queries that join with this batch: they also answer windows that ended before it."""
    backfilling: frozenset[str] = frozenset()
    """Queries that wait for their backfill: they keep all slices, and answer nothing yet."""
    allowed_lateness: int = 0
    """A late row revises the answers of windows that ended at most this many microseconds before the watermark."""
    retention: int = 0
    """Slices of windows that ended at most this many microseconds before the watermark are kept, for later queries."""
    refresh: Mapping[str, Refresh] = field(default_factory=dict)
    """SLIDE AT MOST: the windows to answer in this batch; queries missing from the map are not refreshed in it."""
    answered: Mapping[str, int] = field(default_factory=dict)
    """SLIDE AT MOST: the end of the last window that each query answered."""

    @property
    def queries(self) -> tuple[QueryLayout, ...]:
        return tuple(q for tree in self.current for q in tree.queries)

    @property
    def current(self) -> Iterator[TreeLayout]:
        return (tree for feed in self.feeds for tree in feed.trees)

    @property
    def trees(self) -> tuple[TreeLayout, ...]:
        """All trees that the state may hold partials of."""
        return (*self.current, *self.older)

    def at(self, bucket: int) -> Layout:
        """The layout of one bucket: without the trees that are pinned to another bucket.

        A tree of a former plan is in every bucket with a query that reads it.
        """
        if all(tree.pinned_bucket is None for tree in self.current):
            return self
        feeds = [replace(f, trees=tuple(t for t in f.trees if t.pinned_bucket in (None, bucket))) for f in self.feeds]
        read = {number for feed in feeds for tree in feed.trees for query in tree.queries for number in query.older}
        older = tuple(tree for tree in self.older if tree.number in read)
        return replace(self, feeds=tuple(feed for feed in feeds if feed.trees), older=older)

    def with_trees(self, change: Callable[[TreeLayout], TreeLayout]) -> Layout:
        return replace(self, feeds=tuple(replace(f, trees=tuple(map(change, f.trees))) for f in self.feeds))

    def closed(self, watermark: int) -> int:
        """The time by which a window must end to be closed: a closed window is not answered or revised again."""
        return watermark - max(self.allowed_lateness, self.retention)

    def compactable(self, watermark: int) -> dict[int, int]:
        """The time until which the slices of each tree may be compacted."""
        pools = {n for t in self.current for q in t.queries if q.name in self.backfilling for n in (t.number, *q.older)}
        return {t.number: -FOREVER if t.number in pools else self.closed(watermark) for t in self.trees}

    def horizons(self, watermark: int) -> dict[int, int]:
        """The earliest slice that each tree must keep after the watermark; trees that are missing keep nothing."""
        earliest: dict[int, int] = {}
        for tree in self.current:
            for query in tree.queries:
                opened = -FOREVER if query.name in self.backfilling else query.first_open(self.closed(watermark))
                for number in (tree.number, *query.older):
                    earliest[number] = min(opened, earliest.get(number, opened))
        return earliest
