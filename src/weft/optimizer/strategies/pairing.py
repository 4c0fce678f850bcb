"""Pairing: the cheapest plan whose trees have at most two queries (paper 2, appendix)."""

from __future__ import annotations

from itertools import combinations

from weft.model import Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.strategies.base import GroupingTrees, build, groupings
from weft.optimizer.strategies.exhaustive import TooManyQueries
from weft.optimizer.strategies.tree_prices import Pricing, singles, whole_numbers
from weft.plan.logical import Plan

PAIRING_LIMIT = 300
"""The time of matching grows with the cube of the queries: 100 take two seconds, 300 a minute."""


def pairing(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
    sharings = []
    for group in groupings(workload):
        if len(group) > PAIRING_LIMIT:
            raise TooManyQueries(
                f"pairing takes at most {PAIRING_LIMIT} queries of one grouping, and {group[0][1].name} is one of "
                f"{len(group)}; use the strategy auto, or weave_share"
            )
        pricing = Pricing(singles(group), cost)
        sharings.append(GroupingTrees(tuple(map(pricing.tree, _matched(pricing, statistics)))))
    return build("pairing", workload, statistics, cost, sharings)


def _matched(pricing: Pricing, statistics: Statistics) -> list[int]:
    """The pairs that together save most, then the queries that are left."""
    import networkx  # takes longer to load than all of weft's planning

    gains = {}
    for i, j in combinations(range(len(pricing.atoms)), 2):
        one, other = 1 << i, 1 << j
        gain = statistics.rate + pricing.final(one) + pricing.final(other) - pricing.joined(one, other)
        if gain > 0:
            gains[i, j] = gain
    # Matching halves differences of weights: with even integers it stays exact.
    weights = [2 * gain for gain in whole_numbers(list(gains.values()))]
    graph = networkx.Graph()
    graph.add_weighted_edges_from((i, j, weight) for (i, j), weight in zip(gains, weights))
    pairs = sorted(1 << i | 1 << j for i, j in networkx.max_weight_matching(graph))
    alone = pricing.all
    for pair in pairs:
        alone ^= pair
    return [*pairs, *(1 << i for i in range(len(pricing.atoms)) if alone >> i & 1)]
