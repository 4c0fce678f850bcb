"""TriWeave: one pass over the rows makes composite slices; trees, merged as in Weave Share, fold these slices."""

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

    If there are fewer rows than slices, folding slices costs more than reading rows again. If the composite pass then
    costs more than one pass per query, the trees of this grouping have their own passes.
    """
    slices, _ = edge_rate_between(Edges.of(query.window for _, query in group))
    parts = weave(group, slices, cost)
    folded = statistics.rate + len(parts) * slices + sum((p.rate * p.omega for p in parts), Fraction(0))
    # One pass per query costs at least the rows: mostly the exact cost is not needed.
    if folded > len(group) * statistics.rate and folded > cost.unshared((query for _, query in group), statistics):
        return own_passes(group, statistics, cost)
    return GroupingTrees(tuple(part.tree(cost) for part in parts), composite=True)
