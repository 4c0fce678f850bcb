"""What schedules cost: the worked numbers of section 4.3, the optimum against all ways, and hybrid's promise."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.relative_cost import Combines
from weft.schedule import POLICIES, Periodic, merged, schedule_cost, shorten, sub_groups
from weft.schedule.periods import merge_greedily
from weft_bench.figures.schedule.simulation import run_cost

seeded = settings(derandomize=True, deadline=None, max_examples=60)


def maxima(*windows_and_periods: tuple[int, int]) -> list[Periodic]:
    return [Periodic(f"Q{i}", ("max",), w, p) for i, (w, p) in enumerate(windows_and_periods, 1)]


G1 = maxima((10, 2), (5, 2), (6, 2), (15, 3), (12, 3), (20, 5), (30, 5))


@st.composite
def mixtures(draw: st.DrawFn, most: int = 5) -> list[Periodic]:
    """Windows over one synopsis, a few periods, some of the questions asked twice."""
    drawn = draw(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12)), min_size=1, max_size=most))
    return maxima(*drawn)


costs = st.builds(Combines, st.integers(1, 3), st.sampled_from([0, 1, 7]))


def test_one_run_costs_what_its_longest_window_costs() -> None:
    assert [run_cost(task.queries, Combines()) for task in sub_groups(G1)] == [9, 14, 29]
    assert run_cost(G1, Combines()) == 29


@pytest.mark.parametrize(
    ("periods", "a_minute"),
    [
        ((2, 3, 5), 358 / 30),  # conservative; the paper prints 11.63
        ((2, 2, 5), 11.4),
        ((2, 2, 2), 14.5),  # aggressive
        ((2, 3, 3), 76 / 6),
        ((2, 3, 2), 101 / 6),
    ],
)
def test_the_five_schedules_of_the_paper(periods: tuple[int, ...], a_minute: float) -> None:
    assert schedule_cost(merged(sub_groups(G1), periods), Combines()) == pytest.approx(a_minute)


def test_two_sub_groups_of_the_paper_are_cheaper_together() -> None:
    two = sub_groups(G1[:5])
    assert schedule_cost(two, Combines()) == pytest.approx(46 / 6)
    assert schedule_cost(merged(two, (2, 2)), Combines()) == 7


def test_hybrid_picks_the_papers_schedule_and_so_does_merging_greedily() -> None:
    found = shorten(sub_groups(G1), Combines())
    assert (found.periods, found.optimal) == ((2, 2, 5), True)
    assert found.cost == pytest.approx(11.4)
    assert merge_greedily(sub_groups(G1), Combines()) == (2, 2, 5)


def test_merging_greedily_is_not_always_the_best() -> None:
    tasks = sub_groups(maxima((5, 4), (19, 5), (9, 8), (36, 9)))
    greedy = merge_greedily(tasks, Combines())
    assert (greedy, schedule_cost(merged(tasks, greedy), Combines())) == ((4, 5, 5, 9), pytest.approx(7.8))
    found = shorten(tasks, Combines(), tolerance=0)
    assert (found.periods, found.cost) == ((4, 4, 8, 8), pytest.approx(6.625))


@seeded
@given(queries=mixtures(), cost=costs)
def test_the_periods_are_as_cheap_as_the_cheapest_of_all_ways(queries: list[Periodic], cost: Combines) -> None:
    tasks = sub_groups(queries)
    ways = product(*([p.period for p in tasks if p.period <= task.period] for task in tasks))
    least = min(schedule_cost(merged(tasks, way), cost) for way in ways)
    found = shorten(tasks, cost, tolerance=0)
    assert found.optimal
    assert found.cost == pytest.approx(least, abs=1e-9)
    assert all(period <= task.period for period, task in zip(found.periods, tasks))


@seeded
@given(queries=mixtures(most=12), cost=costs)
def test_hybrid_never_costs_more_than_conservative_or_aggressive(queries: list[Periodic], cost: Combines) -> None:
    def modelled(policy: str) -> float:
        return schedule_cost(POLICIES[policy].split(queries, cost), cost)

    limit = min(modelled("conservative"), modelled("aggressive"))
    for policy in ("hybrid", "late", "late_pending"):
        assert modelled(policy) <= limit + 1e-9
    assert modelled("hybrid") <= shorten(sub_groups(queries), cost, tolerance=0).cost * 1.02 + 1e-9


@seeded
@given(queries=mixtures(most=8), cost=costs)
def test_the_model_is_what_a_loop_over_time_adds_up(queries: list[Periodic], cost: Combines) -> None:
    tasks, horizon = sub_groups(queries), 27720  # all periods up to 12 divide it
    total = 0.0
    due_sets: dict[tuple[int, ...], float] = {}
    for now in range(1, horizon + 1):
        due = tuple(i for i, task in enumerate(tasks) if now % task.period == 0)
        if due not in due_sets:
            due_sets[due] = run_cost([q for i in due for q in tasks[i].queries], cost)
        total += due_sets[due]
    assert schedule_cost(tasks, cost) == pytest.approx(total / horizon)


def test_where_too_many_ways_would_have_to_be_tried_the_result_says_so_and_keeps_its_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queries = maxima(*((20 + 13 * p % 61, p) for p in range(5, 15)))
    best = shorten(sub_groups(queries), Combines(1, 2), tolerance=0)
    assert best.optimal
    monkeypatch.setattr("weft.schedule.periods.TRIES", 20)
    found = shorten(sub_groups(queries), Combines(1, 2), tolerance=0)
    assert not found.optimal
    conservative, aggressive = (
        schedule_cost(POLICIES[policy].split(queries, Combines(1, 2)), Combines(1, 2))
        for policy in ("conservative", "aggressive")
    )
    assert best.cost <= found.cost <= min(conservative, aggressive)


def test_queries_over_several_synopses_are_never_dearer_than_apart_or_all_together() -> None:
    # avg reads two synopses that others read alone: neither of `long sum` and `long count` covers the other.
    queries = [
        Periodic("average", ("sum", "count"), 10, 2, "avg"),
        Periodic("long sum", ("sum",), 40, 5),
        Periodic("long count", ("count",), 60, 7),
    ]
    found = shorten(sub_groups(queries), Combines())
    for policy in ("conservative", "aggressive"):
        assert found.cost <= schedule_cost(POLICIES[policy].split(queries, Combines()), Combines())
    assert not found.optimal


def test_a_query_with_a_longer_period_takes_the_answers_of_the_same_query_with_a_shorter_one() -> None:
    queries = [*maxima((10, 2), (10, 5), (10, 7)), Periodic("other", ("max",), 12, 7)]
    assert [(task.period, [q.name for q in task.queries]) for task in sub_groups(queries)] == [
        (2, ["Q1", "Q2", "Q3"]),
        (7, ["other"]),
    ]
    # Whoever asked more often leaves: the next one's period counts again.
    assert [(task.period, len(task.queries)) for task in sub_groups(queries[1:])] == [(5, 2), (7, 1)]
