"""From queries to a plan that is bound to a stream: the same steps when a job is woven and when it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pyarrow as pa
from pyspark.sql import DataFrame

from weft.calibration.file import load_speeds, load_weights
from weft.calibration.weights import Weights
from weft.engine import Layout
from weft.engine.layout import MARKS, TreeLayout
from weft.model import ACQ, Workload, at_intervals
from weft.optimizer import TECHNIQUES, Cost, Stream, optimize
from weft.optimizer.choose_techniques import serve
from weft.optimizer.cost.seconds import estimate
from weft.optimizer.incremental import Curve, change_plan
from weft.plan import Plan
from weft.spark.options import JobOptions, TimeOptions
from weft.spark.physical.analyzer import AnalysisCache, remembering
from weft.spark.physical.binder import bind_plan
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.rollup import Phantoms
from weft.spark.physical.statistics import StreamStatistics
from weft.sql import refuse

Groupings = Sequence[tuple[str, ...]]
"""Key expressions that have their numbers already, in this order."""


@dataclass(frozen=True, slots=True)
class Planner:
    """What stays the same while the queries of a job change."""

    stream: DataFrame
    options: JobOptions = field(default_factory=JobOptions)
    known: AnalysisCache = field(default_factory=AnalysisCache, compare=False, repr=False)
    phantoms: Phantoms = field(default_factory=Phantoms, compare=False, repr=False)
    buckets: int = 1
    """That trees without keys are placed in."""

    def weave(self, workload: Workload, groupings: Groupings = ()) -> tuple[Plan, PhysicalPlan]:
        """A plan for all the queries, and its binding."""
        for acq in workload:
            self._check(acq, workload[0])
        plan = self._optimize(workload, self.options.rate)
        return plan, self.bind(plan, groupings)

    def mend(
        self, plan: Plan, joining: Sequence[ACQ], leaving: Sequence[str], groupings: Groupings
    ) -> tuple[Plan, PhysicalPlan]:
        """The plan with some queries more and some less; trees that nothing happens to stay as they are."""
        for acq in joining:
            self._check(acq, plan.workload[0])
        mended, _ = change_plan(plan, list(map(at_intervals, joining)), leaving, self._cost)
        mended = self._served(mended)
        return mended, self.bind(mended, groupings)

    def preview(self, plan: Plan, joining: Sequence[ACQ], groupings: Groupings) -> Plan:
        """The plan that `mend` would make for queries more; nothing is remembered of them."""
        return replace(self, known=self.known.copy()).mend(plan, joining, (), groupings)[0]

    def anew(self, workload: Workload, curve: Curve, seen: StreamStatistics) -> tuple[Plan, Curve]:
        """A plan for all the queries, which the curve learns from. It has a slope of its own from two plans on."""
        if len(curve.points) < 2 and len(workload) > 1:
            half = self._optimize(Workload(workload[: len(workload) // 2]), seen.rate, seen.stream)
            curve = Curve(((len(half.workload), half.cost), *curve.points))
        plan = self._optimize(workload, seen.rate, seen.stream)
        return plan, curve.and_then(plan)

    def at_rate(self, plan: Plan, rate: Fraction) -> Plan:
        """The same trees, and what they cost when the stream brings so many rows a second."""
        priced, _ = change_plan(replace(plan, rate=rate), (), (), self._cost)
        return self._served(priced)

    def price(self, plan: Plan, stream: Stream) -> float:
        """What plans are compared by, for such a stream."""
        weights = self._weights()
        return float(plan.cost) if weights is None else estimate(plan, weights, stream).seconds

    def is_off(self, plan: Plan, counted: StreamStatistics, seen: StreamStatistics, tolerance: Fraction) -> bool:
        """Whether the plan's estimate is, for the stream as it was seen."""
        if self.options.cost == "operations":  # they depend on the rate alone, and less than a plan's trees do
            return abs(seen.rate - counted.rate) > tolerance * counted.rate
        expected = self.price(plan, counted.stream)
        return abs(self.price(self.at_rate(plan, seen.rate), seen.stream) - expected) > tolerance * expected

    def bind(self, plan: Plan, groupings: Groupings) -> PhysicalPlan:
        with remembering(self.known):
            physical = bind_plan(plan, self.stream, self.options.event_time, groupings, self.phantoms, self.buckets)
        return physical.with_layout(keep_slices(physical.layout, self.options.times))

    def _optimize(self, workload: Workload, rate: float | Fraction, stream: Stream | None = None) -> Plan:
        options, weights = self.options, self._weights()
        plan = optimize(
            workload, rate, options.strategy, options.technique, cost=options.cost, weights=weights, stream=stream
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
    """The layout with what it must keep, and with marks on the answers where windows may be updated."""
    layout = replace(layout, lateness=times.allowed_lateness, retain=times.retention)
    if not times.allowed_lateness:
        return layout

    def marked(tree: TreeLayout) -> TreeLayout:
        queries = tuple(replace(q, schema=pa.schema([*q.schema, *MARKS])) for q in tree.queries)
        return replace(tree, queries=queries)

    return layout.with_trees(marked)
