"""Choose phantoms: which finer groupings are worth a table in the memory there is, and how large each table is.

Rows go to the tables of the raw relations. A table is direct-mapped: a group that is evicted goes to the tables that
its table feeds, and from the table of a query to the answers.

>>> from weft.optimizer.phantoms.relation import read
>>> counts = {read("A"): 600, read("B"): 700, read("C"): 500, read("AC"): 900, read("ABC"): 2500}
>>> choice = choose(map(read, "ABC"), GroupStatistics(counts), memory=40_000)
>>> str(choice.configuration), round(choice.cost, 2), round(choice.unshared, 2)
('ABC(AC(A C) B)', 1.98, 4.95)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from weft.calibration.table_costs import ProbeCosts
from weft.model import WeftError
from weft.optimizer.phantoms.allocation import Allocation, check_memory, named
from weft.optimizer.phantoms.base import Choice
from weft.optimizer.phantoms.exhaustive_phantoms import exhaustive
from weft.optimizer.phantoms.greedy_collisions import greedy_by_collisions
from weft.optimizer.phantoms.greedy_space import greedy_by_space
from weft.optimizer.phantoms.relation import Relation
from weft.optimizer.phantoms.statistics import GroupStatistics

Chooser = Callable[[Iterable[Relation], GroupStatistics, float, ProbeCosts, Allocation], Choice]


def _by_space(
    queries: Iterable[Relation], statistics: GroupStatistics, memory: float, prices: ProbeCosts, allocation: Allocation
) -> Choice:
    """GP divides the memory itself, so `allocation` is ignored."""
    return greedy_by_space(queries, statistics, memory, prices)


CHOOSERS: Mapping[str, Chooser] = {"gc": greedy_by_collisions, "gp": _by_space, "epes": exhaustive}


def choose(
    queries: Iterable[Relation],
    statistics: GroupStatistics,
    memory: float,
    prices: ProbeCosts | None = None,
    chooser: str = "gc",
    allocation: str | None = None,
) -> Choice:
    """Phantoms for these group-bys, and the space of all tables. The default allocation is ES for `epes`, else SL."""
    check_memory(memory)
    if chooser not in CHOOSERS:
        raise WeftError(f"there is no chooser {chooser!r}; choose one of {', '.join(CHOOSERS)}")
    divide = named(allocation or ("es" if chooser == "epes" else "sl"))
    return CHOOSERS[chooser](queries, statistics, memory, prices or ProbeCosts(), divide)
