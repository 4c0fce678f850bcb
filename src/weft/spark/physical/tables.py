"""What rows are aggregated to: a table for each feed, or one that several feeds are rolled up from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.aggregates import Component
from weft.engine import FeedLayout
from weft.model import Edges
from weft.spark.physical.columns import ColumnAllocator, PhysicalColumns
from weft.spark.physical.signature import Signature
from weft.spark.physical.slicing import union_edges


@dataclass(frozen=True, slots=True)
class NativeFeed:
    """What Spark computes for a feed: the expression of each physical column, and the filters of its queries."""

    layout: FeedLayout
    keys: Mapping[str, str]
    arguments: Mapping[str, str]
    signature: Signature

    @property
    def scatters(self) -> bool:
        """Whether a row of it can be sent as a partial."""
        return all(c.row for c in self.layout.components)

    @property
    def rolls(self) -> bool:
        """Whether its partials can be made from finer ones by Spark."""
        return all(c.merges for c in self.layout.components)


@dataclass(frozen=True, slots=True)
class NativeTable:
    """The keys, edges, filters and components of its feeds, all together."""

    feeds: tuple[NativeFeed, ...]
    edges: Edges
    signature: Signature
    keys: Mapping[str, str]
    arguments: Mapping[str, str]
    columns: Mapping[Component, tuple[str, ...]]

    @classmethod
    def of(cls, feeds: Sequence[NativeFeed], bound: PhysicalColumns, columns: ColumnAllocator) -> NativeTable:
        """`bound` says what types the feeds' own columns have; the table gets its columns from `columns`."""
        key_types = {e: bound.key_types[c] for feed in feeds for c, e in feed.keys.items()}
        argument_types = {e: bound.argument_types[c] for feed in feeds for c, e in feed.arguments.items()}
        arguments = columns.arguments(argument_types)
        kept = dict.fromkeys(c for feed in feeds for c in feed.layout.components)
        return cls(
            tuple(feeds),
            union_edges([feed.layout.edges for feed in feeds]),
            Signature.union(feed.signature for feed in feeds),
            {column: e for e, column in columns.keys(key_types).items()},
            {column: e for e, column in arguments.items()},
            {c: columns.component(c, arguments) for c in kept},
        )
