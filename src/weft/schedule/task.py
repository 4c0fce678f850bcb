"""Tasks: queries that always run together; and groups of queries that can share a scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.schedule.periodic import Periodic, Question


@dataclass(frozen=True, slots=True)
class Task:
    """Queries that are due `period` updates after they were last answered; no query has a shorter period."""

    queries: tuple[Periodic, ...]
    period: int

    @property
    def priority(self) -> int:
        return max(query.priority for query in self.queries)


def groups(queries: Iterable[Periodic]) -> list[tuple[Periodic, ...]]:
    """Queries that can share a scan: those that read a common synopsis, directly or through others.

    >>> q = Periodic("q", ("sum", "count"), 5, 1), Periodic("r", ("count",), 5, 1), Periodic("s", ("max",), 5, 1)
    >>> [[query.name for query in group] for group in groups(q)]
    [['q', 'r'], ['s']]
    """
    disjoint: list[tuple[set[str], list[Periodic]]] = []
    for query in queries:
        reads, members = set(query.reads), [query]
        unrelated = []
        for other_reads, others in disjoint:
            if reads.isdisjoint(other_reads):
                unrelated.append((other_reads, others))
            else:
                reads |= other_reads
                members = [*others, *members]
        disjoint = [*unrelated, (reads, members)]
    return [tuple(members) for _, members in disjoint]


def sub_groups(queries: Sequence[Periodic]) -> tuple[Task, ...]:
    """One task per period, the shortest first.

    A query that differs from another only in its longer period gets the answers of the other, and so its period, while
    the other is in the queue.
    """
    shortest: dict[Question, int] = {}
    for query in queries:
        shortest[query.question] = min(shortest.get(query.question, query.period), query.period)
    by_period: dict[int, list[Periodic]] = {}
    for query in queries:
        by_period.setdefault(shortest[query.question], []).append(query)
    return tuple(Task(tuple(by_period[period]), period) for period in sorted(by_period))


def merged(tasks: Sequence[Task], periods: Sequence[int]) -> tuple[Task, ...]:
    """The tasks with these periods; tasks with equal periods become one."""
    together: dict[int, list[Periodic]] = {}
    for task, period in zip(tasks, periods, strict=True):
        together.setdefault(period, []).extend(task.queries)
    return tuple(Task(tuple(together[period]), period) for period in sorted(together))
