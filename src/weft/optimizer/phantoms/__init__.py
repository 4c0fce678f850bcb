"""Group-bys that share work through phantoms: finer groupings that no query has, but that feed several queries."""

from weft.calibration.table_costs import ProbeCosts
from weft.optimizer.phantoms.allocation import ALLOCATIONS, Allocated, allocate, price
from weft.optimizer.phantoms.base import Choice, ChoiceStep
from weft.optimizer.phantoms.choosers import CHOOSERS, choose
from weft.optimizer.phantoms.collisions import Flows, TableCounts, collision_rate, measure_flows
from weft.optimizer.phantoms.configuration import Configuration, InvalidConfiguration, TableNode, parse
from weft.optimizer.phantoms.epochs import eviction_rate
from weft.optimizer.phantoms.exhaustive_phantoms import EXHAUSTIVE_LIMIT, configurations, exhaustive
from weft.optimizer.phantoms.feeding_graph import FeedingGraph
from weft.optimizer.phantoms.greedy_space import PHI, greedy_by_space
from weft.optimizer.phantoms.relation import InvalidNotation, Relation, read, show
from weft.optimizer.phantoms.statistics import GroupStatistics, UnknownGroups, estimate

__all__ = [
    "ALLOCATIONS",
    "CHOOSERS",
    "EXHAUSTIVE_LIMIT",
    "PHI",
    "Allocated",
    "Choice",
    "ChoiceStep",
    "Configuration",
    "FeedingGraph",
    "Flows",
    "GroupStatistics",
    "InvalidConfiguration",
    "InvalidNotation",
    "ProbeCosts",
    "Relation",
    "TableCounts",
    "TableNode",
    "UnknownGroups",
    "allocate",
    "choose",
    "collision_rate",
    "configurations",
    "estimate",
    "eviction_rate",
    "exhaustive",
    "greedy_by_space",
    "measure_flows",
    "parse",
    "price",
    "read",
    "show",
]
