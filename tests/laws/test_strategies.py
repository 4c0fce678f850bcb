"""Every strategy sits the same exam: no plan beats exhaustive search, and none does worse than its own promise."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.exhaustive import cheapest, query
from weft.model import Edges, Workload
from weft.optimizer import STRATEGIES, TECHNIQUES, Cost, Statistics
from weft.optimizer.edge_counting import edge_rate
from weft.plan import Plan, check_plan

seeded = settings(derandomize=True, deadline=None, max_examples=25)

SLIDES = st.one_of(st.integers(1, 12), st.sampled_from([0.5, 15, 20, 30, 60]))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    keys = draw(st.sampled_from([[()], [(), ("symbol",)]]))
    drawn = draw(st.lists(st.tuples(SLIDES, st.integers(0, 40), st.integers(0, 11)), min_size=1, max_size=6))
    return Workload(
        query(f"q{i}", slide + more, slide, offset % slide, keys=keys[i % len(keys)])
        for i, (slide, more, offset) in enumerate(drawn)
    )


rates = st.fractions(0, 60, max_denominator=10)


def planned(name: str, workload: Workload, rate: Fraction, technique: str) -> Plan:
    return STRATEGIES[name](workload, Statistics(rate), Cost(TECHNIQUES[technique]))


def least(workload: Workload, rate: Fraction, technique: str) -> float:
    """Grouping by grouping, the cheaper of a pass a tree and one composite pass."""
    cost, total = Cost(TECHNIQUES[technique]), 0.0
    for grouping in {q.grouping for q in workload}:
        group = [q for q in workload if q.grouping == grouping]
        slices = edge_rate(Edges.of(q.window for q in group))
        total += min(cheapest(group, rate, cost), float(rate) + cheapest(group, slices, cost))
    return total


@pytest.mark.parametrize("technique", TECHNIQUES)
@seeded
@given(workload=workloads(), rate=rates)
def test_no_strategy_beats_exhaustive_search(technique: str, workload: Workload, rate: Fraction) -> None:
    best = planned("exhaustive", workload, rate, technique)
    assert float(best.cost) == pytest.approx(least(workload, rate, technique), rel=1e-9, abs=1e-9)
    assert best.optimal
    for name in STRATEGIES:
        plan = planned(name, workload, rate, technique)
        check_plan(plan)
        assert plan.cost >= best.cost
        assert not plan.optimal or plan.cost == best.cost


@pytest.mark.parametrize("technique", TECHNIQUES)
@seeded
@given(workload=workloads(), rate=rates)
def test_searches_that_begin_without_sharing_never_cost_more_than_it(
    technique: str, workload: Workload, rate: Fraction
) -> None:
    begin = planned("no_share", workload, rate, technique)
    assert begin.cost == begin.unshared
    for name in ("random", "pairing", "contiguous", "insert_then_weave", "local_search", "weave_share", "auto"):
        assert planned(name, workload, rate, technique).cost <= begin.cost


@pytest.mark.parametrize("start", ["no_share", "random"])
@seeded
@given(workload=workloads(), rate=rates)
def test_more_moves_never_cost_more(start: str, workload: Workload, rate: Fraction) -> None:
    costs = [planned(f"local_search_{start}_{times}x", workload, rate, "panes").cost for times in (2, 5, 10)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] <= planned(start, workload, rate, "panes").cost
    if start == "no_share":
        assert planned("local_search", workload, rate, "panes").cost == costs[-1]


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_gives_the_same_plan_twice(name: str) -> None:
    workload = Workload(query(f"q{i}", 7 * i + 10, i % 5 + 1) for i in range(9))
    assert planned(name, workload, Fraction(20), "panes") == planned(name, workload, Fraction(20), "panes")


@pytest.mark.parametrize("name", STRATEGIES)
def test_queries_of_different_groupings_never_share(name: str) -> None:
    workload = Workload(query(f"q{i}", 20, 5, keys=("k",) * (i % 2)) for i in range(6))
    for tree in planned(name, workload, Fraction(100), "panes").trees:
        assert len({workload.by_name[q].grouping for q in tree.queries}) == 1


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("rate", [0, 10_000])
def test_one_query_and_equal_queries_are_planned(name: str, rate: int) -> None:
    assert len(planned(name, Workload([query("q", 20, 5)]), Fraction(rate), "blocks").trees) == 1
    equal = Workload(query(f"q{i}", 20, 5) for i in range(20))
    plan = planned(name, equal, Fraction(rate), "blocks")
    assert sum(len(tree.queries) for tree in plan.trees) == 20
