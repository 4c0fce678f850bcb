"""How the partials of feeds are made: from finer groupings or from rows, chosen by the groups that were counted.

Rows are aggregated by Spark (native), or in hash tables of a bounded memory inside its tasks (the paper's LFTA),
whichever is cheaper by what `weft calibrate` measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from weft.calibration.file import load_table_costs
from weft.calibration.table_costs import DEFAULT_TABLE_COSTS, TableCosts
from weft.optimizer.phantoms.feeding_graph import FeedingGraph
from weft.optimizer.phantoms.relation import Relation
from weft.optimizer.phantoms.rollup import GroupBy, RollUp, roll_up
from weft.spark.options import JobOptions
from weft.spark.physical.columns import ColumnAllocator, PhysicalColumns
from weft.spark.physical.guards import merged_guards, where
from weft.spark.physical.hash_tables import choose_hash_tables, fits_table, relations_of
from weft.spark.physical.plan import (
    FromRows,
    FromTables,
    HashTables,
    NativeFeed,
    NativeTable,
    PartialsPlan,
    PhysicalPlan,
)
from weft.spark.physical.row_feeds import exchangeable, exchanged_feeds, single_row_feeds
from weft.spark.physical.signature import Signature
from weft.spark.physical.slicing import slice_of, union_edges
from weft.spark.physical.statistics import GroupCounts

CLEARLY = 0.6
"""Hash tables are chosen if they cost less than this share of Spark's own aggregation. Prices are measured on one
group-by; with many groups per row, tables are slower than their prices say: `weft bench groupbys` prints the ratio as
`uniform_over_lfta`.
"""

CANDIDATES = 64
"""The most relations that are counted beside the group-bys: the union of all, then the smallest unions."""

PartialTypes = Callable[[Sequence[NativeFeed]], Mapping[str, str]]
"""The types of the partial columns of some feeds, as Spark's analyser says."""


def counts_groups(feeds: Sequence[NativeFeed], options: JobOptions) -> bool:
    """Whether the choice for these feeds depends on how many groups they have."""
    if options.groupings == "lfta":
        return True
    return options.phantoms == "auto" and sum(feed.can_roll_up for feed in feeds) > 1


def _for_tables(feeds: Sequence[NativeFeed], columns: PhysicalColumns, options: JobOptions) -> tuple[NativeFeed, ...]:
    """The feeds that hash tables could be made for; none where Spark aggregates them anyway."""
    able = tuple(feed for feed in feeds if fits_table(feed, columns))
    if options.groupings == "lfta":
        return able
    # Default costs do not show which of the two is cheaper.
    measured = options.groupings == "auto" and len(able) == len(feeds) and load_table_costs() is not None
    return able if measured else ()


@dataclass(frozen=True, slots=True)
class GroupingCandidates:
    """What must be counted to choose how the partials of some feeds are made."""

    feeds: tuple[NativeFeed, ...]
    finer: Mapping[Relation, tuple[str, ...]]
    """The expressions that identify a partial, of each relation that Spark could roll up several feeds from."""
    tables: tuple[NativeFeed, ...]
    """Feeds that hash tables could be made for."""

    @classmethod
    def of(cls, plan: PhysicalPlan, options: JobOptions) -> GroupingCandidates:
        feeds = plan.feeds
        tables = _for_tables(feeds, plan.columns, options)
        rolling = [_relation(f) for f in feeds if f.can_roll_up]
        if not rolling:
            return cls(feeds, {}, tables)
        everything: Relation = frozenset().union(*rolling)
        graph = FeedingGraph.of(rolling)
        wider = dict.fromkeys([*graph.queries, everything, *sorted(graph.phantoms, key=len)[:CANDIDATES]])
        fed = {r: [f for f in feeds if f.can_roll_up and _relation(f) <= r] for r in wider}
        return cls(feeds, {r: _partial_key(below) for r, below in fed.items() if len(below) > 1}, tables)

    @property
    def relations(self) -> list[frozenset[str]]:
        """All sets of expressions whose distinct values are counted."""
        native = [*partial_keys(self.feeds), *self.finer.values()]
        return [*map(frozenset, native), *(relations_of(self.tables) if self.tables else [])]

    @property
    def together(self) -> Relation | None:
        """The relation that flows are measured on; None: hash tables are no choice."""
        return relations_of(self.tables)[-1] if self.tables else None

    def roll_up(self, counts: GroupCounts, prices: TableCosts) -> RollUp:
        """What is cheapest for Spark."""
        own = zip(self.feeds, counts.feeds, strict=True)
        group_bys = [GroupBy(_relation(feed), counts.partials(texts), feed.can_roll_up) for feed, texts in own]
        return roll_up(group_bys, {r: counts.partials(texts) for r, texts in self.finer.items()}, prices.native)


def choose_partials(
    plan: PhysicalPlan, counts: GroupCounts | None, options: JobOptions, bounded: bool, types: PartialTypes
) -> PartialsPlan:
    """`bounded`: all rows are in one batch, so buckets can make partials from rows."""
    feeds = plan.feeds
    priced = options.phantoms == "auto"
    if options.phantoms == "always" and options.groupings != "lfta" and sum(feed.can_roll_up for feed in feeds) > 1:
        choice = _one_for_all(feeds)
        return PartialsPlan(_from_tables(choice, feeds, plan.columns), choice, priced, counts)
    if counts is None or not counts_groups(feeds, options) or counts.feeds != partial_keys(feeds):
        return PartialsPlan(counts=counts)
    prices = load_table_costs() or DEFAULT_TABLE_COSTS
    candidates = GroupingCandidates.of(plan, options)
    choice = candidates.roll_up(counts, prices)
    means: FromRows | FromTables | HashTables | None = None
    if candidates.tables and counts.flows is not None:
        means = _hash_tables(candidates, plan.columns, counts, options, prices, choice)
    if means is None:
        means = _from_tables(choice, feeds, plan.columns) if choice.shares else _from_rows(plan, choice, bounded, types)
    return PartialsPlan(means, choice, priced, counts)


def _hash_tables(
    candidates: GroupingCandidates,
    columns: PhysicalColumns,
    counts: GroupCounts,
    options: JobOptions,
    prices: TableCosts,
    native: RollUp,
) -> HashTables | None:
    """If they are clearly cheaper, or the options demand them."""
    tables = choose_hash_tables(candidates.tables, columns, counts, options.table_memory, prices, options.phantoms)
    cheaper = prices.row + tables.cost < CLEARLY * native.cost * prices.native_probe
    return tables if cheaper or options.groupings == "lfta" else None


def _from_tables(choice: RollUp, feeds: Sequence[NativeFeed], bound: PhysicalColumns) -> FromTables:
    columns = ColumnAllocator()
    together: dict[Relation, list[NativeFeed]] = {}
    alone: list[NativeFeed] = []
    for feed, table in zip(feeds, choice.tables, strict=True):
        (alone if table is None else together.setdefault(table, [])).append(feed)
    groups = [*together.values(), *([feed] for feed in alone)]
    tables = tuple(_table(group, bound, columns) for group in groups)
    return FromTables(tables, columns.columns)


def _table(feeds: Sequence[NativeFeed], bound: PhysicalColumns, columns: ColumnAllocator) -> NativeTable:
    """`bound` has the types of the feeds' own columns; the table gets its columns from `columns`."""
    key_types = {e: bound.key_types[c] for feed in feeds for c, e in feed.keys.items()}
    argument_types = {e: bound.argument_types[c] for feed in feeds for c, e in feed.arguments.items()}
    arguments = columns.arguments(argument_types)
    kept = dict.fromkeys(c for feed in feeds for c in feed.layout.components)
    return NativeTable(
        feeds=tuple(feeds),
        edges=union_edges([feed.layout.edges for feed in feeds]),
        signature=Signature.union(feed.signature for feed in feeds),
        keys={column: e for e, column in columns.keys(key_types).items()},
        arguments={column: e for e, column in arguments.items()},
        columns={c: columns.component(c, arguments) for c in kept},
        guards=merged_guards(guard for feed in feeds for guard in (*feed.key_guards, *feed.argument_guards)),
    )


def _from_rows(plan: PhysicalPlan, choice: RollUp, bounded: bool, types: PartialTypes) -> FromRows:
    """Which feeds are sent as rows."""
    partials = {f.layout.number: g.partials for f, g in zip(plan.feeds, choice.group_bys, strict=True)}
    sendable = [feed for feed in plan.feeds if feed.can_send_rows]
    single_rows = single_row_feeds(sendable, partials)
    if not bounded:
        sent = [feed for feed in sendable if feed.layout.number in single_rows]
        return FromRows(single_rows, column_types=types(sent) if sent else {})
    column_types = types(sendable) if sendable else {}
    exchanged = exchanged_feeds(exchangeable(sendable, plan, column_types), partials, plan.buckets)
    return FromRows(single_rows - exchanged, exchanged, column_types)


def partial_keys(feeds: Sequence[NativeFeed]) -> tuple[tuple[str, ...], ...]:
    """For each feed, the expressions that identify a partial. Feeds with equal ones have the same groups."""
    return tuple(_partial_key([feed]) for feed in feeds)


def _partial_key(feeds: Sequence[NativeFeed]) -> tuple[str, ...]:
    """The expressions that identify a partial of a table that these feeds are made from."""
    guards = merged_guards(guard for feed in feeds for guard in feed.key_guards)
    keys = dict.fromkeys(where(guards.get(key), key) for feed in feeds for key in feed.keys.values())
    signature = Signature.union(feed.signature for feed in feeds)
    return (slice_of(union_edges([feed.layout.edges for feed in feeds])), *signature.words, *keys)


def _relation(feed: NativeFeed) -> Relation:
    return frozenset(feed.keys.values())


def _one_for_all(feeds: Sequence[NativeFeed]) -> RollUp:
    everything: Relation = frozenset().union(*(_relation(f) for f in feeds if f.can_roll_up))
    group_bys = tuple(GroupBy(_relation(f), 0.0, f.can_roll_up) for f in feeds)
    return RollUp(group_bys, tuple(everything if f.can_roll_up else None for f in feeds), 0.0, 0.0)
