"""Group-bys that share work: finer groupings that nobody asked for, each kept because it feeds several that were.

Rows go to the tables of the raw relations; a table is direct-mapped, and what is thrown out of it goes on to the
tables that it feeds, and out of a query's table to the answers. `choose` says which phantoms are worth a table in a
given memory, and how large each table is.

>>> counts = {read("A"): 600, read("B"): 700, read("C"): 500, read("AC"): 900, read("ABC"): 2500}
>>> found = choose(map(read, "ABC"), GroupStatistics(counts), memory=40_000)
>>> str(found.configuration), round(found.cost, 2), round(found.unshared, 2)
('ABC(AC(A C) B)', 1.98, 4.95)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from weft.model import WeftError
from weft.optimizer.phantoms.allocation import ALLOCATIONS, Allocated, Allocation, allocate, check_memory, named, price
from weft.optimizer.phantoms.base import Choice, Step
from weft.optimizer.phantoms.collisions import Flows, Seen, collision_rate, low_collision_rate, measure_flows
from weft.optimizer.phantoms.configuration import Configuration, InvalidConfiguration, Table, parse
from weft.optimizer.phantoms.epochs import eviction_rate, evictions
from weft.optimizer.phantoms.exhaustive_phantoms import EXHAUSTIVE_LIMIT, configurations, exhaustive
from weft.optimizer.phantoms.feeding_graph import FeedingGraph
from weft.optimizer.phantoms.greedy_collisions import greedy_by_collisions
from weft.optimizer.phantoms.greedy_space import PHI, greedy_by_space
from weft.optimizer.phantoms.peak import PeakTooLow, shift, shrink, within_peak
from weft.optimizer.phantoms.relation import InvalidNotation, Relation, read, show
from weft.optimizer.phantoms.statistics import GroupStatistics, Prices, UnknownGroups, estimate

Chooser = Callable[[Iterable[Relation], GroupStatistics, float, Prices, Allocation], Choice]


def _by_space(
    queries: Iterable[Relation], statistics: GroupStatistics, memory: float, prices: Prices, allocation: Allocation
) -> Choice:
    """Divides by itself, whatever the allocation."""
    return greedy_by_space(queries, statistics, memory, prices)


CHOOSERS: Mapping[str, Chooser] = {"gc": greedy_by_collisions, "gp": _by_space, "epes": exhaustive}


def choose(
    queries: Iterable[Relation],
    statistics: GroupStatistics,
    memory: float,
    prices: Prices | None = None,
    chooser: str = "gc",
    allocation: str | None = None,
) -> Choice:
    """Phantoms for these group-bys, and space for all tables: SL divides it, for `epes` ES."""
    check_memory(memory)
    if chooser not in CHOOSERS:
        raise WeftError(f"there is no way to choose phantoms {chooser!r}; choose one of {', '.join(CHOOSERS)}")
    divide = named(allocation or ("es" if chooser == "epes" else "sl"))
    return CHOOSERS[chooser](queries, statistics, memory, prices or Prices(), divide)


__all__ = [
    "ALLOCATIONS",
    "CHOOSERS",
    "EXHAUSTIVE_LIMIT",
    "PHI",
    "Allocated",
    "Choice",
    "Configuration",
    "FeedingGraph",
    "Flows",
    "GroupStatistics",
    "InvalidConfiguration",
    "InvalidNotation",
    "PeakTooLow",
    "Prices",
    "Relation",
    "Seen",
    "Step",
    "Table",
    "UnknownGroups",
    "allocate",
    "choose",
    "collision_rate",
    "configurations",
    "estimate",
    "eviction_rate",
    "evictions",
    "exhaustive",
    "greedy_by_space",
    "low_collision_rate",
    "measure_flows",
    "parse",
    "price",
    "read",
    "shift",
    "show",
    "shrink",
    "within_peak",
]
