"""Random: merge two random trees until a merge saves nothing."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from weft.model import Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.strategies.base import GroupingTrees, Strategy, build, groupings
from weft.optimizer.strategies.tree_prices import Pricing, singles
from weft.plan.logical import Plan

SEED = 1


def random_share(seed: int) -> Strategy:
    def random(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
        draw, sharings = Random(seed), []
        for group in groupings(workload):
            pricing = Pricing(singles(group), cost)
            trees = random_trees(pricing, statistics.rate, draw)
            sharings.append(GroupingTrees(tuple(map(pricing.tree, trees))))
        return build("random", workload, statistics, cost, sharings)

    return random


def random_trees(pricing: Pricing, per_tree: Fraction, draw: Random) -> list[int]:
    trees = [1 << i for i in range(len(pricing.atoms))]
    while len(trees) > 1:
        i, j = sorted(draw.sample(range(len(trees)), 2))
        one, other = trees[i], trees[j]
        if per_tree + pricing.final(one) + pricing.final(other) <= pricing.joined(one, other):
            break
        trees[i] = one | other
        # The last tree takes the free slot: the order of trees does not matter here.
        trees[j] = trees[-1]
        trees.pop()
    return trees
