"""From queries to a plan that is bound to a stream: the same steps when a job is woven and when it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from pyspark.sql import DataFrame

from weft.calibration.weights import Weights, load_weights
from weft.model import ACQ, Workload, at_intervals
from weft.optimizer import TECHNIQUES, Cost, Stream, optimize
from weft.optimizer.choose_techniques import Latency, load_speeds, serve
from weft.optimizer.cost.seconds import estimate
from weft.optimizer.incremental import Curve, change_plan
from weft.plan import Plan
from weft.spark.options import TimeOptions
from weft.spark.physical.analyzer import AnalysisCache, remembering
from weft.spark.physical.binder import bind_plan
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.rollup import Phantoms
from weft.spark.physical.statistics import StreamStatistics
from weft.sql import refuse

Groupings = Sequence[tuple[str, ...]]
"""Key expressions that have their numbers already, in this order."""

DEFAULT_TOLERANCE = 0.1
"""How far above the plan-cost curve a mended plan may cost before all queries are planned anew."""


@dataclass(frozen=True, slots=True)
class Planner:
    """What stays the same however the queries of a job change."""

    stream: DataFrame
    event_time: str
    strategy: str
    technique: str
    rate: float
    latency: Latency = "batch"
    cost: str = "operations"
    """What plans are compared by; one that is mended stays near the one that it comes from."""
    tolerance: float | None = DEFAULT_TOLERANCE
    """None: a mended plan is never made anew."""
    times: TimeOptions = field(default_factory=TimeOptions)
    known: AnalysisCache = field(default_factory=AnalysisCache, compare=False, repr=False)
    phantoms: Phantoms = field(default_factory=Phantoms, compare=False, repr=False)
    synopsis_limit: int | None = None
    """Bytes of values that all buckets may keep together; None: as many as come."""
    buckets: int = 1
    """That trees without keys are placed in."""

    @property
    def deviation(self) -> Fraction | None:
        return None if self.tolerance is None else Fraction(str(self.tolerance))

    def weave(self, workload: Workload, groupings: Groupings = ()) -> tuple[Plan, PhysicalPlan]:
        """A plan for all the queries, and its binding."""
        for acq in workload:
            self._check(acq, workload[0])
        plan = self._optimize(workload, self.rate)
        return plan, self.bind(plan, groupings)

    def mend(
        self, plan: Plan, joining: Sequence[ACQ], leaving: Sequence[str], groupings: Groupings
    ) -> tuple[Plan, PhysicalPlan]:
        """The plan with some queries more and some less; trees that nothing happens to stay as they are."""
        for acq in joining:
            self._check(acq, plan.workload[0])
        mended, _ = change_plan(plan, list(map(at_intervals, joining)), leaving, Cost(TECHNIQUES[self.technique]))
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
        priced, _ = change_plan(replace(plan, rate=rate), (), (), Cost(TECHNIQUES[self.technique]))
        return self._served(priced)

    def price(self, plan: Plan, stream: Stream) -> float:
        """What plans are compared by, for such a stream."""
        weights = self._weights()
        return float(plan.cost) if weights is None else estimate(plan, weights, stream).seconds

    def is_off(self, plan: Plan, counted: StreamStatistics, seen: StreamStatistics, tolerance: Fraction) -> bool:
        """Whether the plan's estimate is, for the stream as it was seen."""
        if self.cost == "operations":  # a plan's operations hang on nothing else, and on that less than its trees do
            return abs(seen.rate - counted.rate) > tolerance * counted.rate
        expected = self.price(plan, counted.stream)
        return abs(self.price(self.at_rate(plan, seen.rate), seen.stream) - expected) > tolerance * expected

    def bind(self, plan: Plan, groupings: Groupings) -> PhysicalPlan:
        with remembering(self.known):
            physical = bind_plan(plan, self.stream, self.event_time, groupings, self.phantoms, self.buckets)
        return physical.with_layout(self.times.keep(physical.layout))

    def _optimize(self, workload: Workload, rate: float | Fraction, stream: Stream | None = None) -> Plan:
        weights = self._weights()
        plan = optimize(workload, rate, self.strategy, self.technique, cost=self.cost, weights=weights, stream=stream)
        return self._served(plan)

    def _weights(self) -> Weights | None:
        return load_weights() if self.cost == "seconds" else None

    def _served(self, plan: Plan) -> Plan:
        return serve(plan, load_speeds(), latency=self.latency)

    def _check(self, acq: ACQ, first: ACQ) -> None:
        if acq.source != first.source:
            raise refuse(
                acq,
                f"this query reads {acq.source}, another {first.source}: a job weaves the queries of one stream",
                "Weave the queries of each stream by themselves.",
                fragment=acq.source,
            )
        if acq.event_time.strip("`").lower() != self.event_time.strip("`").lower():
            raise refuse(
                acq,
                f"its window is over {acq.event_time}, but the stream's event time is {self.event_time}",
                f"Use window({self.event_time}, ...), or weave with event_time={acq.event_time!r}.",
                fragment=acq.event_time,
            )
