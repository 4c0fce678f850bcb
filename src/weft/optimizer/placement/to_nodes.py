"""To Nodes: Weave Share on all trees, then one tree per node or the trees balanced over the nodes (algorithm 5).

weave         merging continues, even at a loss, until there are no more trees than nodes
weave, group  each tree of Weave Share goes to the least loaded node, alone
cost          that of Weave Share
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from weft.optimizer.merge.greedy import Weaving
from weft.optimizer.merge.part import Part
from weft.optimizer.placement.nodes import ClusterNode, PlacementBuilder, PlacementPrices
from weft.optimizer.placement.to_lowest import group_to_lowest


def weave_to_nodes(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
) -> PlacementBuilder:
    return group_to_lowest(woven(parts, len(nodes), prices, at_a_loss=True), nodes, prices, random)


def weave_then_group(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, random: Random
) -> PlacementBuilder:
    return group_to_lowest(woven(parts, len(nodes), prices, at_a_loss=False), nodes, prices, random)


def woven(parts: Sequence[Part], nodes: int, prices: PlacementPrices, at_a_loss: bool) -> list[Part]:
    """Best merge first, while it gains; or while there are more trees than nodes.

    As in algorithm 5, merging continues below the number of nodes while it gains. The dissertation's text stops there,
    but then the total cost would not be the least.
    """
    weaving = Weaving(parts, prices.rate, prices.cost)
    while (merge := weaving.best()) is not None:
        if merge.gain <= 0 and not (at_a_loss and len(weaving.parts) > nodes):
            break
        weaving.merge(merge)
    return sorted(weaving.parts.values(), key=lambda part: part.position)
