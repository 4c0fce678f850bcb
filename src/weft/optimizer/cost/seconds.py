"""Seconds of work per second of stream that a plan takes, from the calibrated weights of this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf

from weft.calibration.weights import Weights
from weft.model import PlanError
from weft.plan.logical import Plan
from weft.plan.value_memory import Synopsis, synopses

MICROS = 1_000_000


class BadStream(PlanError):
    """Statistics that no stream has."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds per second of stream, term by term: a plan whose sum is above 1 falls behind."""

    batches: float
    rows: float
    partials: float
    kept: float
    operations: float
    answers: float
    values: float = 0.0
    """Values that percentiles, distinct counts and the like keep: sent, kept, moved in and out of windows."""

    @property
    def seconds(self) -> float:
        return float(sum(asdict(self).values()))


@dataclass(frozen=True, slots=True)
class Stream:
    """Statistics, beside the rate, that the seconds of a plan depend on."""

    groups: float = 1.0
    """Groups that have rows in a slice: each makes one partial. 1: queries without keys."""
    selectivity: float = 1.0
    """The share of the rows that pass some filter; the others are read, but make no partial."""
    width: float = 1.0
    """Time of a partial relative to one with a count and a sum, which is what `weft calibrate` measures."""
    batch_seconds: float = 10.0
    """Seconds of stream per batch."""

    def __post_init__(self) -> None:
        for name in ("groups", "width", "batch_seconds"):
            if not 0 < getattr(self, name) < inf:
                raise BadStream(f"{name} of a stream must be above 0, got {getattr(self, name)}")
        if not 0 <= self.selectivity <= 1:
            raise BadStream(f"selectivity is a share of the rows between 0 and 1, got {self.selectivity}")


def estimate(plan: Plan, weights: Weights, stream: Stream | None = None) -> Estimate:
    """The estimate of a plan for a stream with these statistics.

    A slice makes one partial per group that has a row in it, so there are no more partials than passing rows.
    """
    stream = stream or Stream()
    rate, groups, batch = float(plan.rate), stream.groups, stream.batch_seconds
    passing = rate * stream.selectivity
    made = sum(min(passing, float(feed.edge_rate) * groups) for feed in plan.feeds)
    folded = sum(
        min(passing, float(feed.edge_rate) * groups)
        for feed in plan.feeds
        for tree in feed.trees
        if plan.trees[tree].edges != feed.edges
    )
    kept = final = answers = 0.0
    for tree in plan.trees:
        windows = [plan.workload.by_name[name].window for name in tree.queries]
        slices = min(passing, float(tree.edge_rate) * groups)
        kept += slices * max(w.length for w in windows) / MICROS
        final += slices * float(tree.omega)
        answers += sum(groups * MICROS / w.slide for w in windows)
    return Estimate(
        batches=(weights.batch + weights.query * len(plan.workload)) / batch,
        rows=rate * len(plan.feeds) * weights.row,
        partials=made * weights.partial * stream.width,
        kept=kept * weights.kept * stream.width / batch,
        operations=(folded + final) * weights.operation,
        answers=answers * weights.answer,
        values=_values(list(synopses(plan)), passing, weights, stream),
    )


def _values(kept_values: list[Synopsis], passing: float, weights: Weights, stream: Stream) -> float:
    """A value is sent once per feed, kept once per tree, and moved for every query."""
    groups = stream.groups
    sent = {(s.feed, s.component): s.values(passing, groups) for s in kept_values}
    kept = sum(s.values(passing, groups) * s.length / MICROS for s in kept_values)
    moves = sum(s.moves(passing, groups) for s in kept_values)
    each = weights.values
    return sum(sent.values()) * each.sent + kept * each.kept / stream.batch_seconds + moves * each.moved
