"""Each query has a tree of its own: the plan that all others are compared with."""

from __future__ import annotations

from weft.model import Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.strategies.base import GroupingTrees, build, groupings
from weft.plan.logical import Plan


def no_share(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
    sharings = [GroupingTrees(tuple(cost.tree([query]) for _, query in group)) for group in groupings(workload)]
    return build("no_share", workload, statistics, cost, sharings)
