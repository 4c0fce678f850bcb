"""auto: the best plan that a bounded effort finds, never more expensive than Weave Share's or TriWeave's.

A few queries are solved by exhaustive search. For more, local moves improve the result of greedy merging, for both
ways to feed trees, and the cheaper plan is taken. Effort is counted, not timed, so the same workload always gives the
same plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from weft.model import Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.merge.greedy import weave
from weft.optimizer.strategies.base import GroupingTrees, Positioned, Strategy, build, groupings
from weft.optimizer.strategies.exhaustive import cheapest_sharing
from weft.optimizer.strategies.local_moves import Improving
from weft.optimizer.strategies.tree_prices import Pricing, inseparable
from weft.plan.logical import Plan, Tree

SMALL = 11
"""Most distinct windows per grouping for exhaustive search: it takes a tenth of a second, or a second if edges cannot
be marked as bits."""

EFFORT = 30_000
"""Most unions of marks per grouping and way to feed its trees: a third of a second."""


def search(small: int = SMALL, effort: int = EFFORT, composite: bool = True) -> Strategy:
    """Without `composite`, every tree has a pass of its own, as in Weave Share's plans."""

    def auto(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
        sharings, optimal = [], True
        for group in groupings(workload):
            pricing = Pricing(inseparable(group, cost), cost)
            if len(pricing.atoms) <= small:
                sharings.append(cheapest_sharing(pricing, statistics, composite))
            else:
                sharings.append(_improved(group, pricing, statistics, cost, effort, composite))
                optimal = False
        return build("auto", workload, statistics, cost, sharings, optimal=optimal)

    return auto


def _improved(
    group: Sequence[Positioned], pricing: Pricing, statistics: Statistics, cost: Cost, effort: int, composite: bool
) -> GroupingTrees:
    rate, slices = statistics.rate, pricing.edge_rate

    def improve(per_tree: Fraction) -> tuple[Tree, ...]:
        woven = tuple(part.tree(cost) for part in weave(group, per_tree, cost))
        if not pricing.quick:
            return woven
        begin = pricing.trees_of(tree.queries for tree in woven)
        return tuple(map(pricing.tree, Improving(pricing, per_tree, effort).improve(begin)))

    own = improve(rate)
    # If there are no more rows than slices, a fold costs at least as much as a pass, plus the composite pass.
    if composite and slices < rate:
        folded = improve(slices)
        if rate + _total(folded, slices) < _total(own, rate):
            return GroupingTrees(folded, composite=True)
    return GroupingTrees(own)


def _total(trees: Sequence[Tree], per_tree: Fraction) -> Fraction:
    return sum((per_tree + tree.final_cost for tree in trees), Fraction(0))


auto = search()
