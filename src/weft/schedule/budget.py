"""The loop that runs tasks while time is left; a running job and the simulator share it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.schedule.queue import Queue, SharedRun


@dataclass(frozen=True, slots=True)
class Budget:
    """Time for refreshing, in the unit of the costs. A run is never cut short: the time beyond the budget is a debt,
    which later grants pay. Unused time is not kept."""

    left: float = 0.0

    def grant(self, time: float) -> Budget:
        """
        >>> Budget(-0.5).grant(2.0), Budget(0.5).grant(2.0)
        (Budget(left=1.5), Budget(left=2.0))
        """
        return Budget(min(self.left, 0.0) + time)

    def spend(self, time: float) -> Budget:
        return Budget(self.left - time)


def run_within(
    queue: Queue, now: int, budget: Budget, price: Callable[[SharedRun], float], early: bool = True
) -> tuple[list[SharedRun], Budget]:
    """Take runs while time is left, the most urgent first; `price` returns the time of a run, estimated or measured.

    A run that is due may take more time than is left, so that no query starves because its run is longer than every
    budget. A run that is not due yet must fit, so that it never delays one that is.
    """
    runs: list[SharedRun] = []
    while budget.left > 0:
        run = queue.next(now, early)
        if run is None:
            break
        time = price(run)
        if run.until_deadline > 0 and time > budget.left:
            break
        queue.complete(run, now)
        runs.append(run)
        budget = budget.spend(time)
    return runs, budget
