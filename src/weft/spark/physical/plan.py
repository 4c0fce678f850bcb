"""The physical plan: one frozen value with every decision that a batch runs by.

It is made by `weft.spark.physical.planner` alone, from the queries and the statistics of the stream. Spark builds the
partials from it, the buckets answer queries by its layout, and `explain` reads nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.aggregates import Component
from weft.engine import FeedLayout, Layout
from weft.engine.partial.hash_tables import CascadeTable
from weft.model import Edges
from weft.optimizer.phantoms import Choice, TableNode
from weft.optimizer.phantoms.relation import Relation, show
from weft.optimizer.phantoms.rollup import RollUp
from weft.plan import Plan
from weft.spark.physical.backfilled import BackfilledPartials
from weft.spark.physical.columns import PhysicalColumns
from weft.spark.physical.filter_classes import FilterClasses
from weft.spark.physical.signature import Signature
from weft.spark.physical.statistics import Feeding, GroupCounts


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
        """Whether Spark can make its partials from finer ones."""
        return all(c.merges for c in self.layout.components)


@dataclass(frozen=True, slots=True)
class NativeTable:
    """What rows are aggregated to, to roll up feeds from it: their keys, edges, filters and components."""

    feeds: tuple[NativeFeed, ...]
    edges: Edges
    signature: Signature
    keys: Mapping[str, str]
    arguments: Mapping[str, str]
    columns: Mapping[Component, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class FromRows:
    """Each feed is made from rows, on its own."""

    single_rows: frozenset[int] = frozenset()
    """Feeds, by number, of which next to every row has a group of its own: each row is sent as a partial."""
    exchanged: frozenset[int] = frozenset()
    """Feeds whose rows are sent as they are, once to each bucket, where the partials are made."""
    column_types: Mapping[str, str] = field(default_factory=dict)
    """Of the partial columns of those feeds."""


@dataclass(frozen=True, slots=True)
class FromTables:
    """Spark aggregates rows to tables, and the partials of those to feeds."""

    tables: tuple[NativeTable, ...]
    columns: PhysicalColumns
    """Of the tables."""


@dataclass(frozen=True, slots=True)
class HashTableCosts:
    """Seconds of a core per row, beside probes and evictions."""

    arrival: float
    """To bring the row to the tables."""
    emptying: float
    """To empty the feeds' tables at the end of a task: each group leaves at least once."""
    emptying_phantoms: float


@dataclass(frozen=True, slots=True)
class HashTables:
    """Bounded tables inside Spark's tasks make the partials of some feeds (LFTA); Spark makes those of the others."""

    feeds: tuple[NativeFeed, ...]
    relations: Mapping[int, Relation]
    """The expressions that tell the partials of each feed apart, by its number."""
    choice: Choice
    flow: float
    """How many rows of a group follow each other."""
    inputs: Mapping[str, str]
    """The expression of each column that the tables read."""
    roots: tuple[CascadeTable, ...]
    dictionary_bytes: int
    costs: HashTableCosts

    @property
    def cost(self) -> float:
        """Seconds of a core per row, without its arrival at the tables."""
        return self.choice.cost + self.costs.emptying + self.costs.emptying_phantoms

    @property
    def unshared(self) -> float:
        """The same without phantoms."""
        return self.choice.unshared + self.costs.emptying

    @property
    def configuration(self) -> str:
        """By keys alone: slices and signatures are attributes of the tables too, and would fill the line."""
        return " ".join(map(self._show, self.choice.configuration.raw))

    def fed_by(self) -> dict[int, Relation]:
        """The keys of the table above that of each feed, by the feed's number."""
        above = {child.relation: table for table in self.choice.configuration.tables for child in table.children}
        parents = {number: above.get(relation) for number, relation in self.relations.items()}
        return {number: self._keys(table) for number, table in parents.items() if table is not None}

    def _show(self, table: TableNode) -> str:
        below = " ".join(map(self._show, table.children))
        star = "*" if table.is_query and table.children else ""
        return f"{show(self._keys(table))}{star}({below})" if below else show(self._keys(table))

    def _keys(self, table: TableNode) -> Relation:
        below = {node.relation for node in table.walk() if node.is_query}
        fed = [feed for feed in self.feeds if self.relations[feed.layout.number] in below]
        return frozenset(key for feed in fed for key in feed.keys.values())


@dataclass(frozen=True, slots=True)
class PartialsPlan:
    """How partials are made from rows. It changes how they are made, never which: it may differ between batches."""

    means: FromRows | FromTables | HashTables = field(default_factory=FromRows)
    choice: RollUp | None = None
    """The roll-ups that are cheapest for Spark; None: no groups were counted that they could be chosen by."""
    priced: bool = False
    """Whether the choice was made by what it costs."""
    counts: GroupCounts | None = None
    """What was known of the groups."""

    @property
    def feeding(self) -> Feeding:
        if self.choice is None:
            return Feeding()
        if isinstance(self.means, HashTables):
            return Feeding(f"{self.means.configuration} in bounded tables", self.means.flow)
        return Feeding(str(self.choice.configuration))


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """Trees with their techniques and buckets, classes of filters, and how partials are made."""

    logical: Plan
    """The trees, the feeds, and what they cost."""
    layout: Layout
    """What the buckets do, with what former plans have left for them."""
    feeds: tuple[NativeFeed, ...]
    """What Spark computes; one for each feed of the layout."""
    event_micros: str
    """The event time in microseconds, as an expression over the stream's columns."""
    columns: PhysicalColumns
    groupings: tuple[tuple[str, ...], ...]
    """The key expressions of each grouping, by its number."""
    buckets: int = 1
    """That trees without keys are placed in."""
    classes: tuple[FilterClasses, ...] = ()
    """Of the filters of each feed of the logical plan."""
    partials: PartialsPlan = field(default_factory=PartialsPlan)
    synopsis_limit: int | None = None
    """Bytes of values that all buckets may keep together; None: there is no limit."""
    replayed: tuple[BackfilledPartials, ...] = ()
    """Partials of earlier rows that the next batch takes in."""

    @property
    def homes(self) -> dict[int, tuple[int, ...]]:
        """The buckets that the partials of each feed go to, where its trees have homes."""
        homes = {f.layout.number: {t.home for t in f.layout.trees if t.home is not None} for f in self.feeds}
        return {number: tuple(sorted(buckets)) for number, buckets in homes.items() if buckets}

    @property
    def fed_by(self) -> list[Relation | None]:
        """The keys of the phantom that each feed is made from; None: from rows, or nothing was counted yet."""
        if isinstance(self.partials.means, HashTables):
            above = self.partials.means.fed_by()
            return [above.get(feed.layout.number) for feed in self.feeds]
        choice = self.partials.choice
        return [None] * len(self.feeds) if choice is None else list(choice.tables)

    def with_layout(self, layout: Layout) -> PhysicalPlan:
        feeds = tuple(replace(native, layout=feed) for native, feed in zip(self.feeds, layout.feeds, strict=True))
        return replace(self, layout=layout, feeds=feeds)
