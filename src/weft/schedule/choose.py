"""Which queries of a running job are refreshed in a batch, and for which windows.

A pure function of what the batch before left and of the watermark: a batch that is run again makes the same choice.
Time is event time in microseconds, costs are seconds as they were measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from weft.model import Refresh, Window
from weft.schedule.budget import Budget, run_within
from weft.schedule.cost import ScheduleCosts, answer_cost, scan_cost
from weft.schedule.pace import Pace
from weft.schedule.periodic import Periodic
from weft.schedule.policies import POLICIES, Policy
from weft.schedule.policies.policy import Split
from weft.schedule.queue import Queue, SharedRun
from weft.schedule.task import Task, groups, sub_groups

BLEND = 0.5
"""How much the newest measurement counts; the ones before count for the rest."""


@dataclass(frozen=True, slots=True)
class AtMostQuery:
    """A query that leaves it to weft when it is answered."""

    name: str
    reads: tuple[str, ...]
    asks: str
    window: Window
    """As it was asked: its slide is the longest time between two answers."""
    interval: int
    """Windows begin and end at multiples of it."""
    since: int | None = None
    """Windows that begin before it are not the query's; None: all are."""
    priority: int = 0

    @property
    def periodic(self) -> Periodic:
        return Periodic(self.name, self.reads, self.window.length, self.window.slide, self.asks, self.priority)

    def lateness(self, answered: int, watermark: int) -> int:
        """How long ago the next answer was due."""
        return max(0, watermark - answered - self.window.slide)


@dataclass(frozen=True, slots=True)
class Schedule:
    """What a batch leaves to the next one."""

    answered: Mapping[str, int] = field(default_factory=dict)
    """The end of the window that each query was answered for last."""
    periods: Mapping[str, int] = field(default_factory=dict)
    """How often each query runs: as it asked, or more often where that is cheaper together with others."""
    planned: bool = False
    """Whether the periods were chosen by measured costs."""
    scans: Mapping[str, float] = field(default_factory=dict)
    """Seconds to prepare what queries read of a tree, by kind."""
    answers: Mapping[str, float] = field(default_factory=dict)
    """Seconds to answer each query from it."""
    grant: float | None = None
    """Seconds that the next batch has for refreshing; None: as many as it takes."""
    owed: float = 0.0
    """Seconds that runs took beyond what was granted."""
    pace: Pace = field(default_factory=Pace)
    refreshes: Mapping[str, int] = field(default_factory=dict)
    runs: int = 0
    shared_runs: int = 0
    """In which several queries were answered."""

    def scan(self, kind: str, intervals: int) -> float:
        return self.scans.get(kind, 0.0)

    def answer(self, query: Periodic) -> float:
        return self.answers.get(query.name, 0.0)

    def measured(self, scans: Mapping[str, float], answers: Mapping[str, float], grant: float | None) -> Schedule:
        """With what this batch took, and what is granted to the next."""
        return replace(self, scans=_blended(self.scans, scans), answers=_blended(self.answers, answers), grant=grant)

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Schedule:
        """From what a record has of it; earlier versions had less."""
        return cls(**{**value, "pace": Pace(**value.get("pace", {}))})


@dataclass(frozen=True, slots=True)
class Chosen:
    refresh: Mapping[str, Refresh]
    after: Schedule


def choose(
    queries: Sequence[AtMostQuery],
    before: Schedule,
    passed: int | None,
    until: int,
    *,
    unlimited: bool = False,
    policy: Policy = POLICIES["late_pending"],
) -> Chosen:
    """What is refreshed when the watermark goes from `passed` to `until`.

    Whoever was never answered is, whatever the time: what it costs is not known before. Others run while time is left,
    the most urgent first. A run answers every window that is due by its period, or, where there is no time for that or
    the first of them is no longer kept, the newest.
    """
    before = _planned(_present(before, queries), queries, policy)
    by_name = {query.name: query for query in queries}
    refresh = {q.name: r for q in queries if q.name not in before.answered and (r := _first(q, until)) is not None}
    left = inf if unlimited or before.grant is None else Budget(-before.owed).grant(before.grant).left
    known = [by_name[name].periodic for name in before.answered]
    queue = Queue(known, Policy(_stored(before.periods), policy.reach), before, before.answered)
    spent = 0.0

    def price(run: SharedRun) -> float:
        nonlocal spent
        due = {task: _due(task, queue, by_name, passed, until, unlimited) for task in run.tasks}
        each = {task: answer_cost(task.queries, before) for task in run.tasks}
        scan = scan_cost(run.queries, before)
        whole = scan + sum(each[task] * found.count for task, found in due.items())
        if whole > left - spent:
            due = {task: _newest(by_name[task.queries[0].name], until) for task in run.tasks}
            whole = scan + sum(each.values())
        for task, found in due.items():
            for query in task.queries:
                mine = _after(found, before.answered[query.name])
                if mine is not None:
                    refresh[query.name] = mine
        spent += whole
        return whole

    runs, budget = run_within(queue, until, Budget(left), price, early=False)
    fresh = [name for name in refresh if name not in before.answered]
    # Where nothing comes after, the windows that are left have no number: one stands for them.
    given = {name: 1 if unlimited else found.count for name, found in refresh.items()}
    return Chosen(
        refresh,
        replace(
            before,
            answered={**before.answered, **{name: found.last for name, found in refresh.items()}},
            owed=max(0.0, -budget.left),
            refreshes={name: before.refreshes.get(name, 0) + given.get(name, 0) for name in by_name},
            runs=before.runs + len(runs) + bool(fresh),
            shared_runs=before.shared_runs + sum(len(run.queries) > 1 for run in runs) + (len(fresh) > 1),
        ),
    )


def _present(before: Schedule, queries: Iterable[AtMostQuery]) -> Schedule:
    """Without what was known of queries that left; the periods of those who stay are chosen anew."""
    names = {query.name for query in queries}
    kinds = {kind for query in queries for kind in query.reads}
    if before.answered.keys() <= names and before.periods.keys() == names and before.scans.keys() <= kinds:
        return before
    return replace(
        before,
        answered={name: end for name, end in before.answered.items() if name in names},
        periods={q.name: min(before.periods.get(q.name, q.window.slide), q.window.slide) for q in queries},
        planned=False,
        scans={kind: seconds for kind, seconds in before.scans.items() if kind in kinds},
        answers={name: seconds for name, seconds in before.answers.items() if name in names},
    )


def _planned(before: Schedule, queries: Sequence[AtMostQuery], policy: Policy) -> Schedule:
    """With periods by cost, once all costs are known; before, everybody has the period that was asked for."""
    if before.planned:
        return before
    known = all(query.name in before.answers for query in queries)
    intervals, periods = {query.name: query.interval for query in queries}, dict[str, int]()
    for group in groups(Periodic.of(q.name, q.reads, q.window, q.interval, q.asks) for q in queries):
        for task in policy.split(group, before) if known else sub_groups(group):
            periods |= {query.name: task.period * intervals[query.name] for query in task.queries}
    return replace(before, periods=periods, planned=known)


def _stored(periods: Mapping[str, int]) -> Split:
    def split(queries: Sequence[Periodic], cost: ScheduleCosts) -> tuple[Task, ...]:
        together: dict[int, list[Periodic]] = {}
        for query in queries:
            together.setdefault(periods[query.name], []).append(query)
        return tuple(Task(tuple(together[period]), period) for period in sorted(together))

    return split


def _first(query: AtMostQuery, until: int) -> Refresh | None:
    """Every window that ended by now, as plain Spark has them; None: the query's first has not ended."""
    window = query.window
    last = window.end(window.last_ended(until))
    first = None if query.since is None else window.end(window.first_begun(query.since))
    return None if first is not None and first > last else Refresh(first, last, window.slide)


def _due(
    task: Task, queue: Queue, by_name: Mapping[str, AtMostQuery], passed: int | None, until: int, unlimited: bool
) -> Refresh:
    """The windows that the task's period asks for, as far as their slices are kept: from the newest one on that had
    ended by `passed`. What is due already and not kept gives way to the newest, except where nothing comes after it."""
    query = by_name[task.queries[0].name]
    first, kept = queue.deadline(task), -inf if passed is None else passed - passed % query.interval
    if first < kept and unlimited:
        first += -int((first - kept) // task.period) * task.period
    if not kept <= first <= until:
        return _newest(query, until)
    return Refresh(first, until - (until - first) % task.period, task.period)


def _newest(query: AtMostQuery, until: int) -> Refresh:
    end = until - until % query.interval
    return Refresh(end, end, query.window.slide)


def _after(found: Refresh, answered: int) -> Refresh | None:
    """Without the windows that a query was answered for before."""
    assert found.first is not None
    first = found.first + max(0, (answered - found.first) // found.step + 1) * found.step
    return None if first > found.last else replace(found, first=first)


def _blended(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    return {**before, **{name: s + (1 - BLEND) * (before.get(name, s) - s) for name, s in now.items()}}
