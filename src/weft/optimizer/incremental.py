"""Incremental Weave Share: queries come and go, and only the trees that change are woven again (paper 1, section 5.2).

Mending a plan is cheap and drifts from what planning all queries anew would give. How far is told by the plan-cost
curve: what plans from scratch cost, by number of queries. Its slope says what the mended plan should cost; beyond a
tolerance, the plan is made anew. Everything here takes a value and gives a new one.

>>> from weft.model import Call, Window
>>> def query(name: str, seconds: int, slide: int) -> ACQ:
...     return ACQ(name, Window(seconds * 1_000_000, slide * 1_000_000), (Call("max", ("price",)),), ())
>>> woven = begin([query("a", 16, 4), query("b", 10, 5)], rate=Fraction(6, 5), cost=Cost())
>>> mended = add(woven, [query("c", 8, 4)], Cost(), tolerance=None)
>>> [tree.queries for tree in mended.plan.trees], float(mended.plan.cost), float(woven.curve.expected(3))
([('a', 'b', 'c')], 4.4, 5.0)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction

from weft.model import ACQ, PlanError, Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.strategies import STRATEGIES
from weft.optimizer.strategies.base import Positioned, Sharing, build, groupings
from weft.optimizer.strategies.merge_trees import merge_trees
from weft.optimizer.strategies.tree_prices import Pricing
from weft.plan.check import check_plan
from weft.plan.logical import Plan


class CannotChange(PlanError):
    """A query to delete that is not there, or the last one."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The plan-cost curve: (queries, cost) of plans made from scratch, the latest last."""

    points: tuple[tuple[int, Fraction], ...]

    @property
    def slope(self) -> Fraction:
        """The performance slope: what one query more costs, from the last two plans of different size.

        No more than a query has cost on average: the more there are, the easier the next one finds a tree that fits.
        """
        count, cost = self.points[-1]
        slopes = [(cost - less) / (count - before) for before, less in self.points[:-1] if before != count]
        return min([cost / count, *slopes[-1:]])

    def expected(self, queries: int) -> Fraction:
        """What a plan from scratch would cost, if the curve goes on as it went."""
        count, cost = self.points[-1]
        return cost + self.slope * (queries - count)

    def and_then(self, plan: Plan) -> Curve:
        return Curve((*self.points, (len(plan.workload), plan.cost)))


@dataclass(frozen=True, slots=True)
class Woven:
    """A plan that can be changed."""

    plan: Plan
    curve: Curve
    strategy: str
    """What makes plans from scratch."""
    compared: int
    """Pairs of trees that were compared so far: the overhead in the paper's figure 11."""
    rebuilt: bool
    """Whether the last change made the plan from scratch."""


def begin(queries: Iterable[ACQ], rate: Fraction, cost: Cost, strategy: str = "weave_share") -> Woven:
    """Plan all queries, and before that half of them: a curve has a slope from its second point on."""
    workload, curve, compared = Workload(queries), Curve(()), 0
    halves = [workload[: len(workload) // 2], workload] if len(workload) > 1 else [workload]
    for some in halves:
        plan = STRATEGIES[strategy](Workload(some), Statistics(rate), cost)
        curve, compared = curve.and_then(plan), compared + comparisons(plan)
    return Woven(plan, curve, strategy, compared, rebuilt=True)


def add(woven: Woven, queries: Iterable[ACQ], cost: Cost, tolerance: Fraction | None) -> Woven:
    """Weave new queries into the plan. A tolerance of None never makes it anew."""
    plan, compared = add_to_plan(woven.plan, queries, cost)
    return _settle(woven, plan, compared, cost, tolerance)


def delete(woven: Woven, names: Iterable[str], cost: Cost, tolerance: Fraction | None) -> Woven:
    """Take queries out of the plan, and look whether what is left of their trees weaves with others."""
    plan, compared = delete_from_plan(woven.plan, names, cost)
    return _settle(woven, plan, compared, cost, tolerance)


def deviates(curve: Curve, plan: Plan, tolerance: Fraction | None) -> bool:
    """Whether the plan costs more than its share above what the curve lets expect."""
    return tolerance is not None and plan.cost > (1 + tolerance) * curve.expected(len(plan.workload))


def excess(curve: Curve, plan: Plan) -> Fraction:
    """By what share the plan costs more than the curve lets expect; negative where it costs less."""
    return plan.cost / curve.expected(len(plan.workload)) - 1


def add_to_plan(plan: Plan, queries: Iterable[ACQ], cost: Cost) -> tuple[Plan, int]:
    """Each new query begins a tree; new trees merge with those that are there while that saves anything."""
    return change_plan(plan, queries, (), cost)


def delete_from_plan(plan: Plan, names: Iterable[str], cost: Cost) -> tuple[Plan, int]:
    return change_plan(plan, (), names, cost)


def change_plan(plan: Plan, queries: Iterable[ACQ], names: Iterable[str], cost: Cost) -> tuple[Plan, int]:
    """Queries that join and queries that leave, at once: one that joins may have the name of one that leaves."""
    gone = set(names)
    unknown = sorted(gone - plan.workload.by_name.keys())
    if unknown:
        raise CannotChange(f"there is no query {unknown[0]}; the plan has {', '.join(plan.workload.by_name)}")
    workload = Workload([*(q for q in plan.workload if q.name not in gone), *queries])
    if not workload:
        raise CannotChange("no query would be left; a plan has at least one")
    return _mend(plan, workload, gone, cost)


def comparisons(plan: Plan) -> int:
    """Pairs that planning from scratch compares: all once, then after each merge the new tree with the others."""
    total = 0
    tree_of = {name: number for number, tree in enumerate(plan.trees) for name in tree.queries}
    for group in groupings(plan.workload):
        count, trees = len(group), len({tree_of[q.name] for _, q in group})
        total += count * (count - 1) // 2 + sum(range(trees - 1, count - 1))
    return total


def _settle(woven: Woven, plan: Plan, compared: int, cost: Cost, tolerance: Fraction | None) -> Woven:
    compared += woven.compared
    if not deviates(woven.curve, plan, tolerance):
        return Woven(plan, woven.curve, woven.strategy, compared, rebuilt=False)
    anew = STRATEGIES[woven.strategy](plan.workload, Statistics(plan.rate), cost)
    # What is mended may by chance be the better plan; then only the curve learns from the other.
    best = min(anew, plan, key=lambda p: p.cost)
    return Woven(best, woven.curve.and_then(anew), woven.strategy, compared + comparisons(anew), rebuilt=True)


def _mend(plan: Plan, workload: Workload, gone: Set[str], cost: Cost) -> tuple[Plan, int]:
    sharings, compared = [], 0
    trees = _trees_by_grouping(plan)
    for group in groupings(workload):
        sharing, looked_at = _mend_grouping(plan, trees.get(group[0][1].grouping, []), gone, group, cost)
        sharings.append(sharing)
        compared += looked_at
    mended = build(plan.strategy, workload, Statistics(plan.rate), cost, sharings)
    check_plan(mended)
    return mended, compared


def _trees_by_grouping(plan: Plan) -> dict[tuple[str, str, tuple[str, ...]], list[int]]:
    """The numbers of the trees of each grouping."""
    found: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}
    for number, tree in enumerate(plan.trees):
        found.setdefault(plan.workload.by_name[tree.queries[0]].grouping, []).append(number)
    return found


def _mend_grouping(
    plan: Plan, numbers: Sequence[int], gone: Set[str], group: Sequence[Positioned], cost: Cost
) -> tuple[Sharing, int]:
    """The trees that are left of the old plan, and new queries beside them; those that changed may merge."""
    old = [plan.trees[number] for number in numbers]
    composite = any(feed.fold_cost > 0 for feed in plan.feeds if set(feed.trees) & set(numbers))
    present = {q.name: (position, q) for position, q in group}
    staying = {name for tree in old for name in tree.queries if name in present and name not in gone}
    # No tree is ever taken apart here, so each is priced as one atom: what that costs hangs on the trees, not on how
    # many queries they have been woven from.
    left = [[present[name] for name in tree.queries if name in staying] for tree in old]
    touched = [len(now) < len(tree.queries) for now, tree in zip(left, old)]
    new = [[present[q.name]] for _, q in group if q.name not in staying]
    if not new and not any(touched):
        return Sharing(tuple(old), composite), 0
    same = {tree.queries: tree for tree, is_touched in zip(old, touched) if not is_touched}
    atoms = [(atom, is_touched) for atom, is_touched in zip([*left, *new], [*touched, *[True] * len(new)]) if atom]
    pricing = Pricing([atom for atom, _ in atoms], cost)
    changed = [1 << i for i, (_, is_touched) in enumerate(atoms) if is_touched]
    per_tree = pricing.edge_rate if composite else plan.rate
    merged, compared = merge_trees(pricing, [1 << i for i in range(len(atoms))], per_tree, changed)
    trees = (same.get(tuple(q.name for q in pricing.queries(tree))) or pricing.tree(tree) for tree in merged)
    return Sharing(tuple(trees), composite), compared
