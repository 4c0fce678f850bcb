"""Every policy sits the same exam: what fits is on time, nobody starves, lateness ends with the load."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.relative_cost import Combines
from weft.schedule import POLICIES, Periodic, groups
from weft_bench.figures.schedule.simulation import run_cost, simulate

seeded = settings(derandomize=True, deadline=None, max_examples=25)
COST = Combines(1, 2)
HORIZON = 120


@st.composite
def workloads(draw: st.DrawFn) -> list[Periodic]:
    """An average reads two synopses, and so joins the queries of both; priorities only break ties."""
    reads = st.sampled_from([("x",), ("y",), ("z",), ("x", "y")])
    query = st.tuples(reads, st.integers(2, 30), st.integers(1, 9), st.integers(0, 2))
    drawn = draw(st.lists(query, min_size=1, max_size=9))
    return [
        Periodic(f"q{i}", kinds, window, period, priority=priority)
        for i, (kinds, window, period, priority) in enumerate(drawn)
    ]


def due_work(policy: str, queries: Sequence[Periodic]) -> list[float]:
    """What all that is due at each update costs, where everything has been on time: a plain loop."""
    tasks = [POLICIES[policy].split(group, COST) for group in groups(queries)]
    found = []
    for now in range(1, HORIZON + 1):
        total = 0.0
        for group in tasks:
            due = [t.queries for t in group if now % t.period == 0]
            together = due if policy == "edf" else [tuple(q for t in due for q in t)]
            total += sum(run_cost(queries, COST) for queries in together)
        found.append(total)
    return found


def all_work(policy: str, queries: Sequence[Periodic]) -> list[float]:
    return [run_cost(t.queries, COST) for g in groups(queries) for t in POLICIES[policy].split(g, COST)]


@pytest.mark.parametrize("policy", POLICIES)
@seeded
@given(queries=workloads())
def test_where_the_work_due_fits_no_deadline_is_missed(policy: str, queries: list[Periodic]) -> None:
    due = due_work(policy, queries)
    # In each interval there is as much time as what is due in it takes, and not an instant more.
    found = simulate(queries, POLICIES[policy], COST, lambda now: due[now - 1], HORIZON, early=False)
    assert found.latest == 0
    # And with a tenth less than what is due altogether, some answers cannot be given.
    less = simulate(queries, POLICIES[policy], COST, lambda now: 0.9 * sum(due) / HORIZON, HORIZON, early=False)
    assert less.answers < found.answers


@pytest.mark.parametrize("policy", POLICIES)
@seeded
@given(queries=workloads())
def test_early_runs_make_nobody_late(policy: str, queries: list[Periodic]) -> None:
    work = all_work(policy, queries)
    found = simulate(queries, POLICIES[policy], COST, lambda now: sum(work), HORIZON, early=True)
    assert found.latest == 0
    assert found.answers == HORIZON * len(queries)  # there is time for everything, always


@pytest.mark.parametrize("policy", POLICIES)
@seeded
@given(queries=workloads(), share=st.floats(0.02, 0.9), early=st.booleans())
def test_in_overload_nobody_starves(policy: str, queries: list[Periodic], share: float, early: bool) -> None:
    # Whatever runs while a task is late gets a later deadline than it: each other task comes before it once at most.
    work = all_work(policy, queries)
    grant = share * sum(work)
    bound = ceil((sum(work) + max(work)) / grant) + 2
    found = simulate(queries, POLICIES[policy], COST, lambda now: grant, 4 * bound, early=early)
    assert found.latest <= bound


@pytest.mark.parametrize("policy", POLICIES)
@seeded
@given(queries=workloads(), early=st.booleans(), load=st.lists(st.floats(0, 0.9), min_size=5, max_size=60))
def test_lateness_ends_when_the_load_ends(policy: str, queries: list[Periodic], early: bool, load: list[float]) -> None:
    work = sum(all_work(policy, queries))

    def grant(now: int) -> float:
        return load[now - 1] * work if now <= len(load) else 2 * work

    def lateness(until: int) -> int:
        found = simulate(queries, POLICIES[policy], COST, grant, until, early=early)
        return sum(map(sum, found.late.values()))

    # Half of what there then is pays what is owed, which is one run at most; the other half is for everything at once.
    # Answers given then still count how late they were; from there on nothing comes to that.
    caught_up = len(load) + 1
    assert lateness(caught_up) == lateness(caught_up + HORIZON)


def test_overload_is_seen_in_latency_and_shared_away() -> None:
    queries = [Periodic(f"q{i}", ("x",), 20 + 7 * i, 2 + i) for i in range(10)]
    seen = {p: simulate(queries, POLICIES[p], Combines(), lambda now: 25.0, 300) for p in POLICIES}
    assert seen["edf"].latency > seen["late_pending"].latency > 0
    assert seen["late_pending"].throughput > 1.5 * seen["edf"].throughput
    assert seen["late_pending"].shared_runs > 0 == seen["edf"].shared_runs
