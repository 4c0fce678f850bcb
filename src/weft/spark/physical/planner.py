"""The one place where plans are made: from queries and statistics of the stream to a checked physical plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from weft.aggregates import EVENT_TIME
from weft.calibration.file import load_speeds, load_weights
from weft.calibration.weights import Weights
from weft.engine import Layout
from weft.engine.layout import MARKS, TreeLayout
from weft.model import ACQ, Workload, at_intervals
from weft.optimizer import TECHNIQUES, Cost, Stream, exact_rate, optimize
from weft.optimizer.choose_techniques import serve
from weft.optimizer.cost.seconds import estimate
from weft.optimizer.incremental import Curve, change_plan
from weft.plan import Plan
from weft.spark.options import JobOptions, TimeOptions
from weft.spark.physical.analyzer import AnalyzedStream
from weft.spark.physical.binder import Groupings, bind_plan
from weft.spark.physical.check import check_physical
from weft.spark.physical.plan import NativeFeed, PhysicalPlan
from weft.spark.physical.rollup import choose_partials
from weft.spark.physical.row_feeds import partial_types
from weft.spark.physical.statistics import StreamStatistics
from weft.spark.session import AS_WEFT_WRITES, settings_for
from weft.sql import refuse


@dataclass(frozen=True, slots=True)
class Planner:
    """What stays the same while the queries of a job change."""

    source: AnalyzedStream
    options: JobOptions = field(default_factory=JobOptions)
    buckets: int = 1
    """Trees without keys are pinned to some of them."""

    @property
    def stream(self) -> DataFrame:
        return self.source.frame

    def with_options(self, **changes: Any) -> Planner:
        """The same planner for other options."""
        return replace(self, options=replace(self.options, **changes))

    @property
    def assumed(self) -> StreamStatistics:
        """What is assumed about the stream before a row is read."""
        return StreamStatistics(exact_rate(self.options.rate))

    def plan(
        self, workload: Workload, statistics: StreamStatistics | None = None, groupings: Groupings = ()
    ) -> PhysicalPlan:
        """A plan for all the queries; without statistics, for the assumed stream."""
        for acq in workload:
            self._check(acq, workload[0])
        statistics = statistics or self.assumed
        return self.bind(self._optimize(workload, statistics), statistics, groupings)

    def amend(
        self,
        plan: Plan,
        joining: Sequence[ACQ],
        leaving: Sequence[str],
        statistics: StreamStatistics,
        groupings: Groupings,
    ) -> PhysicalPlan:
        """The plan after some queries joined and some left; other trees stay as they are."""
        for acq in joining:
            self._check(acq, plan.workload[0])
        amended, _ = change_plan(plan, list(map(at_intervals, joining)), leaving, self._cost)
        return self.bind(self._served(amended), statistics, groupings)

    def preview(self, plan: Plan, joining: Sequence[ACQ], statistics: StreamStatistics, groupings: Groupings) -> Plan:
        """The plan that `amend` would make if these queries joined; nothing of it is kept."""
        beside = replace(self, source=self.source.copy())
        return beside.amend(plan, joining, (), statistics, groupings).logical

    def replan(self, workload: Workload, curve: Curve, statistics: StreamStatistics) -> tuple[Plan, Curve]:
        """A plan for all the queries, which the curve learns from. It has a slope of its own from two plans on."""
        if len(curve.points) < 2 and len(workload) > 1:
            half = self._optimize(Workload(workload[: len(workload) // 2]), statistics)
            curve = Curve(((len(half.workload), half.cost), *curve.points))
        plan = self._optimize(workload, statistics)
        return plan, curve.and_then(plan)

    def bind(self, plan: Plan, statistics: StreamStatistics, groupings: Groupings = ()) -> PhysicalPlan:
        """The logical plan with every other decision."""
        bound = bind_plan(plan, self.source, self.options.event_time, groupings, statistics, self.buckets)
        kept = bound.with_layout(keep_slices(bound.layout, self.options.times))
        return self._with_partials(replace(kept, synopsis_limit=self.options.synopsis_limit), statistics)

    def refine(self, physical: PhysicalPlan, statistics: StreamStatistics) -> PhysicalPlan:
        """The same plan, with partials made as newer statistics say."""
        if physical.partials.counts is statistics.groups:
            return physical
        return self._with_partials(physical, statistics)

    def at_rate(self, plan: Plan, rate: Fraction) -> Plan:
        """The same trees, with their cost at another rate."""
        priced, _ = change_plan(replace(plan, rate=rate), (), (), self._cost)
        return self._served(priced)

    def price(self, plan: Plan, stream: Stream) -> float:
        """The cost that plans are compared by, for this stream."""
        weights = self._weights()
        return float(plan.cost) if weights is None else estimate(plan, weights, stream).seconds

    def is_off(self, plan: Plan, expected: StreamStatistics, measured: StreamStatistics, tolerance: Fraction) -> bool:
        """Whether the plan's estimate is wrong by more than the tolerance, for the stream as it was measured."""
        if self.options.cost == "operations":  # they depend on the rate alone, and less than a plan's trees do
            return abs(measured.rate - expected.rate) > tolerance * expected.rate
        price = self.price(plan, expected.stream)
        return abs(self.price(self.at_rate(plan, measured.rate), measured.stream) - price) > tolerance * price

    def _with_partials(self, physical: PhysicalPlan, statistics: StreamStatistics) -> PhysicalPlan:
        """The last decision, and the check of the complete plan."""

        def types(feeds: Sequence[NativeFeed]) -> Mapping[str, str]:
            with settings_for(self.stream.sparkSession, AS_WEFT_WRITES):
                return partial_types(self.stream.selectExpr("*", f"{physical.event_micros} AS {EVENT_TIME}"), feeds)

        bounded = not self.stream.isStreaming
        partials = choose_partials(physical, statistics.groups, self.options, bounded, types)
        planned = replace(physical, partials=partials)
        check_physical(planned)
        return planned

    def _optimize(self, workload: Workload, statistics: StreamStatistics) -> Plan:
        plan = optimize(
            workload,
            statistics.rate,
            self.options.strategy,
            self.options.technique,
            cost=self.options.cost,
            weights=self._weights(),
            stream=statistics.stream,
        )
        return self._served(plan)

    @property
    def _cost(self) -> Cost:
        return Cost(TECHNIQUES[self.options.technique])

    def _weights(self) -> Weights | None:
        return load_weights() if self.options.cost == "seconds" else None

    def _served(self, plan: Plan) -> Plan:
        return serve(plan, load_speeds(), latency=self.options.latency)

    def _check(self, acq: ACQ, first: ACQ) -> None:
        if acq.source != first.source:
            raise refuse(
                acq,
                f"this query reads {acq.source}, another {first.source}: a job weaves the queries of one stream",
                "Weave the queries of each stream by themselves.",
                fragment=acq.source,
            )
        if acq.event_time.strip("`").lower() != self.options.event_time.strip("`").lower():
            raise refuse(
                acq,
                f"its window is over {acq.event_time}, but the stream's event time is {self.options.event_time}",
                f"Use window({self.options.event_time}, ...), or weave with event_time={acq.event_time!r}.",
                fragment=acq.event_time,
            )


def keep_slices(layout: Layout, times: TimeOptions) -> Layout:
    """The layout with its allowed lateness and retention; answers have marks where windows may be updated."""
    layout = replace(layout, allowed_lateness=times.allowed_lateness, retention=times.retention)
    if not times.allowed_lateness:
        return layout

    def marked(tree: TreeLayout) -> TreeLayout:
        queries = tuple(replace(q, schema=pa.schema([*q.schema, *MARKS])) for q in tree.queries)
        return replace(tree, queries=queries)

    return layout.with_trees(marked)
