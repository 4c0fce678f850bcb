"""Time for refreshing where no trigger leaves any: all that is due where that fits, else what the stream can bear."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.refreshing import MINUTE, Job, asked, workloads
from weft.schedule import AtMostQuery, Pace
from weft.schedule.pace import LEAST, PATIENCE

seeded = settings(derandomize=True, deadline=None, max_examples=12)
SECOND = MINUTE // 4
"""Of the clock, in event time: they may differ, and batches are fewer."""
BATCHES = 250


@dataclass
class Live:
    """A stream that goes on with the clock, read batch after batch: rows that came while the one before was running, or
    so many seconds of them at most. A batch takes `price` and `work` for each second of stream, then its refreshes."""

    job: Job
    price: float
    work: float
    most: float = inf
    pace: Pace = field(default_factory=Pace)
    now: float = 0.0
    read: float = 0.0
    grants: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    """Seconds of stream that each batch left unread."""
    lengths: list[float] = field(default_factory=list)

    def batch(self, interval: float = 0.0) -> None:
        came = min(self.now - self.read, self.most)
        self.read += came
        others, before = self.price + self.work * came, self.job.watermark
        granted = self.job.schedule.grant
        spent = self.job.batch(100 * MINUTE + int(self.read * SECOND), granted)
        if before is None:
            spent = 0.0  # first answers are for windows that nobody waited for
        self.pace = self.pace.after(others + spent, others, came)
        granted = self.pace.grant(interval, others)
        self.job.schedule = self.job.schedule.measured({}, {}, granted)
        self.waiting.append(self.now - self.read)
        self.lengths.append(others + spent)
        self.grants.append(granted)
        self.now += others + spent

    def run(self, interval: float) -> Live:
        for _ in range(BATCHES):
            self.batch(interval)
        return self

    def latest(self) -> float:
        """How late anybody was after a batch, in seconds."""
        return max(map(max, self.job.latest.values())) / SECOND


def demand(queries: list[AtMostQuery], job: Job) -> float:
    """Seconds of refreshing that a second of stream asks for, if nothing is shared."""
    return sum(SECOND * (job.scan + job.answer) / query.window.slide for query in queries)


@pytest.mark.parametrize("interval", [0.0, 0.001])
@seeded
@given(workloads(), st.floats(0.3, 3), st.floats(0, 0.7), st.floats(0.1, 0.9))
def test_where_the_machine_can_do_it_refreshes_come_as_often_as_asked(
    interval: float, queries: list[AtMostQuery], price: float, work: float, part: float
) -> None:
    # A batch of `price + PATIENCE` and its rows is as long as refreshing makes one. What fits into its patience is on
    # time, but for what falls due in the middle of a batch, or together with more than one batch has time for.
    length = (price + PATIENCE) / (1 - work)
    fits = PATIENCE / length
    whole = part * fits / demand(queries, Job(queries, 1.0, 0.1))
    live = Live(Job(queries, whole, 0.1 * whole), price, work).run(interval)
    together = (1 + 0.1) * whole * len(queries) / PATIENCE
    assert live.latest() <= (together + 2) * length
    assert max(live.lengths) <= length + 1.1 * whole * len(queries)


@pytest.mark.parametrize("interval", [0.0, 0.001, 1.0])
@seeded
@given(workloads(), st.floats(0.3, 3), st.floats(0, 0.85), st.floats(1, 30), st.one_of(st.none(), st.floats(1.2, 10)))
def test_where_it_cannot_the_stream_goes_on_and_nobody_starves(
    interval: float, queries: list[AtMostQuery], price: float, work: float, scan: float, spare: float | None
) -> None:
    # A source that gives a batch so many rows and no more: rows alone would leave some time, whatever is asked for.
    most = inf if spare is None else spare * price / (0.9 - work)
    queries = [*queries, asked("busy", 2, 1)]
    live = Live(Job(queries, scan), price, work, most).run(interval)
    run = 2 * scan + 0.2 * len(queries) + 1
    longest = (price + PATIENCE) / (1 - work) + run
    middle = BATCHES // 2
    assert max(live.waiting[middle:]) <= max(live.waiting[:middle]) + 3 * (longest + run), "it falls behind"
    assert max(live.waiting) <= 20 * (longest + run)
    turns = (len(queries) + 1) * run / (LEAST * price)
    assert live.latest() <= turns * longest


def test_a_stream_that_catches_up_gives_its_time_back() -> None:
    pace = Pace()
    for _ in range(10):
        pace = pace.after(seconds=4.0, others=1.0, advanced=1.0)
    assert pace.behind == 30
    assert pace.grant(0.0, 1.0) == LEAST
    for _ in range(20):
        pace = pace.after(seconds=1.0, others=1.0, advanced=4.0)
    assert pace == Pace()
    assert pace.grant(0.0, 1.0) == PATIENCE


def test_a_trigger_that_batches_keep_is_kept() -> None:
    assert Pace().grant(interval=10.0, others=2.0) == pytest.approx(6.4)
    assert Pace().grant(interval=10.0, others=9.99) == pytest.approx(LEAST * 10)
    assert Pace().grant(interval=10.0, others=12.0) == PATIENCE
    assert Pace().grant(interval=10.0, others=60.0) == pytest.approx(LEAST * 60)
