"""Weave Share: merge the two trees that save most, until no merge saves anything; each tree passes over the rows."""

from __future__ import annotations

from collections.abc import Sequence

from weft.model import Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.merge.greedy import weave
from weft.optimizer.strategies.base import GroupingTrees, Positioned, build, groupings
from weft.plan.logical import Plan


def weave_share(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
    sharings = [own_passes(group, statistics, cost) for group in groupings(workload)]
    return build("weave_share", workload, statistics, cost, sharings)


def own_passes(group: Sequence[Positioned], statistics: Statistics, cost: Cost) -> GroupingTrees:
    """One tree less saves one pass over the rows."""
    return GroupingTrees(tuple(part.tree(cost) for part in weave(group, statistics.rate, cost)))
