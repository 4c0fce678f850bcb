"""Replanning all queries beside the running job, in a thread, one plan at a time.

It starts with a request and ends with a result. Meanwhile queries join and leave: the receiver of the result decides
whether it is still valid.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from weft.optimizer import Stream
from weft.optimizer.incremental import Curve, deviates, excess
from weft.plan import Plan
from weft.spark.logs import log_event
from weft.spark.physical.filter_classes import FilterClasses, better_classes
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner
from weft.spark.physical.statistics import StreamStatistics

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReplanRequest:
    """What replanning starts from."""

    version: int
    plan: Plan
    groupings: tuple[tuple[str, ...], ...]
    """Groupings that have numbers."""
    classes: tuple[FilterClasses, ...]
    """The classes of the filters."""
    statistics: StreamStatistics
    """Of the stream, as batches measured it."""

    def holds(self, now: ReplanRequest) -> bool:
        """Whether nothing changed in the meantime."""
        return (self.version, self.groupings) == (now.version, now.groupings)


@dataclass(frozen=True, slots=True)
class PlanningHistory:
    """What plans are compared with."""

    curve: Curve
    stream: Stream = field(default_factory=Stream)
    """What the plan assumes about the stream beside its rate."""
    signed: int = 0
    """How often signatures had been counted when filter classes were last chosen."""


@dataclass(frozen=True, slots=True)
class ReplanResult:
    """What replanning ends with."""

    request: ReplanRequest
    history: PlanningHistory
    reason: str = ""
    plan: Plan | None = None
    """None: the plan of the request stays, with its cost."""
    physical: PhysicalPlan | None = None
    failed: str | None = None
    """Why replanning failed: the plan of the job stays."""


class Replanner:
    """Its owner calls it under a lock, and takes that lock in `on_result`, which the thread calls."""

    def __init__(self, planner: Planner, plan: Plan, on_result: Callable[[ReplanResult], None]) -> None:
        self._planner = planner
        self._on_result = on_result
        self._history = PlanningHistory(Curve(((len(plan.workload), plan.cost),)))
        self._failed: str | None = None
        self.thread: threading.Thread | None = None
        """None: it is not replanning."""

    def replan_if_due(self, request: ReplanRequest) -> None:
        """Replan if the amended plan has drifted too far from a fresh one."""
        curve = self._history.curve
        if self.thread is None and deviates(curve, request.plan, self._planner.options.deviation):
            above = float(excess(curve, request.plan))
            reason = f"replanned: {above:.1%} above the cost that earlier plans predict"
            self._begin(self._replan, request, self._history, reason)

    def observe(self, request: ReplanRequest, measured: StreamStatistics) -> None:
        """Replan if the plan's estimate does not fit the stream."""
        tolerance, assumed = self._planner.options.deviation, StreamStatistics(request.plan.rate, self._history.stream)
        if tolerance is None or self.thread is not None:
            return
        if self._planner.is_off(request.plan, assumed, measured, tolerance):
            now = replace(request, plan=self._planner.at_rate(request.plan, measured.rate))
            reason = "; ".join(measured.differences(assumed, tolerance))
            # Costs for another stream say nothing about this one.
            history = replace(self._history, curve=Curve(()), stream=measured.stream)
            self._begin(self._replan, now, history, f"replanned: {reason}")

    def weigh_classes(self, request: ReplanRequest) -> None:
        """Choose filter classes again if signatures were counted since the last choice."""
        tolerance, signed = self._planner.options.deviation, request.statistics.signature_samples
        if tolerance is not None and self.thread is None and signed != self._history.signed:
            self._begin(self._reclassify, request, replace(self._history, signed=signed), tolerance)

    def end(self, result: ReplanResult, holds: bool) -> str | None:
        """A result that another change overtook adds only its point to the curve.

        Returns why replanning failed: once, though it may be tried and fail again after every few batches.
        """
        self.thread = None
        self._history = result.history if holds else replace(self._history, curve=result.history.curve)
        before, self._failed = self._failed, result.failed
        return None if result.failed == before else result.failed

    def _begin(
        self, work: Callable[..., ReplanResult], request: ReplanRequest, history: PlanningHistory, *rest: object
    ) -> None:
        log_event(logger, "replanning starts", queries=len(request.plan.workload))
        self.thread = threading.Thread(
            target=self._run, args=(work, request, history, *rest), name="weft-planner", daemon=True
        )
        self.thread.start()

    def _run(
        self, work: Callable[..., ReplanResult], request: ReplanRequest, history: PlanningHistory, *rest: object
    ) -> None:
        """In the thread. The job has a valid plan, so a failure here does not stop it; it is reported."""
        try:
            result = work(request, history, *rest)
        except Exception as error:
            reason = f"replanning failed, the plan stays: {type(error).__name__}: {error}"
            result = ReplanResult(request, replace(self._history, signed=history.signed), failed=reason)
        if result.failed is not None:
            log_event(logger, result.failed, level=logging.WARNING)
        elif result.plan is None:
            log_event(logger, "replanning keeps the plan")
        else:
            log_event(logger, "replanning finds a better plan", reason=result.reason, cost=float(result.plan.cost))
        self._on_result(result)

    def _replan(self, request: ReplanRequest, history: PlanningHistory, reason: str) -> ReplanResult:
        statistics = replace(request.statistics, rate=request.plan.rate, stream=history.stream)
        plan, curve = self._planner.replan(request.plan.workload, history.curve, statistics)
        result = ReplanResult(request, replace(history, curve=curve))
        # The active plan may be better; then only the curve learns from the new one.
        if self._planner.price(plan, statistics.stream) < self._planner.price(request.plan, statistics.stream):
            physical = self._planner.bind(plan, statistics, request.groupings)
            result = replace(result, reason=reason, plan=plan, physical=physical)
        return result

    def _reclassify(self, request: ReplanRequest, history: PlanningHistory, tolerance: Fraction) -> ReplanResult:
        """If other filter classes make rows cheaper by more than the tolerance, the plan uses them."""
        result = ReplanResult(request, history)
        reason = better_classes(request.classes, request.statistics.signatures_of, tolerance)
        if reason is not None:
            bound = self._planner.bind(request.plan, request.statistics, request.groupings)
            result = replace(result, reason=reason, plan=request.plan, physical=bound)
        return result
