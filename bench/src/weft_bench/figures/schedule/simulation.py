"""A simulated clock for the scheduler: how many answers a policy gives in a given time, and how late they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weft.schedule.budget import Budget, run_within
from weft.schedule.cost import ScheduleCosts, answer_cost, scan_cost
from weft.schedule.periodic import Periodic
from weft.schedule.policies import Policy
from weft.schedule.queue import Queue, SharedRun


@dataclass(slots=True)
class Watched:
    """Answers of one query, and updates beyond its period that passed before each."""

    period: int
    answers: int = 0
    last: int = 0
    late: list[int] = field(default_factory=list)

    def answer(self, now: int) -> None:
        self.late.append(max(0, now - self.last - self.period))
        self.answers, self.last = self.answers + 1, now


@dataclass(frozen=True, slots=True)
class Simulated:
    updates: int
    runs: int
    shared_runs: int
    """Runs with more than one task."""
    answers: int
    one_time_answers: int
    tasks: int
    late: Mapping[str, tuple[int, ...]]
    """By query: how late each answer was, and last how late the next one already is, in updates."""

    @property
    def throughput(self) -> float:
        """Answers of periodic queries per update."""
        return self.answers / self.updates

    @property
    def latency(self) -> float:
        """Updates beyond a query's period between two answers, the mean of all queries' means."""
        means = [sum(late) / len(late) for late in self.late.values()]
        return sum(means) / len(means)

    @property
    def latest(self) -> int:
        return max(max(late) for late in self.late.values())


def run_cost(queries: Sequence[Periodic], cost: ScheduleCosts) -> float:
    """The cost of answering all of them together."""
    return scan_cost(queries, cost) + answer_cost(queries, cost)


def simulate(
    queries: Sequence[Periodic],
    policy: Policy,
    cost: ScheduleCosts,
    grant: Callable[[int], float],
    updates: int,
    arriving: Callable[[int], Iterable[Periodic]] = lambda now: (),
    early: bool = True,
) -> Simulated:
    """`grant(now)` is the time for queries between update `now` and the next; `arriving(now)` are one-time queries.

    A run that takes longer than the time left continues, and the next update waits for it (section 4.1: queries and
    updates run in isolation).
    """
    queue = Queue(queries, policy, cost)
    watched = {query.name: Watched(query.period) for query in queries}
    tasks = len(queue.tasks)
    budget, runs, shared, once = Budget(), 0, 0, 0

    def price(run: SharedRun) -> float:
        return run_cost(run.queries, cost)

    for now in range(1, updates + 1):
        for query in arriving(now):
            queue.join(query, now)
        ran, budget = run_within(queue, now, budget.grant(grant(now)), price, early)
        for run in ran:
            runs, shared = runs + 1, shared + (len(run.tasks) > 1)
            for query in run.queries:
                if query.once:
                    once += 1
                else:
                    watched[query.name].answer(now)
    late = {name: (*w.late, max(0, updates - w.last - w.period)) for name, w in watched.items()}
    answers = sum(w.answers for w in watched.values())
    return Simulated(updates, runs, shared, answers, once, tasks, late)
