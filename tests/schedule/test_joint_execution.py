"""Synopses and joint execution: figure 2, averages from sums and counts, unions from parts."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.joint_execution import Intervals, NotCovered, Synopsis, common_interval, execute, scan, synopses_for
from weft.model import Window
from weft.schedule import InvalidPeriodic, Periodic


def filled(kind: str, length: int, partials: list[int]) -> Intervals[int]:
    kept: Intervals[int] = Intervals(Synopsis(kind, 60, length))
    for partial in partials:
        kept.update(partial)
    return kept


def test_an_update_appends_the_newest_interval_and_drops_the_oldest() -> None:
    kept = filled("max", 8, [8, 5, 2, 6, 4, 6, 3, 1])
    assert scan(kept, [8], max) == {8: 8}
    kept.update(7)
    assert list(kept) == [7, 1, 3, 6, 4, 6, 2, 5]
    assert scan(kept, [8], max) == {8: 7}


@settings(derandomize=True, deadline=None)
@given(partials=st.lists(st.text("abc", max_size=2), min_size=1, max_size=12), data=st.data())
def test_one_scan_answers_every_window_on_the_way(partials: list[str], data: st.DataObject) -> None:
    windows = data.draw(st.sets(st.integers(1, len(partials))))
    combined = 0

    def concatenate(older: str, newer: str) -> str:  # order matters
        nonlocal combined
        combined += 1
        return older + newer

    found = scan(reversed(partials), windows, concatenate)
    assert found == {w: "".join(partials[-w:]) for w in windows}
    assert combined == max(max(windows, default=0) - 1, 0)


def test_an_average_divides_what_was_read_for_others_and_a_union_combines_its_parts() -> None:
    kept = {
        "sum": filled("sum", 4, [10, 20, 30, 40]),
        "count": filled("count", 4, [1, 2, 3, 4]),
        "max tcp": filled("max tcp", 4, [9, 1, 5, 2]),
        "max udp": filled("max udp", 4, [3, 8, 4, 4]),
    }
    reads = 0

    def add(older: int, newer: int) -> int:
        nonlocal reads
        reads += 1
        return older + newer

    combines = {"sum": add, "count": add, "max tcp": max, "max udp": max}
    finish = {"": lambda whole: whole, "avg": operator.truediv, "union": max}
    queries = [
        Periodic("total", ("sum",), 3, 1),
        Periodic("average", ("sum", "count"), 4, 1, "avg"),
        Periodic("same", ("sum", "count"), 4, 2, "avg"),
        Periodic("tcp", ("max tcp",), 2, 1),
        Periodic("all", ("max tcp", "max udp"), 3, 1, "union"),
    ]
    found = execute(queries, kept, combines, finish)
    assert found == {"total": 90, "average": 10.0, "same": 10.0, "tcp": 5, "all": 8}
    assert reads == 6  # three for the sum, three for the count, however many read them


def test_a_longer_query_waits_until_its_synopsis_has_grown() -> None:
    kept = filled("max", 2, [1, 2, 3])
    assert kept.updates_until(2) == 0
    kept.resize(Synopsis("max", 60, 4))
    assert (list(kept), kept.updates_until(4)) == ([3, 2], 2)
    with pytest.raises(NotCovered, match="a window of 4 intervals is asked for and 2 are there; ask 2 updates later"):
        scan(kept, [1, 4], max)
    kept.update(9)
    kept.update(1)
    assert scan(kept, [4], max) == {4: 9}
    kept.resize(Synopsis("max", 60, 1))
    assert list(kept) == [1]


def test_synopses_are_as_long_as_their_longest_reader_and_periods_are_counted_in_intervals() -> None:
    windows = [Window(600, 120), Window(840, 180)]
    interval = common_interval(windows)
    queries = [Periodic.of(f"q{i}", ("median",), window, interval) for i, window in enumerate(windows)]
    assert [(q.window, q.period) for q in queries] == [(10, 2), (14, 3)]
    assert synopses_for(queries, interval) == {"median": Synopsis("median", 60, 14)}


def test_what_cannot_be_scheduled_is_refused_with_what_would_work() -> None:
    with pytest.raises(InvalidPeriodic, match="an interval of 20 would serve it"):
        Periodic.of("q", ("max",), Window(100, 80), 60)
    with pytest.raises(InvalidPeriodic, match="reads no synopsis"):
        Periodic("q", (), 1, 1)
    with pytest.raises(InvalidPeriodic, match="from 1 on, got 5 and 0"):
        Periodic("q", ("max",), 5, 0)
