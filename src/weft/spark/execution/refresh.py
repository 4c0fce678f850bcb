"""Queries with SLIDE AT MOST: which of them a batch refreshes, and how long that takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from weft.engine import FOREVER, Layout
from weft.model import Refresh
from weft.schedule import AtMostQuery, Schedule, choose
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.final.report import BucketReport


@dataclass(frozen=True, slots=True)
class Refreshes:
    """What is refreshed in a batch."""

    refresh: Mapping[str, Refresh]
    before: Schedule
    after: Schedule

    def measured(
        self, reports: Iterable[BucketReport], seconds: float, advanced: float, interval: float | None, cores: int
    ) -> Schedule:
        """The schedule for the next batch: this one took `seconds`, and its rows advanced event time by `advanced`
        seconds. Without an interval there is no time limit."""
        scans: Counter[str] = Counter()
        answers: Counter[str] = Counter()
        for report in reports:
            scans.update(report.scans)
            answers.update(report.refreshes)
        spent = (scans.total() + sum(s * self.refresh[name].count for name, s in answers.items())) / cores
        pace, others = self.after.pace, seconds - spent
        if interval is not None:
            pace = pace.after(seconds, others, advanced)
        grant = None if interval is None else pace.grant(interval, others)
        return replace(self.after.measured(_shared(scans, cores), _shared(answers, cores), grant), pace=pace)


def _shared(seconds: Mapping[str, float], cores: int) -> dict[str, float]:
    return {name: each / cores for name, each in seconds.items()}


def at_most_queries(layout: Layout) -> Iterator[AtMostQuery]:
    """The queries with SLIDE AT MOST: weft decides when they are answered."""
    for tree in layout.current:
        for query in tree.queries:
            if query.requested_window is not None and query.name not in layout.backfilling:
                shape = repr((query.filter, query.calls, query.outputs, query.having))
                window, interval = query.requested_window, query.window.slide
                yield AtMostQuery(query.name, tree.reads(query), shape, window, interval, query.since, query.priority)


def choose_refreshes(layout: Layout, before: BatchRecord, until: int) -> Refreshes:
    schedule = before.schedule
    queries = list(at_most_queries(layout))
    if not queries or until == -FOREVER:
        return Refreshes({}, schedule, schedule)
    chosen = choose(queries, schedule, before.watermark, until, unlimited=until == FOREVER)
    return Refreshes(chosen.refresh, schedule, chosen.after)


def refreshed(layout: Layout, schedule: Schedule, watermark: int | None) -> dict[str, dict[str, Any]]:
    """Of each query that was answered: how often, the end of its newest window in microseconds, how many seconds of
    event time ago the next one was due, and the seconds between two answers, requested and planned."""
    if watermark is None:
        return {}
    return {
        query.name: {
            "refreshes": schedule.refreshes.get(query.name, 0),
            "answered": schedule.answered[query.name],
            "late_seconds": query.lateness(schedule.answered[query.name], watermark) / 1e6,
            "slide_seconds": query.window.slide / 1e6,
            "period_seconds": schedule.periods.get(query.name, query.window.slide) / 1e6,
        }
        for query in at_most_queries(layout)
        if query.name in schedule.answered
    }
