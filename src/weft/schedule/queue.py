"""The queue: the tasks, when each is due, and what runs next (algorithms 1 to 3).

The caller passes clock and costs. The only state is the update at which each query was last answered; the queue can be
rebuilt from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

from weft.model import PlanError
from weft.schedule.cost import ScheduleCosts
from weft.schedule.periodic import Periodic
from weft.schedule.policies.policy import Policy
from weft.schedule.task import Task, groups

Place = tuple[int, int, int, int]
"""Deadline, negative priority, when it last ran, number: the least runs first."""


SPARE = 64
"""Answered one-time queries leave unused task numbers; at this many, the queue is rebuilt without them."""

OVER = -1
"""The deadline of a task that does not run again: no place in the heap has it."""


class UnknownQuery(PlanError):
    """A query that is not in the queue, or already is."""


@dataclass(frozen=True, slots=True)
class SharedRun:
    """Queries that are answered together. `until_deadline` is below 0 if the most urgent of them is late, above 0 if
    none is due yet."""

    queries: tuple[Periodic, ...]
    tasks: tuple[Task, ...]
    until_deadline: int


class Queue:
    """`now` is the number of updates of the synopses so far; it never falls.

    Deadlines do not change with time, so only tasks that have run move in the heap (section 5.1). A task that has run
    since the last update waits outside the heap: its answers would be the same.
    """

    def __init__(
        self,
        queries: Iterable[Periodic],
        policy: Policy,
        cost: ScheduleCosts,
        answered: Mapping[str, int] | None = None,
    ) -> None:
        """`answered[name]` is the update after which a query was last answered, by default 0."""
        self._policy, self._cost = policy, cost
        self._queries: dict[str, Periodic] = {}
        self._split: dict[tuple[Periodic, ...], tuple[Task, ...]] = {}
        self.answered: dict[str, int] = {}
        for query in queries:
            self._add(query, (answered or {}).get(query.name, 0))
        self._build()

    @property
    def queries(self) -> tuple[Periodic, ...]:
        return tuple(self._queries.values())

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(self._tasks[number] for group in self._groups for number in group)

    def join(self, query: Periodic, now: int, ready: int = 0) -> None:
        """Its first answer is due one period from now, or from `ready` if its synopses cover its window later. A
        one-time query is due at the end of its period, which begins with this update."""
        since = max(now, ready)
        self._add(query, since - 1 if query.once else since)
        near = [group for group, kinds in enumerate(self._kinds) if not kinds.isdisjoint(query.reads)]
        if query.once and len(near) == 1 and len(self._tasks) < 2 * len(self._queries) + SPARE:
            self._append(Task((query,), query.period), near[0])
        else:
            self._build()

    def leave(self, name: str) -> None:
        if name not in self._queries:
            raise UnknownQuery(f"there is no query {name}; there are {', '.join(self._queries) or 'none'}")
        del self._queries[name], self.answered[name]
        self._build()

    def deadline(self, task: Task) -> int:
        return min(self.answered[query.name] for query in task.queries) + task.period

    def lateness(self, name: str, now: int) -> int:
        """Updates since a query should have been answered by its own period; 0 if it is on time."""
        return max(0, now - self.answered[name] - self._queries[name].period)

    def next(self, now: int, early: bool = True) -> SharedRun | None:
        """The next run; None if all answers are up to date, or, unless `early`, if nothing is due."""
        self._wake(now)
        if not self._waiting:
            return None
        first = self._waiting[0][-1]
        lowest = self._deadlines[first] - now
        if lowest > 0 and not early:
            return None
        reach = self._policy.reach(lowest)
        numbers = [first]
        if reach is not None:
            others = self._groups[self._group_of[first]]
            numbers += [n for n in others if n != first and self._deadlines[n] - now <= reach and self._stale(n, now)]
        tasks = tuple(self._tasks[n] for n in numbers)
        queries = tuple(q for task in tasks for q in task.queries if self.answered[q.name] < now)
        return SharedRun(queries, tasks, lowest)

    def complete(self, run: SharedRun, now: int) -> None:
        """Record that the queries of a run were answered from the synopses after update `now`."""
        current = [query for query in run.queries if self._queries.get(query.name) == query]
        for query in current:
            self.answered[query.name] = now
        for number in {self._task_of[query.name] for query in current}:
            task = self._tasks[number]
            if task.queries[0].once:
                self._end(number)
            else:
                self._deadlines[number] = self.deadline(task)
                self._asleep.append(number)
        self._forget_moved()

    def _add(self, query: Periodic, answered: int) -> None:
        if query.name in self._queries:
            raise UnknownQuery(f"there already is a query {query.name}; choose another name")
        self._queries[query.name] = query
        self.answered[query.name] = answered

    def _build(self) -> None:
        """Build the tasks, keeping those of unchanged groups; deadlines follow from `answered`."""
        self._tasks: list[Task] = []
        self._deadlines: list[int] = []
        self._group_of: list[int] = []
        self._groups: list[list[int]] = []
        self._kinds: list[set[str]] = []
        self._task_of: dict[str, int] = {}
        self._asleep: list[int] = []
        self._waiting: list[Place] = []
        self._woken: int | None = None
        split: dict[tuple[Periodic, ...], tuple[Task, ...]] = {}
        for group in groups(self._queries.values()):
            lasting = tuple(query for query in group if not query.once)
            if lasting:
                split[lasting] = self._split.get(lasting) or self._policy.split(lasting, self._cost)
            self._groups.append([])
            self._kinds.append({kind for query in group for kind in query.reads})
            for task in (*split.get(lasting, ()), *(Task((query,), query.period) for query in group if query.once)):
                self._append(task, len(self._groups) - 1)
        self._split = split

    def _append(self, task: Task, group: int) -> None:
        number = len(self._tasks)
        self._tasks.append(task)
        self._deadlines.append(self.deadline(task))
        self._group_of.append(group)
        self._groups[group].append(number)
        self._task_of.update((query.name, number) for query in task.queries)
        self._asleep.append(number)
        self._woken = None

    def _end(self, number: int) -> None:
        """Remove a one-time query that has been answered."""
        (query,) = self._tasks[number].queries
        self._groups[self._group_of[number]].remove(number)
        del self._queries[query.name], self.answered[query.name], self._task_of[query.name]
        self._deadlines[number] = OVER

    def _stale(self, number: int, now: int) -> bool:
        return self._deadlines[number] - self._tasks[number].period < now

    def _wake(self, now: int) -> None:
        if self._woken == now:
            return
        self._woken = now
        asleep, self._asleep = self._asleep, []
        for number in asleep:
            if self._stale(number, now):
                heappush(self._waiting, self._place(number))
            else:
                self._asleep.append(number)

    def _place(self, number: int) -> Place:
        task = self._tasks[number]
        return self._deadlines[number], -task.priority, self._deadlines[number] - task.period, number

    def _forget_moved(self) -> None:
        """Remove outdated places from the top of the heap: tasks that ran have a new deadline."""
        while self._waiting and self._waiting[0][0] != self._deadlines[self._waiting[0][-1]]:
            heappop(self._waiting)
