"""weft's own: all placements worth having, from the least total cost to the least maximum.

Weave Share passes through every number of trees. After each merge the trees are balanced over the nodes: few trees
cost less in total, many can be balanced better. The results of the dissertation's optimizers are added, WG_I also
with the most expensive trees first. A placement that is worse than another in both costs is removed.

cost    that of Weave Share and twice that of WG_I, and one balancing per merge
source  our own
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from random import Random
from typing import Protocol, TypeVar

from weft.optimizer.merge.greedy import Weaving
from weft.optimizer.merge.part import Part
from weft.optimizer.placement.inserted import insert, weave_inserted, weave_or_group_inserted
from weft.optimizer.placement.nodes import ClusterNode, Placement, PlacementPrices, most_expensive_first
from weft.optimizer.placement.to_lowest import group_to_lowest
from weft.optimizer.placement.to_nodes import weave_then_group, weave_to_nodes

BESIDE = {
    "wg_tn": weave_then_group,
    "w_tn": weave_to_nodes,
    "wg_i": weave_or_group_inserted,
    "w_i": weave_inserted,
}


def front(
    parts: Sequence[Part], nodes: Sequence[ClusterNode], prices: PlacementPrices, seed: int
) -> tuple[Placement, ...]:
    """By total cost, the least first; the maximum falls from one to the next. `seed` is for random optimizers."""
    placements = [optimizer(parts, nodes, prices, Random(seed)).placed(name) for name, optimizer in BESIDE.items()]
    # Algorithm 6 takes trees in the order of the list; if large ones come last, no small ones are left for balancing.
    placements.append(insert(most_expensive_first(parts, prices), nodes, prices, grouping=True).placed("front"))
    weaving = Weaving(parts, prices.rate, prices.cost)
    while True:
        trees = sorted(weaving.parts.values(), key=lambda part: part.position)
        placements.append(group_to_lowest(trees, nodes, prices, Random(seed)).placed("front"))
        merge = weaving.best()
        if merge is None or (merge.gain <= 0 and len(weaving.parts) <= len(nodes)):
            return undominated(placements)
        weaving.merge(merge)


def undominated(placements: Iterable[Placement]) -> tuple[Placement, ...]:
    kept: list[Placement] = []
    for placement in sorted(placements, key=lambda p: (p.total, p.maximum)):
        if not kept or placement.maximum < kept[-1].maximum:
            kept.append(placement)
    return tuple(kept)


class Costed(Protocol):
    """What placements are compared by."""

    @property
    def total(self) -> Fraction | float: ...
    @property
    def maximum(self) -> Fraction | float: ...


AnyPlacement = TypeVar("AnyPlacement", bound=Costed)


def knee(placements: Sequence[AnyPlacement]) -> AnyPlacement:
    """The first placement with the smallest excess: the larger of total / least total and maximum / least maximum."""
    total, maximum = min(p.total for p in placements), min(p.maximum for p in placements)
    return min(placements, key=lambda p: max(_over(p.total, total), _over(p.maximum, maximum)))


def _over(one: Fraction | float, least: Fraction | float) -> Fraction | float:
    return one / least if least else 1
