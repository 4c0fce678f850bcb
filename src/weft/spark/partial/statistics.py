"""Collecting statistics of the stream: an explicit step of a batch, before its partials are built.

Groups and signatures are counted on the first rows that arrive, and again from time to time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from weft.model import ACQ
from weft.spark.options import JobOptions
from weft.spark.partial.aggregate import timed
from weft.spark.partial.sampling import take_sample, take_signatures
from weft.spark.physical.expressions import signed
from weft.spark.physical.filter_classes import separable_filters
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.rollup import GroupingCandidates, counts_groups, partial_keys
from weft.spark.physical.statistics import SignatureCounts, StreamStatistics

FEWEST = 1_000
"""With fewer rows nothing is known about how groups repeat, and the next batches are sampled."""

RECOUNT = 64
"""Batches after which groups and signatures are counted again."""

Filters = Mapping[tuple[str, ...], set[str]]
"""By the keys of a grouping."""


class StatisticsCollector:
    """The statistics of a stream, and when its rows are sampled again. Batches use it one after the other."""

    def __init__(self, options: JobOptions, assumed: StreamStatistics) -> None:
        self._options = options
        self.statistics = assumed
        """The newest ones."""
        self._groups = _Pace()
        self._signatures = _Pace()
        self._feeds: tuple[tuple[str, ...], ...] = ()
        self._filters: Filters = {}

    def sample_table(self, table: DataFrame, queries: Iterable[ACQ]) -> StreamStatistics:
        """A bounded table can be sampled before planning: which filters its rows pass together."""
        filters: dict[tuple[str, ...], set[str]] = {}
        for query in queries:
            if query.where is not None:
                filters.setdefault(query.keys, set()).add(query.where)
        if classed := separable_filters(filters):
            try:
                self._keep_signatures(take_signatures(table, classed))
                self._signatures.rest()
            except PySparkException:
                pass  # A filter that Spark refuses, or that fails on a row: planning or the run names the query.
        return self.statistics

    def collect(self, rows: DataFrame, plan: PhysicalPlan) -> StreamStatistics:
        """Count what is due on the rows of a batch: at most one small Spark job for signatures, and two for groups."""
        self._count_signatures(rows, plan)
        self._count_groups(rows, plan)
        return self.statistics

    def _count_signatures(self, rows: DataFrame, plan: PhysicalPlan) -> None:
        """When filters join or leave, and from time to time; the classes of filters follow from it."""
        filters: dict[tuple[str, ...], set[str]] = {}
        for feed in plan.feeds:
            filters.setdefault(tuple(feed.keys.values()), set()).update(feed.signature.filters)
        changed, self._filters = filters != self._filters, filters
        if not changed and not self._signatures.is_due():
            return
        classed = separable_filters(filters)
        if changed and all(self.statistics.signatures_of(some, keys) is not None for keys, some in classed.items()):
            return
        self._signatures.counted(not classed or self._keep_signatures(take_signatures(timed(rows, plan), classed)))

    def _keep_signatures(self, counted: Mapping[tuple[str, ...], SignatureCounts]) -> bool:
        """Whether some counts have enough rows to be used."""
        enough = {keys: some for keys, some in counted.items() if some.rows >= FEWEST}
        if enough:
            self.statistics = replace(
                self.statistics,
                signatures={**self.statistics.signatures, **enough},
                signature_samples=self.statistics.signature_samples + 1,
            )
        return bool(enough)

    def _count_groups(self, rows: DataFrame, plan: PhysicalPlan) -> None:
        feeds = partial_keys(plan.feeds)
        if feeds != self._feeds:
            self._feeds, self._groups = feeds, _Pace()
            self.statistics = replace(self.statistics, groups=None)
        if not counts_groups(plan.feeds, self._options) or not self._groups.is_due():
            return
        candidates = GroupingCandidates.of(plan, self._options)
        sample = take_sample(signed(timed(rows, plan), plan.feeds), candidates.relations)
        # If the options demand hash tables, they are chosen by the first rows, however few.
        demanded = self._options.groupings == "lfta" and bool(candidates.tables) and self.statistics.groups is None
        if sample.rows >= FEWEST or demanded:
            self.statistics = replace(self.statistics, groups=sample.counts(candidates))
        self._groups.counted(self.statistics.groups is not None)


class _Pace:
    """When to count again: soon if there were too few rows, else after `RECOUNT` batches."""

    def __init__(self) -> None:
        self._wait, self._pause = 0, 1

    def is_due(self) -> bool:
        """To be called once per batch."""
        if self._wait > 0:
            self._wait -= 1
            return False
        return True

    def counted(self, enough: bool) -> None:
        """It was counted in this batch; `enough`: there were enough rows."""
        self._pause = RECOUNT if enough else min(RECOUNT, 2 * self._pause)
        self._wait = self._pause - 1

    def rest(self) -> None:
        self._wait = RECOUNT
