"""To Lowest: the most expensive tree first, each to the least loaded node (algorithm 4).

group         each tree stays alone
weave         all trees of a node become one
weave, group  alone, or woven with the node's cheapest tree, whichever makes the node cheaper
cost          at most one weaving per tree
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from weft.optimizer.merge.part import Part
from weft.optimizer.placement.nodes import ClusterNode, PlacementBuilder, PlacementPrices, most_expensive_first


def group_to_lowest(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
) -> PlacementBuilder:
    builder = PlacementBuilder(nodes, prices)
    for part in most_expensive_first(parts, prices):
        # Nodes may differ in speed: take the one whose load is least with this tree on it.
        builder.group(part, builder.lowest(prices.of(part)))
    return builder


def weave_to_lowest(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
) -> PlacementBuilder:
    builder = PlacementBuilder(nodes, prices)
    for part in most_expensive_first(parts, prices):
        node = builder.lowest()
        if builder.parts[node]:
            builder.weave(part, node, 0)
        else:
            builder.group(part, node)
    return builder


def weave_or_group_to_lowest(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
) -> PlacementBuilder:
    builder = PlacementBuilder(nodes, prices)
    for part in most_expensive_first(parts, prices):
        node = builder.lowest()
        trees = builder.parts[node]
        if not trees:
            builder.group(part, node)
            continue
        cheapest = min(range(len(trees)), key=lambda tree: prices.of(trees[tree]))
        woven = prices.weave(trees[cheapest], part)
        if prices.of(part) < prices.of(woven) - prices.of(trees[cheapest]):
            builder.group(part, node)
        else:
            builder.weave(part, node, cheapest, woven)
    return builder
