"""Which periods to shorten, so that more runs coincide (section 4.3).

Each sub-group of a group may run more often than it must, with the period of another one. By the model of
`schedule_cost`, sub-groups that are due together cost the scan of the longest, and one answer each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import inf

from weft.schedule.cost import (
    ScheduleCosts,
    answer_cost,
    due_rate,
    longest_reads,
    scan_cost,
    schedule_cost,
    with_period,
)
from weft.schedule.task import Task, merged

STATES_LIMIT = 3000
"""Partial solutions that are kept per step. The paper's claim of polynomial time does not hold: the cost of a period
depends on all other periods, not only on the next one."""

TRIES = 60_000
"""Partial solutions that are tried in total: some seconds. After that, only the most promising one is continued."""

FEW = 30
"""Partial solutions that are kept in the first search, which finds a cost to beat."""

TOLERANCE = 0.02
"""What fewer tasks may cost in addition, as a share of the least cost: see `follow`."""

NEGLIGIBLE = 1e-9
"""Costs that differ by a smaller share are equal."""


@dataclass(frozen=True, slots=True)
class SubGroup:
    period: int
    scan: float
    answers: float


@dataclass(frozen=True, slots=True)
class Begun:
    """A partial solution: the periods of the first sub-groups, and their cost."""

    cost: float
    chosen: tuple[int, ...]

    def better_than(self, other: Begun | None) -> bool:
        """Cheaper, or as cheap with fewer tasks: tasks that are due together run together only while all are on time,
        but the queries of one task always do."""
        if other is None or self.cost == inf or abs(self.cost - other.cost) > NEGLIGIBLE * self.cost:
            return other is None or self.cost < other.cost
        return len(set(self.chosen)) < len(set(other.chosen))


@dataclass(frozen=True, slots=True)
class Shortened:
    """Periods of the tasks, in their order."""

    periods: tuple[int, ...]
    cost: float
    optimal: bool


def shorten(tasks: Sequence[Task], cost: ScheduleCosts, tolerance: float = TOLERANCE) -> Shortened:
    """The cheapest periods, each the period of some task and none longer than the task's own.

    Within the tolerance, fewer different periods are chosen, as long as that costs no more than all tasks with their
    own periods, or all with the shortest.
    """
    kept, fastest = tuple(task.period for task in tasks), min(task.period for task in tasks)
    simple = [kept, tuple(fastest for _ in tasks)]
    chosen, optimal = cheapest(tasks, cost) if nested(tasks) else (merge_greedily(tasks, cost), len(tasks) == 1)
    by_cost = sorted((schedule_cost(merged(tasks, p), cost), place, p) for place, p in enumerate((chosen, *simple)))
    least, _, best = by_cost[0]
    limit = min(least * (1 + tolerance), *(price for price, place, _ in by_cost if place))
    fewer = follow(tasks, best, cost, limit - least)
    return Shortened(fewer, schedule_cost(merged(tasks, fewer), cost), optimal)


def follow(tasks: Sequence[Task], periods: Sequence[int], cost: ScheduleCosts, more: float) -> tuple[int, ...]:
    """Give a task the period of a more expensive one that divides its own, while early answers cost at most `more`.

    Tasks that are due together run together only while all are on time; the queries of one task do so in overload too.
    This neither saves nor costs a scan: the more expensive task reads all that the other one reads.
    """
    chosen = tuple(periods)
    while True:
        now = {task.period: task.queries for task in merged(tasks, chosen)}
        scans = {period: longest_reads(queries) for period, queries in now.items()}
        ways = [
            (answer_cost(now[longer], cost) * (1 / shorter - 1 / longer), longer, shorter)
            for shorter in now
            for longer in now
            if shorter < longer and longer % shorter == 0 and _covers(scans[shorter], scans[longer])
        ]
        if not ways:
            return chosen
        price, longer, shorter = min(ways)
        if price > more:
            return chosen
        chosen, more = tuple(shorter if period == longer else period for period in chosen), more - price


def _covers(more: Mapping[str, int], less: Mapping[str, int]) -> bool:
    return all(more.get(kind, 0) >= length for kind, length in less.items())


def nested(tasks: Sequence[Task]) -> bool:
    """Whether of any two tasks one reads all that the other reads, and at least as far back."""
    reads = sorted((longest_reads(task.queries) for task in tasks), key=lambda read: sum(read.values()))
    return all(_covers(more, less) for less, more in pairwise(reads))


def cheapest(tasks: Sequence[Task], cost: ScheduleCosts) -> tuple[tuple[int, ...], bool]:
    """By dynamic programming over the sub-groups, the longest scan first; and whether the result is proven optimal.

    A sub-group adds its scan where it is due and none of those before it is. That depends only on the set of instants
    at which those are due, so of all partial solutions with the same set only the cheapest is kept. The result is
    proven optimal if no partial solution was dropped for lack of room.
    """
    order = sorted(range(len(tasks)), key=lambda i: (-scan_cost(tasks[i].queries, cost), tasks[i].period))
    subs = [
        SubGroup(t.period, scan_cost(t.queries, cost), answer_cost(t.queries, cost)) for t in (tasks[i] for i in order)
    ]
    rough, proven = _search(subs, FEW, inf)
    if not proven:
        better, proven = _search(subs, STATES_LIMIT, rough.cost * (1 + NEGLIGIBLE))
        rough = better if better.better_than(rough) else rough
    periods = [0] * len(tasks)
    for place, period in zip(order, rough.chosen):
        periods[place] = period
    return tuple(periods), proven


def _search(subs: Sequence[SubGroup], limit: int, to_beat: float) -> tuple[Begun, bool]:
    candidates = sorted({sub.period for sub in subs})
    ways: dict[tuple[int, ...], Begun] = {(): Begun(0.0, ())}
    proven, tried = True, 0
    for place, sub in enumerate(subs):
        rest = Rest.of(subs[place + 1 :])
        next_ways: dict[tuple[int, ...], tuple[float, Begun]] = {}
        for used, begun in ways.items():
            covered = float(due_rate(used)) if used else 0.0
            for period in _worth_trying(sub.period, candidates, used):
                tried += 1
                after = with_period(used, period)
                now = covered if after == used else float(due_rate(after))
                total = begun.cost + sub.scan * (now - covered) + sub.answers / period
                way, least = Begun(total, (*begun.chosen, period)), total + rest.at_least(now)
                if least <= to_beat and way.better_than(next_ways[after][1] if after in next_ways else None):
                    next_ways[after] = least, way
        room = max(1, min(limit, (TRIES - tried) // len(candidates)))
        if len(next_ways) > room:
            proven = False
            next_ways = dict(sorted(next_ways.items(), key=lambda item: item[1][0])[:room])
        ways = {used: begun for used, (_, begun) in next_ways.items()}
    best = Begun(inf, ())
    for way in ways.values():
        best = way if way.better_than(best) else best
    return best, proven


def _worth_trying(own: int, candidates: Sequence[int], used: tuple[int, ...]) -> list[int]:
    """Of periods that are covered already and cost no scan: the longest, which has the fewest answers, and the longest
    that is already in use. And all periods that are not covered."""
    fitting = [period for period in candidates if period <= own]
    free = [period for period in fitting if any(period % p == 0 for p in used)]
    joined = [period for period in used if period <= own]
    return [*{*free[-1:], *joined[-1:]}, *(period for period in fitting if period not in free)]


@dataclass(frozen=True, slots=True)
class Rest:
    """A lower bound of the cost of the remaining sub-groups: those more frequent than all before them."""

    steps: tuple[tuple[float, float], ...]
    """(scan, share of updates), the most expensive first."""
    answers: float

    @classmethod
    def of(cls, subs: Sequence[SubGroup]) -> Rest:
        steps: list[tuple[float, float]] = []
        for sub in subs:
            if not steps or 1 / sub.period > steps[-1][1]:
                steps.append((sub.scan, 1 / sub.period))
        return cls(tuple(steps), sum(sub.answers / sub.period for sub in subs))

    def at_least(self, covered: float) -> float:
        """A lower bound of the remaining cost: a sub-group covers at least the share of updates that it needs alone."""
        total, before = self.answers, covered
        for scan, share in self.steps:
            if share > before:
                total, before = total + scan * (share - before), share
        return total


def merge_greedily(tasks: Sequence[Task], cost: ScheduleCosts) -> tuple[int, ...]:
    """Merge the two periods that save most into the shorter one, until no merge saves."""
    periods = [task.period for task in tasks]
    now = schedule_cost(merged(tasks, periods), cost)
    while True:
        ways = [
            [shorter if period == longer else period for period in periods]
            for shorter, longer in combinations(sorted(set(periods)), 2)
        ]
        if not ways:
            return tuple(periods)
        costs = [schedule_cost(merged(tasks, way), cost) for way in ways]
        best = min(range(len(ways)), key=costs.__getitem__)
        if costs[best] >= now * (1 - NEGLIGIBLE):
            return tuple(periods)
        periods, now = ways[best], costs[best]
