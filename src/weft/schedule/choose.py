"""Which queries of a running job are refreshed in a batch, and for which windows.

A pure function of the watermark and the schedule that the batch before left, so a repeated batch makes the same choice.
Time is event time in microseconds, costs are measured seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

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
"""The weight of the newest measurement; the rest is for the ones before."""


@dataclass(frozen=True, slots=True)
class AtMostQuery:
    """A query with SLIDE AT MOST: weft decides when it is answered."""

    name: str
    reads: tuple[str, ...]
    asks: str
    window: Window
    """As the user wrote it: its slide is the longest time between two answers."""
    interval: int
    """Windows begin and end at multiples of it."""
    since: int | None = None
    """Windows that begin before this time are not answered; None: all windows are."""
    priority: int = 0

    @property
    def periodic(self) -> Periodic:
        return Periodic(self.name, self.reads, self.window.length, self.window.slide, self.asks, self.priority)

    def lateness(self, answered: int, watermark: int) -> int:
        """How long ago the next answer was due."""
        return max(0, watermark - answered - self.window.slide)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The state of scheduling between two batches."""

    answered: Mapping[str, int] = field(default_factory=dict)
    """The end of the last window that each query was answered for."""
    periods: Mapping[str, int] = field(default_factory=dict)
    """The period of each query: its own, or a shorter one if running with others is cheaper."""
    planned: bool = False
    """Whether the periods were chosen by measured costs."""
    scans: Mapping[str, float] = field(default_factory=dict)
    """Seconds to prepare what queries read of a tree, per kind of synopsis."""
    answers: Mapping[str, float] = field(default_factory=dict)
    """Seconds to answer each query from it."""
    grant: float | None = None
    """Seconds that the next batch has for refreshing; None: no limit."""
    owed: float = 0.0
    """Seconds that runs took beyond the grant."""
    pace: Pace = field(default_factory=Pace)
    refreshes: Mapping[str, int] = field(default_factory=dict)
    runs: int = 0
    shared_runs: int = 0
    """Runs that answered several queries."""

    def scan(self, kind: str, intervals: int) -> float:
        return self.scans.get(kind, 0.0)

    def answer(self, query: Periodic) -> float:
        return self.answers.get(query.name, 0.0)

    def measured(self, scans: Mapping[str, float], answers: Mapping[str, float], grant: float | None) -> Schedule:
        """With the measured seconds of this batch, and the grant of the next."""
        return replace(self, scans=_blended(self.scans, scans), answers=_blended(self.answers, answers), grant=grant)


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
    """Which queries are refreshed when the watermark goes from `passed` to `until`.

    A query that was never answered is refreshed in any case: its cost is not known yet. Others run while time is left,
    the most urgent first. A run answers every window that is due by its period. It answers only the newest window if
    there is no time for all, or if the slices of the first are no longer kept.
    """
    before = _planned(_without_removed(before, queries), queries, policy)
    by_name = {query.name: query for query in queries}
    never_answered = (query for query in queries if query.name not in before.answered)
    refresh = {query.name: windows for query in never_answered if (windows := _first(query, until)) is not None}
    first_answers = len(refresh)
    answered_before = [by_name[name].periodic for name in before.answered]
    queue = Queue(answered_before, Policy(_stored(before.periods), policy.reach), before, before.answered)
    left = inf if unlimited or before.grant is None else Budget(-before.owed).grant(before.grant).left
    pricing = _Pricing(by_name, before, queue, passed, until, unlimited, left, refresh)
    runs, budget = run_within(queue, until, Budget(left), pricing.price, early=False)
    # In the last batch the remaining windows of a query count as one refresh.
    counts = {name: 1 if unlimited else each.count for name, each in refresh.items()}
    after = replace(
        before,
        answered={**before.answered, **{name: each.last for name, each in refresh.items()}},
        owed=max(0.0, -budget.left),
        refreshes={name: before.refreshes.get(name, 0) + counts.get(name, 0) for name in by_name},
        runs=before.runs + len(runs) + bool(first_answers),
        shared_runs=before.shared_runs + sum(len(run.queries) > 1 for run in runs) + (first_answers > 1),
    )
    return Chosen(refresh, after)


@dataclass(slots=True)
class _Pricing:
    """Prices the runs of one batch in turn, and records in `refresh` which windows each query is answered for."""

    by_name: Mapping[str, AtMostQuery]
    before: Schedule
    queue: Queue
    passed: int | None
    until: int
    unlimited: bool
    left: float
    refresh: dict[str, Refresh]
    spent: float = 0.0

    def price(self, run: SharedRun) -> float:
        due = {task: self._due(task) for task in run.tasks}
        each = {task: answer_cost(task.queries, self.before) for task in run.tasks}
        scan = scan_cost(run.queries, self.before)
        total = scan + sum(each[task] * windows.count for task, windows in due.items())
        if total > self.left - self.spent:
            due = {task: _newest(self.by_name[task.queries[0].name], self.until) for task in run.tasks}
            total = scan + sum(each.values())
        for task, windows in due.items():
            for query in task.queries:
                unanswered = _after(windows, self.before.answered[query.name])
                if unanswered is not None:
                    self.refresh[query.name] = unanswered
        self.spent += total
        return total

    def _due(self, task: Task) -> Refresh:
        """The windows that are due by the period of the task and whose slices are kept: from the newest one on that had
        ended by `passed`. If the first due window is no longer kept, only the newest is answered, except in the last
        batch."""
        query = self.by_name[task.queries[0].name]
        first = self.queue.deadline(task)
        kept = -inf if self.passed is None else self.passed - self.passed % query.interval
        if first < kept and self.unlimited:
            first += -int((first - kept) // task.period) * task.period
        if not kept <= first <= self.until:
            return _newest(query, self.until)
        return Refresh(first, self.until - (self.until - first) % task.period, task.period)


def _without_removed(before: Schedule, queries: Iterable[AtMostQuery]) -> Schedule:
    """Without queries that were removed; the periods of the others are chosen again."""
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
    """With periods chosen by cost once all costs are measured; before that, each query has its own period."""
    if before.planned:
        return before
    all_measured = all(query.name in before.answers for query in queries)
    intervals, periods = {query.name: query.interval for query in queries}, dict[str, int]()
    for group in groups(Periodic.of(q.name, q.reads, q.window, q.interval, q.asks) for q in queries):
        for task in policy.split(group, before) if all_measured else sub_groups(group):
            periods |= {query.name: task.period * intervals[query.name] for query in task.queries}
    return replace(before, periods=periods, planned=all_measured)


def _stored(periods: Mapping[str, int]) -> Split:
    def split(queries: Sequence[Periodic], cost: ScheduleCosts) -> tuple[Task, ...]:
        together: dict[int, list[Periodic]] = {}
        for query in queries:
            together.setdefault(periods[query.name], []).append(query)
        return tuple(Task(tuple(together[period]), period) for period in sorted(together))

    return split


def _first(query: AtMostQuery, until: int) -> Refresh | None:
    """Every window that ended by now, as in plain Spark; None: the first window of the query has not ended."""
    window = query.window
    last = window.end(window.last_ended(until))
    first = None if query.since is None else window.end(window.first_begun(query.since))
    return None if first is not None and first > last else Refresh(first, last, window.slide)


def _newest(query: AtMostQuery, until: int) -> Refresh:
    end = until - until % query.interval
    return Refresh(end, end, query.window.slide)


def _after(windows: Refresh, answered: int) -> Refresh | None:
    """Without the windows that a query was answered for before."""
    assert windows.first is not None
    first = windows.first + max(0, (answered - windows.first) // windows.step + 1) * windows.step
    return None if first > windows.last else replace(windows, first=first)


def _blended(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    return {**before, **{name: s + (1 - BLEND) * (before.get(name, s) - s) for name, s in now.items()}}
