"""TriWeave: one pass over the rows cuts composite slices, and trees, merged as in Weave Share, fold those."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from weft.model import Edges, Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.edge_counting import edge_rate_between
from weft.optimizer.merge.greedy import weave
from weft.optimizer.strategies.base import GroupingTrees, Positioned, build, groupings
from weft.optimizer.strategies.weave_share import own_passes
from weft.plan.logical import Plan


def tri_weave(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
    sharings = [composite_pass(group, statistics, cost) for group in groupings(workload)]
    return build("tri_weave", workload, statistics, cost, sharings)


def composite_pass(group: Sequence[Positioned], statistics: Statistics, cost: Cost) -> GroupingTrees:
    """One tree less saves one fold of the composite slices.

    Where rows are rarer than slices, folding slices costs more than reading rows again. If that makes the composite
    pass more expensive than a pass for each query, the trees of this grouping have passes of their own.
    """
    slices, _ = edge_rate_between(Edges.of(query.window for _, query in group))
    parts = weave(group, slices, cost)
    folded = statistics.rate + len(parts) * slices + sum((p.rate * p.omega for p in parts), Fraction(0))
    # A pass for each query costs at least its rows: most often nothing more need be added up.
    if folded > len(group) * statistics.rate and folded > cost.unshared((query for _, query in group), statistics):
        return own_passes(group, statistics, cost)
    return GroupingTrees(tuple(part.tree(cost) for part in parts), composite=True)
