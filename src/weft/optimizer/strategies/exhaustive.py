"""Exhaustive search: the cheapest of all ways to put queries into trees, by dynamic programming over subsets."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from weft.model import PlanError, Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.strategies.base import GroupingTrees, build, groupings
from weft.optimizer.strategies.tree_prices import Pricing, inseparable, whole_numbers
from weft.plan.logical import Plan

EXHAUSTIVE_LIMIT = 15
"""Subset dynamic programming prices 2**n trees and visits 3**n pairs of them: 12 queries take a tenth of a second if
edges can be marked as bits and 3 s if not, 15 take 3 s and 20 s."""


class TooManyQueries(PlanError):
    """More queries than a strategy can handle in a reasonable time."""


def exhaustive(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
    """No plan is cheaper in which the trees of a grouping have a pass each, or all fold one composite slicing."""
    sharings = []
    for group in groupings(workload):
        atoms = inseparable(group, cost)
        if len(atoms) > EXHAUSTIVE_LIMIT:
            raise TooManyQueries(
                f"exhaustive search takes at most {EXHAUSTIVE_LIMIT} queries of one grouping with different windows, "
                f"and {group[0][1].name} is one of {len(atoms)}; use the strategy auto, or weave_share"
            )
        sharings.append(cheapest_sharing(Pricing(atoms, cost), statistics))
    return build("exhaustive", workload, statistics, cost, sharings, optimal=True)


def cheapest_sharing(pricing: Pricing, statistics: Statistics, composite: bool = True) -> GroupingTrees:
    """The cheaper way to feed the trees, if `composite` is allowed; with equal costs, one pass per tree."""
    slices = pricing.edge_rate
    own, folded = cheapest_trees(pricing, (statistics.rate, slices))
    if composite and statistics.rate + price(pricing, folded, slices) < price(pricing, own, statistics.rate):
        return GroupingTrees(tuple(map(pricing.tree, folded)), composite=True)
    return GroupingTrees(tuple(map(pricing.tree, own)))


def price(pricing: Pricing, trees: Sequence[int], per_tree: Fraction) -> Fraction:
    return sum((per_tree + pricing.final(tree) for tree in trees), Fraction(0))


def cheapest_trees(pricing: Pricing, amounts: Sequence[Fraction]) -> list[list[int]]:
    """The cheapest partition for each amount that a tree costs besides its final operations."""
    finals = [Fraction(0)] * (pricing.all + 1)
    for tree in range(1, pricing.all + 1):
        lowest = tree & -tree
        finals[tree] = pricing.final(tree) if tree == lowest else pricing.joined(tree ^ lowest, lowest)
    scaled = whole_numbers([*finals, *amounts])
    return [_partition([final + per_tree for final in scaled[: len(finals)]]) for per_tree in scaled[len(finals) :]]


def _partition(cost: Sequence[int]) -> list[int]:
    """The best partition of a subset is a tree with its lowest query, and the best partition of the rest."""
    best = [0] * len(cost)
    first = list(range(len(cost)))  # the tree of the lowest query
    for tree in range(1, len(cost)):
        others = rest = tree ^ (tree & -tree)
        least = cost[tree]
        while rest:
            total = cost[tree ^ rest] + best[rest]
            if total < least:
                least, first[tree] = total, tree ^ rest
            rest = (rest - 1) & others
        best[tree] = least
    trees, left = [], len(cost) - 1
    while left:
        trees.append(first[left])
        left ^= first[left]
    return trees
