"""Contiguous: the cheapest plan whose trees are runs of neighbouring queries, for the order of the workload.

If queries are in the order in which they expire, the plan without the first one is computed already (paper 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from weft.model import Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.strategies.base import GroupingTrees, build, groupings
from weft.optimizer.strategies.tree_prices import Pricing, singles
from weft.plan.logical import Plan


@dataclass(frozen=True, slots=True)
class Suffixes:
    """The cheapest plan for every suffix of the order.

    `costs[i]` is what queries i, i+1, ... cost together; the tree of query i ends before query `ends[i]`.
    """

    costs: tuple[Fraction, ...]
    ends: tuple[int, ...]

    def trees(self, first: int = 0) -> list[range]:
        """The trees that are left when the queries before `first` have expired."""
        cut = []
        while first < len(self.ends):
            cut.append(range(first, self.ends[first]))
            first = self.ends[first]
        return cut


def contiguous(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
    sharings = []
    for group in groupings(workload):
        runs = suffixes(Pricing(singles(group), cost), statistics.rate).trees()
        sharings.append(GroupingTrees(tuple(cost.tree([group[i][1] for i in run]) for run in runs)))
    return build("contiguous", workload, statistics, cost, sharings)


def suffixes(pricing: Pricing, per_tree: Fraction) -> Suffixes:
    """From the last query to the first: the suffix after a tree is solved before the tree is tried."""
    count = len(pricing.atoms)
    costs, ends = [Fraction(0)] * (count + 1), [count] * count
    for first in reversed(range(count)):
        tree = 1 << first
        costs[first], ends[first] = per_tree + pricing.final(tree) + costs[first + 1], first + 1
        for last in range(first + 1, count):
            total = per_tree + pricing.joined(tree, 1 << last) + costs[last + 1]
            tree |= 1 << last
            if total < costs[first]:
                costs[first], ends[first] = total, last + 1
    return Suffixes(tuple(costs[:count]), tuple(ends))
