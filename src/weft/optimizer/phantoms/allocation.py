"""How the memory is divided among the tables of a configuration (section 6.3): SL, SR, PL and PR.

`space` and `memory` are in units: a bucket of a relation takes its `width` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from weft.calibration.table_costs import ProbeCosts
from weft.model import PlanError, WeftError
from weft.optimizer.phantoms.collisions import MU, Floats
from weft.optimizer.phantoms.configuration import Configuration
from weft.optimizer.phantoms.configuration_arrays import Forests
from weft.optimizer.phantoms.exhaustive_space import exhaustive_space
from weft.optimizer.phantoms.relation import Relation
from weft.optimizer.phantoms.statistics import GroupStatistics

Allocation = Callable[[Forests, float, ProbeCosts], Floats]
"""The space of each table of each forest; the entry of the stream has all memory."""


class NoMemory(PlanError):
    """Nothing to divide."""


def linear_supernodes(forests: Forests, memory: float, prices: ProbeCosts) -> Floats:
    """SL: a table and all that it feeds are a supernode with the sum of their groups, which is divided top down."""
    weight = forests.weight.copy()
    for level in reversed(forests.levels):
        weight = weight + forests.fed(level, weight[level])
    return _unfold(forests, np.sqrt(weight), memory, prices)


def root_supernodes(forests: Forests, memory: float, prices: ProbeCosts) -> Floats:
    """SR: the same, but the square roots of the groups are added."""
    root = np.sqrt(forests.weight)
    for level in reversed(forests.levels):
        root = root + forests.fed(level, root[level])
    return _unfold(forests, root, memory, prices)


def _unfold(forests: Forests, root: Floats, memory: float, prices: ProbeCosts) -> Floats:
    """From the stream down: the space of a supernode is divided between its table and the tables that it feeds.

    Two levels have an optimum (equations 21 and 22): the fed ones get `ratio * root`, more than half stays above. The
    stream keeps nothing, which is the optimum of one level. A fed table counts as a leaf here, even if it feeds others.
    A table that is a query pays an eviction for every group that leaves it, as if that were more probes.
    """
    tables = np.flatnonzero(forests.depth > 0)
    roots = forests.fed(tables, root[tables])
    fanout = forests.fed(tables, np.ones(len(tables)))
    beside = (fanout * prices.probe + forests.is_query * prices.eviction) / (MU * prices.eviction)
    space = np.full(len(root), float(memory))
    for level in forests.levels:
        above = forests.up[level]
        total = space[above]
        kept = np.where(forests.depth[above] > 0, np.sqrt(roots[above] ** 2 + beside[above] * total), 0.0)
        space[level] = total * root[level] / (roots[above] + kept)
    passed_on = forests.fed(tables, space[tables])
    passed_on[forests.source] = 0.0
    own: Floats = np.maximum(space - passed_on, 0.0)  # rounding
    return own


def linear_proportion(forests: Forests, memory: float, prices: ProbeCosts) -> Floats:
    """PL: in proportion to the groups."""
    return _in_proportion(forests, forests.groups * forests.widths, memory)


def root_proportion(forests: Forests, memory: float, prices: ProbeCosts) -> Floats:
    """PR: in proportion to the square roots of the groups."""
    return _in_proportion(forests, np.sqrt(forests.groups * forests.widths), memory)


def _in_proportion(forests: Forests, share: Floats, memory: float) -> Floats:
    share = share.copy()
    share[forests.source] = 0.0
    total = share.reshape(forests.number, forests.width).sum(1).repeat(forests.width)
    space: Floats = memory * share / total
    space[forests.source] = memory
    return space


ALLOCATIONS: Mapping[str, Allocation] = {
    "sl": linear_supernodes,
    "sr": root_supernodes,
    "pl": linear_proportion,
    "pr": root_proportion,
    "es": exhaustive_space,
}


@dataclass(frozen=True, slots=True)
class Allocated:
    """A configuration with the space of each table, and what it costs."""

    configuration: Configuration
    space: Mapping[Relation, float]
    cost: float
    """Per row, with its share of emptying tables."""
    emptying: float
    """The work at the end of an epoch, where all tables are emptied at once."""

    def buckets(self, statistics: GroupStatistics) -> dict[Relation, int]:
        """Rounded down, at least one."""
        return {r: max(1, int(space / statistics.width(r))) for r, space in self.space.items()}


def allocate(
    configuration: Configuration,
    statistics: GroupStatistics,
    memory: float,
    prices: ProbeCosts | None = None,
    allocation: str = "sl",
) -> Allocated:
    """
    >>> from weft.optimizer.phantoms.configuration import parse
    >>> from weft.optimizer.phantoms.relation import show
    >>> counts = {frozenset("A"): 400, frozenset("B"): 100, frozenset("AB"): 2000}
    >>> allocated = allocate(parse("AB(A B)"), GroupStatistics(counts), 10_000)
    >>> {show(relation): round(space) for relation, space in allocated.space.items()}, round(allocated.cost, 2)
    ({'AB': 6375, 'A': 2417, 'B': 1208}, 2.9)
    """
    check_memory(memory)
    prices = prices or ProbeCosts()
    forests = Forests.one(configuration, statistics)
    return priced(configuration, forests, named(allocation)(forests, memory, prices), prices)


def priced(configuration: Configuration, forests: Forests, space: Floats, prices: ProbeCosts) -> Allocated:
    """A configuration with this division of the memory, and its cost."""
    return Allocated(
        configuration,
        dict(zip(configuration.relations, forests.by_table(space)[0].tolist())),
        float(forests.cost(space, prices)[0]),
        float(forests.emptying(space, prices)[0]),
    )


def price(
    configuration: Configuration,
    statistics: GroupStatistics,
    space: Mapping[Relation, float],
    prices: ProbeCosts | None = None,
) -> Allocated:
    """The cost of a given division of the memory."""
    forests = Forests.one(configuration, statistics)
    entries = np.array([*(float(space[r]) for r in configuration.relations), sum(space.values())])
    return priced(configuration, forests, entries, prices or ProbeCosts())


def check_memory(memory: float) -> None:
    if not (np.isfinite(memory) and memory > 0):
        raise NoMemory(f"the tables need memory above 0, got {memory}; give units of space, such as 40000")


def named(allocation: str) -> Allocation:
    if allocation not in ALLOCATIONS:
        raise WeftError(f"there is no allocation {allocation!r}; choose one of {', '.join(ALLOCATIONS)}")
    return ALLOCATIONS[allocation]
