"""Refreshes of a running job: on time where the time suffices, nobody starves, a choice is always made the same way."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.refreshing import MINUTE, Job, asked, workloads
from weft.model import Refresh
from weft.schedule import AtMostQuery, Schedule, choose

seeded = settings(derandomize=True, deadline=None, max_examples=25)


@seeded
@given(workloads(), st.lists(st.integers(1, 12 * MINUTE), min_size=3, max_size=30), st.booleans())
def test_where_the_time_suffices_answers_are_never_further_apart_than_asked(
    queries: list[AtMostQuery], steps: list[int], measured: bool
) -> None:
    job, watermark = Job(queries), 100 * MINUTE
    for step in steps:
        watermark += step
        job.batch(watermark, 1e9 if measured else None)
    for query in queries:
        ends = job.ends[query.name]
        assert ends == sorted(set(ends)), "answered twice for one window"
        assert all(later - earlier <= query.window.slide for earlier, later in pairwise(ends))
        assert job.latest[query.name][-1] == 0
    assert job.schedule.refreshes == {name: len(ends) for name, ends in job.ends.items()}


@seeded
@given(workloads(), st.floats(0.1, 0.6))
def test_in_overload_nobody_starves(queries: list[AtMostQuery], grant: float) -> None:
    # A run takes 1 for each kind and 0.1 an answer; whatever runs while a task is late gets a later deadline.
    whole = 2.2 + 0.2 * len(queries)
    bound = ceil(len(queries) * (whole + 1) / grant) + 2
    job = Job(queries)
    for minute in range(1, 2 * bound):
        job.batch(100 * MINUTE + minute * MINUTE, grant)
    for query in queries:
        assert max(job.latest[query.name]) <= bound * MINUTE + query.window.slide


@seeded
@given(workloads())
def test_overload_is_seen_and_ends_with_the_load(queries: list[AtMostQuery]) -> None:
    queries = [*queries, asked("busy", 2, 1)]
    job, minute = Job(queries), 0
    for minute in range(1, 80):
        job.batch(100 * MINUTE + minute * MINUTE, 0.05)
    assert max(max(late) for late in job.latest.values()) > 0
    for more in range(1, 60):
        job.batch(100 * MINUTE + (minute + more) * MINUTE, 1e9)
    assert all(not any(late[-50:]) for late in job.latest.values())
    assert job.schedule.owed == 0


def test_what_runs_take_beyond_their_grants_is_never_more_than_one_run() -> None:
    job = Job([asked(f"q{i}", 10 + i, 1 + i % 4) for i in range(8)])
    spent, granted = 0.0, 0.0
    job.batch(100 * MINUTE, 0.5)
    for minute in range(1, 200):
        granted += 0.5
        spent += job.batch(100 * MINUTE + minute * MINUTE, 0.5)
    assert spent <= granted + 1 + 0.8


def test_queries_that_are_dear_to_read_are_run_together_once_their_costs_are_known() -> None:
    # The example of section 4.3: running the second group every two minutes is cheaper than apart from the first.
    first = [asked("q1", 10, 2), asked("q2", 5, 2), asked("q3", 6, 2)]
    second = [asked("q4", 15, 3), asked("q5", 12, 3)]
    job = Job([*first, *second])
    for minute in range(61):
        job.batch(100 * MINUTE + minute * MINUTE, 10.0)
    assert set(job.schedule.periods.values()) == {2 * MINUTE}
    assert job.ends["q4"][-5:] == job.ends["q1"][-5:]
    assert job.schedule.shared_runs > 25


@pytest.mark.parametrize("first", ["x", "y"])
def test_of_queries_due_together_the_one_with_the_greater_priority_comes_first(first: str) -> None:
    job = Job([replace(asked(kind, 10, 2, kind), priority=int(kind == first)) for kind in "xy"])
    job.batch(100 * MINUTE, 1.1)
    job.batch(102 * MINUTE, 1.1)  # there is time for one of them
    assert {kind: ends[-1] // MINUTE for kind, ends in job.ends.items()} == {"x": 100, "y": 100, first: 102}


def test_the_same_question_asked_less_often_takes_the_answers_of_the_other() -> None:
    job = Job([asked("often", 10, 2, asks="max"), asked("seldom", 10, 6, asks="max")], scan=0.0)
    for minute in range(20):
        job.batch(100 * MINUTE + minute * MINUTE, 10.0)
    assert job.ends["seldom"][-4:] == job.ends["often"][-4:]
    job.queries = [job.queries[1]]
    for minute in range(20, 50):
        job.batch(100 * MINUTE + minute * MINUTE, 10.0)
    late = job.ends["seldom"][-3:]
    assert [b - a for a, b in pairwise(late)] == [6 * MINUTE] * 2


def test_a_query_that_joins_begins_with_its_first_whole_window() -> None:
    here = asked("here", 10, 2)
    joins = replace(asked("joins", 4, 2), since=101 * MINUTE)
    schedule = choose([here], Schedule(), None, 100 * MINUTE).after
    waiting = choose([here, joins], schedule, 100 * MINUTE, 104 * MINUTE)
    assert "joins" not in waiting.refresh
    found = choose([here, joins], waiting.after, 104 * MINUTE, 107 * MINUTE)
    assert found.refresh["joins"] == Refresh(106 * MINUTE, 106 * MINUTE, 2 * MINUTE)


@pytest.mark.parametrize("late", [False, True])
def test_a_stream_that_ends_is_answered_at_every_period(late: bool) -> None:
    query = asked("q", 10, 3)
    passed = (109 if late else 102) * MINUTE
    before = Schedule(answered={"q": 100 * MINUTE}, periods={"q": 3 * MINUTE}, grant=0.0)
    chosen = choose([query], before, passed, 2**62, unlimited=True)
    (refresh,) = chosen.refresh.values()
    assert refresh.first == (109 if late else 103) * MINUTE
    assert refresh.step == 3 * MINUTE
    assert refresh.last > 2**61
    assert chosen.after.refreshes == {"q": 1}, "nobody knows yet how many of them hold rows"
