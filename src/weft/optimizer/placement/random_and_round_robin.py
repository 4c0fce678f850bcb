"""Random and Round Robin: nodes are chosen without looking at their load (section 6.4).

group         each tree stays alone
weave         all trees of a node become one
weave, group  alone, or woven with one of the node's trees; this choice is also random or round robin
cost          at most one weaving per tree
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from weft.optimizer.merge.part import Part
from weft.optimizer.placement.nodes import ClusterNode, Optimizer, PlacementBuilder, PlacementPrices

Pick = Callable[[int, int], int]
"""`pick(node, choices)`: a number below `choices`."""

Way = Callable[[PlacementBuilder, int, Part, Pick], None]
"""`way(builder, node, part, pick)`: put the part on the node."""


def group(builder: PlacementBuilder, node: int, part: Part, pick: Pick) -> None:
    builder.group(part, node)


def weave(builder: PlacementBuilder, node: int, part: Part, pick: Pick) -> None:
    if builder.parts[node]:
        builder.weave(part, node, 0)
    else:
        builder.group(part, node)


def weave_or_group(builder: PlacementBuilder, node: int, part: Part, pick: Pick) -> None:
    place = pick(node, len(builder.parts[node]) + 1)
    if place < len(builder.parts[node]):
        builder.weave(part, node, place)
    else:
        builder.group(part, node)


def randomly(way: Way) -> Optimizer:
    def place(
        parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
    ) -> PlacementBuilder:
        builder = PlacementBuilder(nodes, prices)
        for part in parts:
            way(builder, random.randrange(len(nodes)), part, lambda node, choices: random.randrange(choices))
        return builder

    return place


def in_turns(way: Way) -> Optimizer:
    def place(
        parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
    ) -> PlacementBuilder:
        builder, turns = PlacementBuilder(nodes, prices), [0] * len(nodes)

        def next_in_turn(node: int, choices: int) -> int:
            """Each tree of the node once, then alone, then from the first tree again."""
            picked = turns[node]
            turns[node] = 0 if picked == choices - 1 else picked + 1
            return picked

        for number, part in enumerate(parts):
            way(builder, number % len(nodes), part, next_in_turn)
        return builder

    return place
