"""Insert-then-Weave: each query in turn joins the tree with the greatest saving, then trees are merged."""

from __future__ import annotations

from fractions import Fraction

from weft.model import Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.strategies.base import GroupingTrees, build, groupings
from weft.optimizer.strategies.merge_trees import merge_trees
from weft.optimizer.strategies.tree_prices import Pricing, singles
from weft.plan.logical import Plan


def insert_then_weave(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
    sharings = []
    for group in groupings(workload):
        pricing = Pricing(singles(group), cost)
        trees, _ = merge_trees(pricing, _insert(pricing, statistics.rate), statistics.rate)
        sharings.append(GroupingTrees(tuple(map(pricing.tree, trees))))
    return build("insert_then_weave", workload, statistics, cost, sharings)


def _insert(pricing: Pricing, per_tree: Fraction) -> list[int]:
    """In the order of the workload; a query that saves nothing anywhere begins a tree."""
    trees: list[int] = []
    for number in range(len(pricing.atoms)):
        query = 1 << number
        alone = per_tree + pricing.final(query)
        gains = [alone + pricing.final(tree) - pricing.joined(tree, query) for tree in trees]
        best = max(range(len(trees)), key=gains.__getitem__, default=None)
        if best is not None and gains[best] > 0:
            trees[best] |= query
        else:
            trees.append(query)
    return trees
