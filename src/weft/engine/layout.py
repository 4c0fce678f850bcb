"""What the final aggregation must know of a plan, with every type bound: frozen, picklable, sent to each bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from weft.aggregates import Component, UserAggregate
from weft.engine.project import Typed
from weft.model import Edges, Window

FilterBit = tuple[int, int]
"""Which word of the signature, and which bit of it."""


@dataclass(frozen=True, slots=True)
class CallLayout:
    """An aggregate call: how its answer is read, and from which components of the feed."""

    lower: str
    components: tuple[int, ...]
    kinds: tuple[str, ...]
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class QueryLayout:
    name: str
    window: Window
    filter: FilterBit | None
    calls: tuple[CallLayout, ...]
    outputs: tuple[Typed, ...]
    having: Typed | None
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """`components` are the indices of the feed's components that some query of the tree reads."""

    number: int
    edges: Edges
    components: tuple[int, ...]
    queries: tuple[QueryLayout, ...]
    technique: str = "blocks"
    """How windows are built from slices."""


@dataclass(frozen=True, slots=True)
class FeedLayout:
    """One native pass. `key_columns` and `columns` name the physical columns of the partials that Spark sends."""

    number: int
    edges: Edges
    keys: tuple[pa.Field, ...]
    key_columns: tuple[str, ...]
    words: tuple[str, ...]
    components: tuple[Component, ...]
    columns: tuple[tuple[str, ...], ...]
    trees: tuple[TreeLayout, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    feeds: tuple[FeedLayout, ...]
    ansi: bool
    time_type: pa.DataType
    """The type of window starts and ends: with the session's time zone, or without any."""
    users: Mapping[str, type[UserAggregate]] = field(default_factory=dict)
    """The aggregates that the driver's users defined, for executors to know them too."""

    @property
    def queries(self) -> tuple[QueryLayout, ...]:
        return tuple(q for feed in self.feeds for tree in feed.trees for q in tree.queries)
