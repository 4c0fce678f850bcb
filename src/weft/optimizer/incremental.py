"""Incremental Weave Share (paper 1, section 5.2): queries join and leave, only the trees that change merge again.

Amending a plan is cheap, but the plan drifts from what planning all queries again would give. The plan-cost curve tells
how far: what plans from scratch cost, by number of queries. Its slope says what the amended plan should cost; beyond a
tolerance, all queries are replanned. Everything here takes a value and returns a new one.

>>> from weft.model import Call, Window
>>> from weft.optimizer import optimize
>>> def query(name: str, seconds: int, slide: int) -> ACQ:
...     return ACQ(name, Window(seconds * 1_000_000, slide * 1_000_000), (Call("max", ("price",)),), ())
>>> plan = optimize([query("a", 16, 4), query("b", 10, 5)], rate=1.2, strategy="weave_share", technique="panes")
>>> amended, compared = change_plan(plan, [query("c", 8, 4)], [], Cost())
>>> [tree.queries for tree in amended.trees], float(amended.cost), compared
([('a', 'b', 'c')], 4.4, 1)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction

from weft.model import ACQ, PlanError, Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.strategies.base import GroupingTrees, Positioned, build, groupings
from weft.optimizer.strategies.merge_trees import merge_trees
from weft.optimizer.strategies.tree_prices import Pricing
from weft.plan.check import check_plan
from weft.plan.logical import Plan


class CannotAmend(PlanError):
    """A query to remove that is not in the plan, or the last one."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The plan-cost curve: (queries, cost) of plans made from scratch, the latest last."""

    points: tuple[tuple[int, Fraction], ...]

    @property
    def slope(self) -> Fraction:
        """The performance slope: what one query more costs, from the last two plans of different size.

        No more than a query has cost on average: the more there are, the likelier a tree fits the next one.
        """
        count, cost = self.points[-1]
        slopes = [(cost - less) / (count - before) for before, less in self.points[:-1] if before != count]
        return min([cost / count, *slopes[-1:]])

    def expected(self, queries: int) -> Fraction:
        """What a plan from scratch would cost if the curve continues with its slope."""
        count, cost = self.points[-1]
        return cost + self.slope * (queries - count)

    def and_then(self, plan: Plan) -> Curve:
        return Curve((*self.points, (len(plan.workload), plan.cost)))


def deviates(curve: Curve, plan: Plan, tolerance: Fraction | None) -> bool:
    """Whether the plan costs more than `tolerance`, a share, above the cost that the curve predicts."""
    return tolerance is not None and plan.cost > (1 + tolerance) * curve.expected(len(plan.workload))


def excess(curve: Curve, plan: Plan) -> Fraction:
    """By what share the plan costs more than the curve predicts; negative where it costs less."""
    return plan.cost / curve.expected(len(plan.workload)) - 1


def change_plan(plan: Plan, queries: Iterable[ACQ], names: Iterable[str], cost: Cost) -> tuple[Plan, int]:
    """The plan with `queries` added and those called `names` removed, and how many pairs of trees were compared.

    A query that joins may have the name of one that leaves. Each new query begins a tree; trees that changed merge with
    others while that saves anything.
    """
    removed = set(names)
    unknown = sorted(removed - plan.workload.by_name.keys())
    if unknown:
        raise CannotAmend(f"there is no query {unknown[0]}; the plan has {', '.join(plan.workload.by_name)}")
    workload = Workload([*(q for q in plan.workload if q.name not in removed), *queries])
    if not workload:
        raise CannotAmend("no query would be left; a plan has at least one")
    return _amend(plan, workload, removed, cost)


def _amend(plan: Plan, workload: Workload, removed: Set[str], cost: Cost) -> tuple[Plan, int]:
    sharings, compared = [], 0
    trees = _trees_by_grouping(plan)
    for group in groupings(workload):
        sharing, looked_at = _amend_grouping(plan, trees.get(group[0][1].grouping, []), removed, group, cost)
        sharings.append(sharing)
        compared += looked_at
    amended = build(plan.strategy, workload, Statistics(plan.rate), cost, sharings)
    check_plan(amended)
    return amended, compared


def _trees_by_grouping(plan: Plan) -> dict[tuple[str, str, tuple[str, ...]], list[int]]:
    """The numbers of the trees of each grouping."""
    numbers: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}
    for number, tree in enumerate(plan.trees):
        numbers.setdefault(plan.workload.by_name[tree.queries[0]].grouping, []).append(number)
    return numbers


def _amend_grouping(
    plan: Plan, numbers: Sequence[int], removed: Set[str], group: Sequence[Positioned], cost: Cost
) -> tuple[GroupingTrees, int]:
    """The remaining trees of the old plan, and the new queries; trees that changed may merge."""
    old = [plan.trees[number] for number in numbers]
    composite = any(feed.fold_cost > 0 for feed in plan.feeds if set(feed.trees) & set(numbers))
    positioned = {q.name: (position, q) for position, q in group}
    staying = {name for tree in old for name in tree.queries if name in positioned and name not in removed}
    # No tree is ever split here, so each is priced as one atom: the time depends on the number of trees, not on the
    # number of their queries.
    left = [[positioned[name] for name in tree.queries if name in staying] for tree in old]
    touched = [len(now) < len(tree.queries) for now, tree in zip(left, old)]
    new = [[positioned[q.name]] for _, q in group if q.name not in staying]
    if not new and not any(touched):
        return GroupingTrees(tuple(old), composite), 0
    same = {tree.queries: tree for tree, is_touched in zip(old, touched) if not is_touched}
    atoms = [(atom, is_touched) for atom, is_touched in zip([*left, *new], [*touched, *[True] * len(new)]) if atom]
    pricing = Pricing([atom for atom, _ in atoms], cost)
    changed = [1 << i for i, (_, is_touched) in enumerate(atoms) if is_touched]
    per_tree = pricing.edge_rate if composite else plan.rate
    merged, compared = merge_trees(pricing, [1 << i for i in range(len(atoms))], per_tree, changed)
    trees = (same.get(tuple(q.name for q in pricing.queries(tree))) or pricing.tree(tree) for tree in merged)
    return GroupingTrees(tuple(trees), composite), compared
