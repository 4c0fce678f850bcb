"""Which node runs which queries, and what they share there: the thirteen optimizers of the dissertation's table 7."""

from weft.optimizer.placement.nodes import ClusterNode, NoNodes, Placement
from weft.optimizer.placement.optimizers import OPTIMIZERS, CannotPlace, fronts, place, place_groupings, trees_of
from weft.optimizer.placement.pareto import knee, undominated

__all__ = [
    "OPTIMIZERS",
    "CannotPlace",
    "ClusterNode",
    "NoNodes",
    "Placement",
    "fronts",
    "knee",
    "place",
    "place_groupings",
    "trees_of",
    "undominated",
]
