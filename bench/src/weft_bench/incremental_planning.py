"""Incremental Weave Share as in figure 11 of paper 1: amend while the plan stays near the curve, otherwise replan.

A running job does the same with the same functions, between its batches (`weft.spark.queries.replanner`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from weft.model import ACQ, Workload
from weft.optimizer import STRATEGIES, Cost, Statistics
from weft.optimizer.incremental import Curve, change_plan, deviates
from weft.optimizer.strategies.base import groupings
from weft.plan import Plan


@dataclass(frozen=True, slots=True)
class IncrementalPlan:
    """A plan with its history."""

    plan: Plan
    curve: Curve
    strategy: str
    """Plans from scratch."""
    compared: int
    """Pairs of trees that were compared so far: the overhead in the paper's figure 11."""
    replanned: bool
    """Whether the last change planned all queries from scratch."""


def begin(queries: Iterable[ACQ], rate: Fraction, cost: Cost, strategy: str = "weave_share") -> IncrementalPlan:
    """Plan half of the queries, then all of them: a curve needs two points for a slope."""
    workload, curve, compared = Workload(queries), Curve(()), 0
    halves = [workload[: len(workload) // 2], workload] if len(workload) > 1 else [workload]
    for some in halves:
        plan = STRATEGIES[strategy](Workload(some), Statistics(rate), cost)
        curve, compared = curve.and_then(plan), compared + comparisons(plan)
    return IncrementalPlan(plan, curve, strategy, compared, replanned=True)


def add(now: IncrementalPlan, queries: Iterable[ACQ], cost: Cost, tolerance: Fraction | None) -> IncrementalPlan:
    """Merge new queries into the plan. With a tolerance of None, it is never replanned."""
    plan, compared = change_plan(now.plan, queries, (), cost)
    return _replan_if_needed(now, plan, now.compared + compared, cost, tolerance)


def delete(now: IncrementalPlan, names: Iterable[str], cost: Cost, tolerance: Fraction | None) -> IncrementalPlan:
    """Remove queries from the plan; what is left of their trees may merge with other trees."""
    plan, compared = change_plan(now.plan, (), names, cost)
    return _replan_if_needed(now, plan, now.compared + compared, cost, tolerance)


def comparisons(plan: Plan) -> int:
    """Pairs that planning from scratch compares: all once, then after each merge the new tree with the others."""
    total = 0
    tree_of = {name: number for number, tree in enumerate(plan.trees) for name in tree.queries}
    for group in groupings(plan.workload):
        count, trees = len(group), len({tree_of[q.name] for _, q in group})
        total += count * (count - 1) // 2 + sum(range(trees - 1, count - 1))
    return total


def _replan_if_needed(
    now: IncrementalPlan, amended: Plan, compared: int, cost: Cost, tolerance: Fraction | None
) -> IncrementalPlan:
    if not deviates(now.curve, amended, tolerance):
        return IncrementalPlan(amended, now.curve, now.strategy, compared, replanned=False)
    scratch = STRATEGIES[now.strategy](amended.workload, Statistics(amended.rate), cost)
    # The amended plan may happen to be cheaper; then the plan from scratch only adds a point to the curve.
    best = min(scratch, amended, key=lambda plan: plan.cost)
    curve, compared = now.curve.and_then(scratch), compared + comparisons(scratch)
    return IncrementalPlan(best, curve, now.strategy, compared, replanned=True)
