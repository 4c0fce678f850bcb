"""To Lowest: the most expensive tree first, each to the node with the least to do (algorithm 4).

group         each tree stays alone
weave         all trees of a node become one
weave, group  alone, or woven with the node's cheapest tree, whichever makes the node cheaper
cost          at most one weaving per tree
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from weft.optimizer.merge.part import Part
from weft.optimizer.placement.nodes import ClusterNode, PlacementBuilder, PlacementPrices, dearest_first


def group_to_lowest(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
) -> PlacementBuilder:
    board = PlacementBuilder(nodes, prices)
    for part in dearest_first(parts, prices):
        # Of nodes that differ in speed the one that is done first, with this tree in it.
        board.group(part, board.lowest(prices.of(part)))
    return board


def weave_to_lowest(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
) -> PlacementBuilder:
    board = PlacementBuilder(nodes, prices)
    for part in dearest_first(parts, prices):
        node = board.lowest()
        if board.parts[node]:
            board.weave(part, node, 0)
        else:
            board.group(part, node)
    return board


def weave_or_group_to_lowest(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
) -> PlacementBuilder:
    board = PlacementBuilder(nodes, prices)
    for part in dearest_first(parts, prices):
        node = board.lowest()
        trees = board.parts[node]
        if not trees:
            board.group(part, node)
            continue
        cheapest = min(range(len(trees)), key=lambda tree: prices.of(trees[tree]))
        woven = prices.weave(trees[cheapest], part)
        if prices.of(part) < prices.of(woven) - prices.of(trees[cheapest]):
            board.group(part, node)
        else:
            board.weave(part, node, cheapest, woven)
    return board
