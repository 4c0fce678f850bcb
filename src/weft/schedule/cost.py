"""The cost of scans and answers, and the long-run cost of a schedule (section 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from weft.model import Edges
from weft.optimizer.edge_counting import density
from weft.schedule.periodic import Periodic, Question
from weft.schedule.task import Task


class ScheduleCosts(Protocol):
    """Prices, in the unit of the scheduler's clock."""

    def scan(self, kind: str, intervals: int) -> float:
        """The cost of reading the newest `intervals` of a synopsis; it never falls with their number."""

    def answer(self, query: Periodic) -> float:
        """The cost of computing the answer from the scanned intervals."""


def longest_reads(queries: Iterable[Periodic]) -> dict[str, int]:
    """How far each synopsis is scanned for these queries together."""
    longest: dict[str, int] = {}
    for query in queries:
        for kind in query.reads:
            longest[kind] = max(longest.get(kind, 0), query.window)
    return longest


def scan_cost(queries: Iterable[Periodic], cost: ScheduleCosts) -> float:
    return sum(cost.scan(kind, intervals) for kind, intervals in longest_reads(queries).items())


def answer_cost(queries: Iterable[Periodic], cost: ScheduleCosts) -> float:
    questions = {query.question: query for query in queries}
    return sum(cost.answer(query) for query in questions.values())


def schedule_cost(tasks: Sequence[Task], cost: ScheduleCosts) -> float:
    """The cost per update of the synopses, if every task runs at the multiples of its period, and tasks that are due at
    the same time and read the same synopses run together.

    A synopsis is scanned as far back as the longest window that is due. So, from the longest on, each length costs what
    it reads beyond the next shorter one, whenever it or a longer one is due.
    """
    total = 0.0
    reads = [(task.period, longest_reads(task.queries)) for task in tasks]
    for kind in sorted({kind for _, read in reads for kind in read}):
        prices = sorted(((cost.scan(kind, read[kind]), period) for period, read in reads if kind in read), reverse=True)
        total += stairs_cost(prices)
    periods_of: dict[Question, tuple[Periodic, list[int]]] = {}
    for task in tasks:
        for query in task.queries:
            periods_of.setdefault(query.question, (query, []))[1].append(task.period)
    return total + sum(cost.answer(query) * float(due_rate(periods)) for query, periods in periods_of.values())


def stairs_cost(prices: Sequence[tuple[float, int]]) -> float:
    """The cost of (price, period) pairs, the highest price first: pairs due at the same time cost the highest price."""
    total, covered = 0.0, Fraction(0)
    periods: tuple[int, ...] = ()
    for price, period in prices:
        periods = with_period(periods, period)
        now = due_rate(periods)
        total, covered = total + price * float(now - covered), now
    return total


def with_period(periods: tuple[int, ...], period: int) -> tuple[int, ...]:
    """Ascending, without multiples of another period."""
    if any(period % p == 0 for p in periods):
        return periods
    return tuple(sorted([p for p in periods if p % period] + [period]))


def due_rate(periods: Iterable[int]) -> Fraction:
    """The share of updates that are a multiple of some period.

    >>> due_rate([2, 3])
    Fraction(2, 3)
    """
    return _due_rate(tuple(sorted(set(periods))))


@lru_cache(maxsize=1 << 16)
def _due_rate(periods: tuple[int, ...]) -> Fraction:
    return density(Edges.of_classes((period, 0) for period in periods))
