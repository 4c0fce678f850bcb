"""Random and Round Robin: nodes are taken as they come, whatever they cost (section 6.4).

group         each tree stays alone
weave         all trees of a node become one
weave, group  alone, or woven with one of the node's trees: that too is drawn, or takes turns
cost          as many weavings as trees, at most
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from weft.optimizer.merge.part import Part
from weft.optimizer.placement.nodes import ClusterNode, Optimizer, PlacementBuilder, PlacementPrices

Pick = Callable[[int, int], int]
"""`pick(node, choices)`: one of so many choices that there are on a node."""

Way = Callable[[PlacementBuilder, int, Part, Pick], None]
"""`way(board, node, part, pick)`: put it there."""


def group(board: PlacementBuilder, node: int, part: Part, pick: Pick) -> None:
    board.group(part, node)


def weave(board: PlacementBuilder, node: int, part: Part, pick: Pick) -> None:
    if board.parts[node]:
        board.weave(part, node, 0)
    else:
        board.group(part, node)


def weave_or_group(board: PlacementBuilder, node: int, part: Part, pick: Pick) -> None:
    place = pick(node, len(board.parts[node]) + 1)
    if place < len(board.parts[node]):
        board.weave(part, node, place)
    else:
        board.group(part, node)


def randomly(way: Way) -> Optimizer:
    def place(
        parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
    ) -> PlacementBuilder:
        board = PlacementBuilder(nodes, prices)
        for part in parts:
            way(board, random.randrange(len(nodes)), part, lambda node, choices: random.randrange(choices))
        return board

    return place


def in_turns(way: Way) -> Optimizer:
    def place(
        parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
    ) -> PlacementBuilder:
        board, turns = PlacementBuilder(nodes, prices), [0] * len(nodes)

        def next_in_turn(node: int, choices: int) -> int:
            """Each tree of the node once, then alone, then from the first tree again."""
            picked = turns[node]
            turns[node] = 0 if picked == choices - 1 else picked + 1
            return picked

        for number, part in enumerate(parts):
            way(board, number % len(nodes), part, next_in_turn)
        return board

    return place
