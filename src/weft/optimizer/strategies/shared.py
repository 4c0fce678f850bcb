"""One tree per grouping: one pass over the rows, with finer slices than most windows need."""

from __future__ import annotations

from weft.model import Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.strategies.base import GroupingTrees, build, groupings
from weft.plan.logical import Plan


def shared(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
    sharings = [GroupingTrees((cost.tree([query for _, query in group]),)) for group in groupings(workload)]
    return build("shared", workload, statistics, cost, sharings)
