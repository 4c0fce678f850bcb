"""Keeps the work at the end of an epoch below a peak (sections 3.2.3 and 8.5.2).

*Shrink* makes all tables smaller in proportion. *Shift* moves space from queries to phantoms: groups that leave a
phantom cost probes, groups that leave a query cost evictions. Shift keeps all memory in use, but reaches less far.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.calibration.table_costs import ProbeCosts
from weft.model import PlanError
from weft.optimizer.phantoms.allocation import Allocated, price
from weft.optimizer.phantoms.statistics import GroupStatistics

STEPS, HALVINGS = 100, 30
"""Changes are tried in hundredths, and the first one that is enough is bisected to a billionth."""


class PeakTooLow(PlanError):
    """No table can be small enough for this limit."""


def shrink(allocated: Allocated, statistics: GroupStatistics, prices: ProbeCosts, peak: float) -> Allocated | None:
    """The largest tables in the same proportions that are emptied within the peak; None: none are small enough."""

    def smaller(by: float) -> Allocated:
        space = {relation: (1 - by) * units for relation, units in allocated.space.items()}
        return price(allocated.configuration, statistics, space, prices)

    return _least(allocated, smaller, peak)


def shift(allocated: Allocated, statistics: GroupStatistics, prices: ProbeCosts, peak: float) -> Allocated | None:
    """Move the least space from queries to phantoms, in proportion to their space; None: no shift is enough."""
    phantoms = allocated.configuration.phantoms
    above = sum(units for relation, units in allocated.space.items() if relation in phantoms)
    below = sum(units for relation, units in allocated.space.items() if relation not in phantoms)

    def moved(by: float) -> Allocated:
        grown = 1 + by * below / above
        space = {r: units * (grown if r in phantoms else 1 - by) for r, units in allocated.space.items()}
        return price(allocated.configuration, statistics, space, prices)

    return _least(allocated, moved, peak) if above else None


def within_peak(allocated: Allocated, statistics: GroupStatistics, prices: ProbeCosts, peak: float) -> Allocated:
    """The cheaper of the two."""
    allocations = [a for way in (shrink, shift) if (a := way(allocated, statistics, prices, peak)) is not None]
    if not allocations:
        least = price(allocated.configuration, statistics, dict.fromkeys(allocated.space, 0.0), prices).emptying
        raise PeakTooLow(
            f"emptying all tables costs {least:,.0f} even with a bucket each, which is above {peak:,.0f}; "
            "allow a higher peak or ask for fewer group-bys"
        )
    return min(allocations, key=lambda a: a.cost)


def _least(allocated: Allocated, changed: Callable[[float], Allocated], peak: float) -> Allocated | None:
    """The least change that is within the peak. A larger one may exceed it again: smaller tables of queries have more
    collisions."""
    if allocated.emptying <= peak:
        return allocated
    for step in range(1, STEPS + 1):
        best = changed(step / STEPS)
        if best.emptying <= peak:
            break
    else:
        return None
    low, high = (step - 1) / STEPS, step / STEPS
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        candidate = changed(middle)
        if candidate.emptying <= peak:
            high, best = middle, candidate
        else:
            low = middle
    return best
