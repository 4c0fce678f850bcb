"""What the final aggregation must know of a plan, with every type bound: frozen, picklable, sent to each bucket.

A tree says of itself what its partials hold, so that they can be read when the plan that made them is no more.
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

    Filters that ask where one column lies have one number, of the place between their limits; any other has a bit.
    """

    word: int
    shift: int
    mask: int = 1
    least: int = 1
    most: int = 1 << 62

    def passed(self, words: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.bool_]:
        """For each of the signatures in these words."""
        number = (words[self.word] >> self.shift) & self.mask
        found: npt.NDArray[np.bool_] = (number >= self.least) & (number <= self.most)
        return found


MARKS = (pa.field("weft_revision", pa.int64(), False), pa.field("weft_retracted", pa.bool_(), False))
"""Columns of answers that may be revised: 0, or the batch that sent it again; and whether there is none any more."""


@dataclass(frozen=True, slots=True)
class CallLayout:
    """An aggregate call: how its answer is read, and from which components."""

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
    """Windows that begin before it are not the query's; None: all are."""
    until: int | None = None
    """Windows that end after it are not the query's; None: all are."""
    older: tuple[int, ...] = ()
    """Trees of former plans that still hold rows of its windows."""
    asked: Window | None = None
    """At most: the window as it was asked for; `window` has one at every interval. None: every window is answered."""
    priority: int = 0
    """At most: of queries that are due at the same time, the one with the greater priority comes first."""

    @property
    def components(self) -> tuple[Component, ...]:
        return tuple(dict.fromkeys(c for call in self.calls for c in call.components))

    def first_open(self, watermark: int) -> int:
        """The begin of the earliest window that may still be answered: the watermark has not passed it, or, where one
        is answered now and then, it is the newest that it has passed."""
        ended = self.window.last_ended(watermark)
        return self.window.begin(ended + 1 if self.asked is None else ended)


@dataclass(frozen=True, slots=True)
class GroupingLayout:
    """Trees over the same keys number their groups alike, whatever plan they are of."""

    number: int
    keys: tuple[pa.Field, ...]


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """What each partial of a tree holds, and the queries that are answered from it."""

    number: int
    """No tree of another plan of the job has the same."""
    grouping: GroupingLayout
    edges: Edges
    components: tuple[Component, ...]
    filters: Mapping[str | None, FilterBit | None]
    """The bit of each filter; None: every row of the tree passes it. The key None is for queries without one."""
    words: int
    """How many words of bits a partial carries."""
    queries: tuple[QueryLayout, ...]
    serving: Mapping[str, str] = field(default_factory=dict)
    """The technique that builds windows from slices, by operator."""
    begins: Edges | None = None
    """The edges where windows begin: all that slices behind the watermark are still cut at. None: at every edge."""
    since: int | None = None
    """Rows before it may lie in trees of former plans; None: it has seen all."""
    home: int | None = None
    """The bucket that it is in, all of it; None: each of its groups has one."""

    def reads(self, query: QueryLayout) -> tuple[str, ...]:
        """What has to be prepared of the tree before a query is answered, a name for each component."""
        where = f"tree {self.number}, {query.filter}, every {query.window.slide}"
        return tuple(f"{c.kind}({', '.join(c.arguments)}) {c.setting} of {where}" for c in query.components)


@dataclass(frozen=True, slots=True)
class FeedLayout:
    """One native pass. `key_columns` and `columns` name the physical columns of the partials that Spark sends."""

    number: int
    grouping: GroupingLayout
    edges: Edges
    key_columns: tuple[str, ...]
    words: tuple[str, ...]
    components: tuple[Component, ...]
    columns: tuple[tuple[str, ...], ...]
    trees: tuple[TreeLayout, ...]
    replayed: bool = False
    """Its rows came long ago and were read again for a query that joined: none of them is late."""


@dataclass(frozen=True, slots=True)
class Layout:
    feeds: tuple[FeedLayout, ...]
    ansi: bool
    time_type: pa.DataType
    """The type of window starts and ends: with the session's time zone, or without any."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    """Kinds of components that weft does not define, such as those of users' aggregates, for executors."""
    older: tuple[TreeLayout, ...] = ()
    """Trees of former plans: they take no more rows, and go when no open window needs theirs."""
    fresh: frozenset[str] = frozenset()
    """Queries that join with this batch: what ended before may still be theirs to answer."""
    held: frozenset[str] = frozenset()
    """Queries that wait for rows of the past: they keep all that comes, and answer nothing yet."""
    lateness: int = 0
    """Windows that ended so long ago are answered again when a late row comes for them."""
    retain: int = 0
    """The slices of windows that ended so long ago are kept, for queries that come later."""
    refresh: Mapping[str, Refresh] = field(default_factory=dict)
    """At most: the windows that queries are answered for in this batch; who is not named waits."""
    answered: Mapping[str, int] = field(default_factory=dict)
    """At most: the end of the window that each was answered for last."""

    @property
    def queries(self) -> tuple[QueryLayout, ...]:
        return tuple(q for tree in self.current for q in tree.queries)

    @property
    def current(self) -> Iterator[TreeLayout]:
        return (tree for feed in self.feeds for tree in feed.trees)

    @property
    def trees(self) -> tuple[TreeLayout, ...]:
        """All that the state may hold partials of."""
        return (*self.current, *self.older)

    def at(self, bucket: int) -> Layout:
        """What there is to do in a bucket: not the trees that have their home in others.

        A tree of a former plan is wherever somebody reads it.
        """
        if all(tree.home is None for tree in self.current):
            return self
        feeds = [replace(f, trees=tuple(t for t in f.trees if t.home in (None, bucket))) for f in self.feeds]
        read = {number for feed in feeds for tree in feed.trees for query in tree.queries for number in query.older}
        older = tuple(tree for tree in self.older if tree.number in read)
        return replace(self, feeds=tuple(feed for feed in feeds if feed.trees), older=older)

    def with_trees(self, change: Callable[[TreeLayout], TreeLayout]) -> Layout:
        return replace(self, feeds=tuple(replace(f, trees=tuple(map(change, f.trees))) for f in self.feeds))

    def closed(self, watermark: int) -> int:
        """No window that ends by it is asked for again."""
        return watermark - max(self.lateness, self.retain)

    def settled(self, watermark: int) -> dict[int, int]:
        """By when each tree's slices may have grown together."""
        waited = {n for t in self.current for q in t.queries if q.name in self.held for n in (t.number, *q.older)}
        return {t.number: -FOREVER if t.number in waited else self.closed(watermark) for t in self.trees}

    def horizons(self, watermark: int) -> dict[int, int]:
        """The earliest slice that each tree must keep when the watermark has passed this; a tree without is done."""
        earliest: dict[int, int] = {}
        for tree in self.current:
            for query in tree.queries:
                opened = -FOREVER if query.name in self.held else query.first_open(self.closed(watermark))
                for number in (tree.number, *query.older):
                    earliest[number] = min(opened, earliest.get(number, opened))
        return earliest
