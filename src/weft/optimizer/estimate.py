"""Seconds of work that a plan takes for each second of stream, from what the terms take on this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from weft.optimizer.weights import Weights
from weft.plan.values import Plan

MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds a second of stream, term by term: a plan whose sum is above 1 falls behind."""

    batches: float
    rows: float
    partials: float
    kept: float
    operations: float
    answers: float

    @property
    def seconds(self) -> float:
        return float(sum(asdict(self).values()))


def estimate(plan: Plan, weights: Weights, *, groups: float = 1.0, batch_seconds: float = 10.0) -> Estimate:
    """What the plan takes with so many groups in every slice, and a batch for so many seconds of stream.

    A slice makes a partial for every group that has a row in it: never more partials than rows.
    """
    rate = float(plan.rate)
    made = sum(min(rate, float(feed.edge_rate) * groups) for feed in plan.feeds)
    folded = sum(
        min(rate, float(feed.edge_rate) * groups)
        for feed in plan.feeds
        for tree in feed.trees
        if plan.trees[tree].edges != feed.edges
    )
    kept = final = answers = 0.0
    for tree in plan.trees:
        windows = [plan.workload.by_name[name].window for name in tree.queries]
        slices = float(tree.edge_rate) * groups
        kept += min(rate, slices) * max(w.length for w in windows) / MICROS
        final += min(rate, slices) * float(tree.omega)
        answers += sum(groups * MICROS / w.slide for w in windows)
    return Estimate(
        batches=(weights.batch + weights.query * len(plan.workload)) / batch_seconds,
        rows=rate * len(plan.feeds) * weights.row,
        partials=made * weights.partial,
        kept=kept * weights.kept / batch_seconds,
        operations=(folded + final) * weights.operation,
        answers=answers * weights.answer,
    )
