"""Planning all queries anew beside the running job, in a thread, one plan at a time.

It begins with a basis and ends with what was found. Meanwhile queries come and go: whether what was found still holds
is for the one to say who is told of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from weft.optimizer import Stream
from weft.optimizer.incremental import Curve, deviates, excess
from weft.plan import Plan
from weft.spark.physical.filter_classes import FilterClasses, better_classes
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import Planner
from weft.spark.physical.statistics import StreamStatistics


@dataclass(frozen=True, slots=True)
class Basis:
    """What planning begins with."""

    version: int
    plan: Plan
    groupings: tuple[tuple[str, ...], ...]
    """That have their numbers."""
    classes: tuple[FilterClasses, ...]
    """That filters are in."""

    def holds(self, now: Basis) -> bool:
        """Whether no other change was faster."""
        return (self.version, self.groupings) == (now.version, now.groupings)


@dataclass(frozen=True, slots=True)
class Learned:
    """What plans are measured by."""

    curve: Curve
    stream: Stream = field(default_factory=Stream)
    """What the plan counts on beside its rate."""
    signed: int = 0
    """How often signatures had been counted when classes were last thought of."""


@dataclass(frozen=True, slots=True)
class Found:
    """What planning ends with."""

    basis: Basis
    learned: Learned
    reason: str = ""
    plan: Plan | None = None
    """None: the plan of the basis stays, at the price that it has there."""
    physical: PhysicalPlan | None = None
    failed: str | None = None
    """Why nothing was found: the job's own plan stays, at its own price."""


class Replanner:
    """Called under the lock of the one that has it, who takes that lock when `found` is told, in the thread."""

    def __init__(self, planner: Planner, plan: Plan, found: Callable[[Found], None]) -> None:
        self._planner = planner
        self._found = found
        self._learned = Learned(Curve(((len(plan.workload), plan.cost),)))
        self._failed: str | None = None
        self.thread: threading.Thread | None = None
        """None: no plan is being made."""

    def plan_where_due(self, basis: Basis) -> None:
        """Where the mended plan has come too far from one that is made anew."""
        curve = self._learned.curve
        if self.thread is None and deviates(curve, basis.plan, self._planner.options.deviation):
            above = float(excess(curve, basis.plan))
            said = f"planned anew: {above:.1%} above what the curve lets expect"
            self._begin(self._plan_anew, basis, self._learned, said)

    def observe(self, basis: Basis, seen: StreamStatistics) -> None:
        """Where the plan's estimate is off by what the stream is like."""
        tolerance, counted = self._planner.options.deviation, StreamStatistics(basis.plan.rate, self._learned.stream)
        if tolerance is None or self.thread is not None:
            return
        if self._planner.is_off(basis.plan, counted, seen, tolerance):
            now = replace(basis, plan=self._planner.at_rate(basis.plan, seen.rate))
            said = "; ".join(seen.differences(counted, tolerance))
            # What plans cost for another stream says nothing of this one.
            learned = replace(self._learned, curve=Curve(()), stream=seen.stream)
            self._begin(self._plan_anew, now, learned, f"planned anew: {said}")

    def weigh_classes(self, basis: Basis) -> None:
        """Where signatures were counted since classes of filters were last thought of."""
        tolerance, signed = self._planner.options.deviation, self._planner.phantoms.signed
        if tolerance is not None and self.thread is None and signed != self._learned.signed:
            self._begin(self._class_anew, basis, replace(self._learned, signed=signed), tolerance)

    def end(self, found: Found, holds: bool) -> str | None:
        """What another change overtook leaves no more than its point on the curve.

        Says why planning failed: once, though it may be tried and fail again after every few batches.
        """
        self.thread = None
        self._learned = found.learned if holds else replace(self._learned, curve=found.learned.curve)
        before, self._failed = self._failed, found.failed
        return None if found.failed == before else found.failed

    def _begin(self, look: Callable[..., Found], basis: Basis, learned: Learned, *rest: object) -> None:
        self.thread = threading.Thread(
            target=self._look, args=(look, basis, learned, *rest), name="weft-planner", daemon=True
        )
        self.thread.start()

    def _look(self, look: Callable[..., Found], basis: Basis, learned: Learned, *rest: object) -> None:
        """In the thread. The job has a plan to go on with, so a failure here does not end it: it is told of."""
        try:
            found = look(basis, learned, *rest)
        except Exception as error:
            said = f"planning beside the job failed, the plan stays: {type(error).__name__}: {error}"
            found = Found(basis, replace(self._learned, signed=learned.signed), failed=said)
        self._found(found)

    def _plan_anew(self, basis: Basis, learned: Learned, reason: str) -> Found:
        seen = StreamStatistics(basis.plan.rate, learned.stream)
        plan, curve = self._planner.anew(basis.plan.workload, learned.curve, seen)
        found = Found(basis, replace(learned, curve=curve))
        # What is there may be the better plan; then only the curve learns from the other.
        if self._planner.price(plan, seen.stream) < self._planner.price(basis.plan, seen.stream):
            found = replace(found, reason=reason, plan=plan, physical=self._planner.bind(plan, basis.groupings))
        return found

    def _class_anew(self, basis: Basis, learned: Learned, tolerance: Fraction) -> Found:
        """Where other classes make rows cheaper by more than the tolerance, the plan is bound with those."""
        found = Found(basis, learned)
        known = partial(self._planner.phantoms.occurrences, self._planner.stream)
        reason = better_classes(basis.classes, known, tolerance)
        if reason is not None:
            bound = self._planner.bind(basis.plan, basis.groupings)
            found = replace(found, reason=reason, plan=basis.plan, physical=bound)
        return found
