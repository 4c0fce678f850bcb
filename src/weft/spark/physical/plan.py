"""The physical plan: one frozen value with every decision that a batch runs by.

It is made by `weft.spark.physical.planner` alone, from the queries and the statistics of the stream. Spark builds the
partials from it, the buckets answer queries by its layout, and `explain` reads nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from weft.aggregates import Component
from weft.engine import FeedLayout, Layout
from weft.engine.partial.hash_tables import HashTableSpec
from weft.model import Edges
from weft.optimizer.phantoms import Choice, TableNode
from weft.optimizer.phantoms.relation import Relation, show
from weft.optimizer.phantoms.rollup import RollUp
from weft.plan import Plan
from weft.spark.physical.backfilled import BackfilledPartials
from weft.spark.physical.columns import PhysicalColumns
from weft.spark.physical.filter_classes import FilterClasses
from weft.spark.physical.guards import Guards
from weft.spark.physical.signature import Signature
from weft.spark.physical.statistics import Feeding, GroupCounts


@dataclass(frozen=True, slots=True)
class NativeFeed:
    """What Spark computes for a feed: the expression of each physical column, and the filters of its queries."""

    layout: FeedLayout
    keys: Mapping[str, str]
    arguments: Mapping[str, str]
    signature: Signature
    guards: Guards = field(default_factory=dict)
    """Of arguments. Keys are evaluated for rows that the signature passes."""

    def key_guard(self, key: str) -> str | None:
        return self.signature.passes

    @property
    def key_guards(self) -> Iterator[tuple[str, str | None]]:
        return ((key, self.key_guard(key)) for key in self.keys.values())

    @property
    def argument_guards(self) -> Iterator[tuple[str, str | None]]:
        return ((argument, self.guards.get(argument)) for argument in self.arguments.values())

    @property
    def can_send_rows(self) -> bool:
        """Whether each row can be sent as a partial of its own."""
        return all(c.definition.row for c in self.layout.components)

    @property
    def can_roll_up(self) -> bool:
        """Whether Spark can make its partials from finer ones."""
        return all(c.merges for c in self.layout.components)


@dataclass(frozen=True, slots=True)
class NativeTable:
    """A table that rows are aggregated to, and that feeds are rolled up from."""

    feeds: tuple[NativeFeed, ...]
    edges: Edges
    signature: Signature
    keys: Mapping[str, str]
    arguments: Mapping[str, str]
    columns: Mapping[Component, tuple[str, ...]]
    guards: Guards = field(default_factory=dict)
    """Of keys and arguments."""

    def key_guard(self, key: str) -> str | None:
        return self.guards.get(key, self.signature.passes)


@dataclass(frozen=True, slots=True)
class FromRows:
    """Each feed is made from rows, on its own."""

    single_rows: frozenset[int] = frozenset()
    """Numbers of feeds with almost as many groups as rows: each row is sent as a partial."""
    exchanged: frozenset[int] = frozenset()
    """Numbers of feeds in the row exchange: their rows are sent, once per bucket, and the buckets make the partials."""
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
    roots: tuple[HashTableSpec, ...]
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
    """How partials are made from rows. The partials are the same in any case, so it may differ between batches."""

    means: FromRows | FromTables | HashTables = field(default_factory=FromRows)
    choice: RollUp | None = None
    """The cheapest roll-ups for Spark; None: no groups were counted to choose by."""
    priced: bool = False
    """Whether the choice was made by cost."""
    counts: GroupCounts | None = None
    """The group counts that the choice was made by."""

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
    """Trees without keys are pinned to some of them."""
    classes: tuple[FilterClasses, ...] = ()
    """Of the filters of each feed of the logical plan."""
    partials: PartialsPlan = field(default_factory=PartialsPlan)
    synopsis_limit: int | None = None
    """Bytes of values that all buckets may keep together; None: there is no limit."""
    backfilled: tuple[BackfilledPartials, ...] = ()
    """Partials of earlier rows that the next batch takes in."""

    @property
    def pinned_buckets(self) -> dict[int, tuple[int, ...]]:
        """By feed, the buckets that its trees are pinned to; feeds without pinned trees are missing."""
        pinned = {feed.layout.number: {tree.pinned_bucket for tree in feed.layout.trees} for feed in self.feeds}
        buckets = {number: tuple(sorted(b for b in of if b is not None)) for number, of in pinned.items()}
        return {number: of for number, of in buckets.items() if of}

    @property
    def fed_by(self) -> list[Relation | None]:
        """The keys of the phantom that each feed is made from; None: made from rows, or no groups were counted yet."""
        if isinstance(self.partials.means, HashTables):
            above = self.partials.means.fed_by()
            return [above.get(feed.layout.number) for feed in self.feeds]
        choice = self.partials.choice
        return [None] * len(self.feeds) if choice is None else list(choice.tables)

    def with_layout(self, layout: Layout) -> PhysicalPlan:
        feeds = tuple(replace(native, layout=feed) for native, feed in zip(self.feeds, layout.feeds, strict=True))
        return replace(self, layout=layout, feeds=feeds)
