"""Which finer groupings rows are aggregated to, so that others are rolled up from those: chosen by counting.

Groups are counted on the first rows that come, and again from time to time. What is chosen changes how partials are
made, never which: it may differ from batch to batch. Rows are aggregated by Spark (native), or in tables of a bounded
memory inside its tasks (LFTA), whichever is cheaper by what `weft calibrate` measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from weft.calibration.file import load_table_costs
from weft.calibration.table_costs import DEFAULT_TABLE_COSTS, TableCosts
from weft.optimizer.phantoms.collisions import Flows
from weft.optimizer.phantoms.feeding_graph import FeedingGraph
from weft.optimizer.phantoms.relation import Relation
from weft.optimizer.phantoms.rollup import GroupBy, RollUp, roll_up
from weft.spark.options import TABLE_MEMORY, Aggregation, Phantoming
from weft.spark.partial.hash_tables import HashTables, make_lfta, tabled
from weft.spark.partial.hash_tables import relation as tabled_relation
from weft.spark.partial.sampling import GroupSample, take_sample, take_signatures
from weft.spark.physical.columns import PhysicalColumns
from weft.spark.physical.filter_classes import apart
from weft.spark.physical.signature import Signature
from weft.spark.physical.slicing import slice_of, union_edges
from weft.spark.physical.statistics import SignatureCounts
from weft.spark.physical.tables import NativeFeed, NativeTable

FEWEST = 1_000
"""Rows that say nothing yet about how groups repeat: fewer, and the next batches are asked."""

RECOUNT = 64
"""Batches after which groups are counted again."""

GATHERED = 0.5
"""Partials for a row, above which rows are sent instead: partials are sent twice, by group and by bucket."""

CLEARLY = 0.6
"""What tables outside Spark may cost of Spark's own aggregation, to be taken. Prices are measured on one group-by; with
many that do not gather, tables take longer than theirs say: `weft bench groupbys` prints it as `uniform_over_lfta`.
"""

CANDIDATES = 64
"""Relations counted beside the group-bys: unions of two first, and the union of all."""


@dataclass(frozen=True, slots=True)
class Shared:
    """The tables that rows come to, with their physical columns."""

    tables: tuple[NativeTable, ...]
    columns: PhysicalColumns


class Phantoms:
    """The choice of a job, kept between batches and plans.

    `always` has one phantom feed whatever it can; `never` none; `auto` asks what they cost.
    """

    def __init__(self, how: Phantoming = "auto", groupings: Aggregation = "auto", memory: int = TABLE_MEMORY) -> None:
        self.how: Phantoming = how
        self.groupings: Aggregation = groupings
        self.memory = memory
        self.found: RollUp | None = None
        """What was chosen last, and what it saves; None: nothing has been counted yet."""
        self.lfta: HashTables | None = None
        """The tables instead, where they are cheaper or wanted."""
        self.flows: Flows | None = None
        """How long rows of a group stayed together when tables were thought of; None: they were not."""
        self._feeds: tuple[NativeFeed, ...] = ()
        self._wait, self._pause = 0, 1
        self.signatures: dict[tuple[str, ...], SignatureCounts] = {}
        """How often each occurs, by the keys of a grouping."""
        self.signed = 0
        """How often they were counted."""
        self._filters: dict[tuple[str, ...], set[str]] = {}
        self._unsigned, self._unsigned_pause = 0, 1

    def occurrences(self, stream: DataFrame, filters: Sequence[str], keys: tuple[str, ...]) -> SignatureCounts | None:
        """What is known of these filters' signatures. A table can be looked into at once; of a stream, what batches
        showed."""
        if self._knows(filters, keys):
            return self.signatures[keys]
        if stream.isStreaming or len(filters) < 2:
            return None
        try:
            self._keep(take_signatures(stream, {keys: filters}))
            self._unsigned = RECOUNT
        except PySparkException:
            # A row that a filter fails on: the run says so, with the query's name.
            return None
        return self.signatures.get(keys)

    def _knows(self, filters: Iterable[str], keys: tuple[str, ...]) -> bool:
        return keys in self.signatures and set(filters) <= self.signatures[keys].passed.keys()

    def _keep(self, found: Mapping[tuple[str, ...], SignatureCounts]) -> bool:
        """Whether some of it tells anything."""
        enough = {keys: some for keys, some in found.items() if some.rows >= FEWEST}
        self.signatures |= enough
        self.signed += bool(enough)
        return bool(enough)

    def _count_signatures(self, timed: DataFrame, feeds: Sequence[NativeFeed]) -> None:
        """When filters come or go, and from time to time: what classes they are in follows from it."""
        filters: dict[tuple[str, ...], set[str]] = {}
        for feed in feeds:
            filters.setdefault(tuple(feed.keys.values()), set()).update(feed.signature.filters)
        changed, self._filters = filters != self._filters, filters
        if self._unsigned > 0 and not changed:
            self._unsigned -= 1
            return
        classed = apart(filters)
        if changed and all(self._knows(some, keys) for keys, some in classed.items()):
            return
        told = not classed or self._keep(take_signatures(timed, classed))
        self._unsigned_pause = RECOUNT if told else min(RECOUNT, 2 * self._unsigned_pause)
        self._unsigned = self._unsigned_pause - 1

    def share(
        self, timed: DataFrame, feeds: tuple[NativeFeed, ...], bound: PhysicalColumns
    ) -> Shared | HashTables | None:
        """The tables for a batch; None: each feed takes rows."""
        self._count_signatures(timed, feeds)
        forced = self.groupings == "lfta"
        if not forced and self.how == "never":
            return None
        if not _alike(feeds, self._feeds):
            self._feeds, self.found, self.lfta, self._wait, self._pause = feeds, None, None, 0, 1
        if not forced and sum(feed.rolls for feed in feeds) < 2:
            return None
        if self.how == "always" and not forced:
            self.found = _one_for_all(feeds)
        elif self._wait == 0:
            self._ask(timed, feeds, bound)
            self._pause = RECOUNT if self.found else min(RECOUNT, 2 * self._pause)
            self._wait = self._pause
        self._wait -= 1
        if self.lfta is not None:
            return self.lfta
        return _tables(self.found, feeds, bound) if self.found and self.found.shares else None

    def _ask(self, timed: DataFrame, feeds: tuple[NativeFeed, ...], bound: PhysicalColumns) -> None:
        """What is cheapest by the groups of these rows; where they are too few to tell, all stays as it is."""
        forced = self.groupings == "lfta"
        # Default costs would not tell which of both is cheaper.
        measured = load_table_costs()
        asked = forced or (self.groupings == "auto" and measured is not None)
        able = [feed for feed in feeds if tabled(feed, bound)] if asked else []
        if not forced and len(able) < len(feeds):
            able = []
        wanted = _Wanted.of(feeds)
        relations = [tabled_relation(feed) for feed in able]
        together = frozenset[str]().union(*relations)
        sample = take_sample(timed, [*wanted.relations, *([*relations, together] if able else [])])
        if sample.rows < FEWEST and not (forced and able and self.lfta is None):
            return
        prices = measured or DEFAULT_TABLE_COSTS
        native = wanted.chosen(sample, prices)
        self.found, self.lfta = native, None
        if able:
            counts = {r: sample.groups(r) for r in [*relations, together]}
            self.flows = sample.flows(together)
            lfta = make_lfta(able, bound, counts, sample.rows, self.flows, self.memory, prices.tables, self.how)
            if forced or prices.row + lfta.cost < CLEARLY * native.cost * prices.native_probe:
                self.lfta = lfta

    def scattered(self, feeds: Sequence[NativeFeed]) -> list[NativeFeed]:
        """Feeds whose rows hardly gather where they are read: those are sent as they are, and aggregated on arrival."""
        if self.found is None:
            return []
        asked = zip(feeds, self.found.asked, strict=True)
        return [feed for feed, group_by in asked if group_by.partials > GATHERED and feed.scatters]

    def sent_as_rows(self, feeds: Sequence[NativeFeed], able: Sequence[NativeFeed], buckets: int) -> list[NativeFeed]:
        """Feeds whose rows are sent as they are, once to each bucket, and told apart there; `able` are those that can.

        Many feeds share a row's copies. Where its groups are hashed, the next feed finds the row in its bucket already
        but for `alone` of the rows, so that it comes along even if it gathers well. Without others every row is sent
        for it alone, and the rule is that of `scattered`.
        """
        if self.found is None:
            return []
        partials = {f.layout.number: g.partials for f, g in zip(feeds, self.found.asked, strict=True)}
        chosen: set[int] = set()
        alone = 1.0
        for number in sorted((feed.layout.number for feed in able), key=lambda n: (-partials[n], n)):
            if partials[number] <= GATHERED * alone:
                break
            chosen.add(number)
            alone *= 1 - 1 / buckets
        return [feed for feed in feeds if feed.layout.number in chosen]

    def above(self, feeds: Sequence[NativeFeed]) -> list[Relation | None]:
        """The keys of the phantom that each feed is made from; None: from rows, or not known yet."""
        if self.lfta is not None:
            fed = self.lfta.fed_by()
            return [fed.get(feed.layout.number) for feed in feeds]
        known = self.found is not None and len(self.found.tables) == len(feeds)
        return list(self.found.tables) if self.found is not None and known else [None] * len(feeds)

    @property
    def told(self) -> str | None:
        """What feeds what, in short; None: nothing has been counted yet."""
        if self.found is None:
            return None
        return str(self.found.configuration) if self.lfta is None else f"{self.lfta.configuration} in bounded tables"

    @property
    def flow(self) -> float | None:
        """Rows of a group that come one after the other, where that had a say in what feeds what."""
        return None if self.lfta is None or self.flows is None else self.flows.by_depth[0]

    def explain(self) -> list[str]:
        """What feeds what, as far as it is known, and what that saves."""
        if self.lfta is not None:
            return self.lfta.explain((load_table_costs() or DEFAULT_TABLE_COSTS).row)
        if self.found is None:
            return []
        said = f"  fed  {self.found.configuration}"
        if self.how == "auto":
            said += f"   a row costs {self.found.cost:.2f} probes, {self.found.unshared:.2f} without phantoms"
        return [said]


def _alike(feeds: tuple[NativeFeed, ...], others: tuple[NativeFeed, ...]) -> bool:
    """Whether the same is counted for both: trees and techniques make no difference."""
    return [_counted([f]) for f in feeds] == [_counted([f]) for f in others]


def _relation(feed: NativeFeed) -> Relation:
    return frozenset(feed.keys.values())


def _one_for_all(feeds: Sequence[NativeFeed]) -> RollUp:
    everything: Relation = frozenset().union(*(_relation(f) for f in feeds if f.rolls))
    asked = tuple(GroupBy(_relation(f), 0.0, f.rolls) for f in feeds)
    return RollUp(asked, tuple(everything if f.rolls else None for f in feeds), 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What must be counted to choose what Spark rolls up from what."""

    feeds: tuple[NativeFeed, ...]
    candidates: dict[Relation, tuple[str, ...]]
    """What tells partials apart in each relation that could feed several."""

    @classmethod
    def of(cls, feeds: tuple[NativeFeed, ...]) -> _Wanted:
        rolling = [_relation(f) for f in feeds if f.rolls]
        if not rolling:
            return cls(feeds, {})
        everything: Relation = frozenset().union(*rolling)
        graph = FeedingGraph.of(rolling)
        wider = dict.fromkeys([*graph.queries, everything, *sorted(graph.phantoms, key=len)[:CANDIDATES]])
        fed = {r: [f for f in feeds if f.rolls and _relation(f) <= r] for r in wider}
        return cls(feeds, {r: _counted(below) for r, below in fed.items() if len(below) > 1})

    @property
    def relations(self) -> list[tuple[str, ...]]:
        return [*(_counted([feed]) for feed in self.feeds), *self.candidates.values()]

    def chosen(self, sample: GroupSample, prices: TableCosts) -> RollUp:
        asked = [GroupBy(_relation(f), sample.partials(_counted([f])), f.rolls) for f in self.feeds]
        return roll_up(asked, {r: sample.partials(t) for r, t in self.candidates.items()}, prices.native)


def _counted(feeds: Sequence[NativeFeed]) -> tuple[str, ...]:
    """What tells partials apart in a table that these feeds are made from."""
    keys = dict.fromkeys(key for feed in feeds for key in feed.keys.values())
    signature = Signature.union(feed.signature for feed in feeds)
    return (slice_of(union_edges([feed.layout.edges for feed in feeds])), *signature.words, *keys)


def _tables(found: RollUp, feeds: Sequence[NativeFeed], bound: PhysicalColumns) -> Shared:
    columns = PhysicalColumns()
    together: dict[Relation, list[NativeFeed]] = {}
    alone: list[NativeFeed] = []
    for feed, table in zip(feeds, found.tables, strict=True):
        (alone if table is None else together.setdefault(table, [])).append(feed)
    groups = [*together.values(), *([feed] for feed in alone)]
    return Shared(tuple(NativeTable.of(group, bound, columns) for group in groups), columns)
