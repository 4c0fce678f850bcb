"""Theorem 1 and lemma 1 of paper 2 on random workloads, and the share of savings that a plan is sure to make."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.exhaustive import cheapest, drawn, queries, query
from weft.model import Workload
from weft.optimizer import STRATEGIES, TECHNIQUES, Cost, Statistics, optimize
from weft.optimizer.guarantee import QUARTER, certain_share, theorem_1
from weft.plan import Guarantee, Plan

seeded = settings(derandomize=True, deadline=None, max_examples=80)
slides = st.lists(st.integers(1, 60), min_size=2, max_size=7)


def guarantee(plan: Plan) -> Guarantee:
    assert plan.guarantee is not None
    return plan.guarantee


def problems(plan: Plan) -> list[str]:
    return [condition.problem for condition in theorem_1(plan) if condition.problem]


def tumbling(slides: list[int]) -> Workload:
    return queries(*((s, s) for s in slides))


def twice_any_pair(workload: Workload) -> Fraction:
    return 2 * max(Cost().tree(list(pair)).edge_rate for pair in combinations(workload, 2))


@seeded
@given(slides, st.integers(0, 5))
def test_where_theorem_1_holds_weave_share_saves_a_quarter_of_what_can_be_saved(slides: list[int], more: int) -> None:
    workload = tumbling(slides)
    rate = twice_any_pair(workload) + Fraction(more, 10)
    plan = optimize(workload, rate, "weave_share", "panes")
    possible = plan.unshared - Fraction(cheapest(workload, rate, Cost()))
    if guarantee(plan).theorem_1:
        assert guarantee(plan).share >= QUARTER
        assert 4 * (plan.unshared - plan.cost) >= possible - Fraction(1, 10**6)
    else:
        assert problems(plan)[0].startswith(f"{len(slides) - len(plan.trees)} merges are made")


@seeded
@given(slides, st.data())
def test_lemma_1_merging_two_queries_saves_half_of_what_one_more_saves_in_their_tree(
    slides: list[int], data: st.DataObject
) -> None:
    workload = tumbling(slides)
    rate = twice_any_pair(workload)

    def cost(*members: int) -> Fraction:
        return rate + Cost().tree([workload[i] for i in members]).final_cost

    a, b = data.draw(st.sampled_from(list(combinations(range(len(slides)), 2))))
    c = data.draw(st.sampled_from(range(len(slides))))
    others = [i for i in range(len(slides)) if i != c]
    two = cost(a) + cost(b) - cost(a, b)
    one_more = cost(*others) + cost(c) - cost(*others, c)
    assert 2 * two >= one_more


@seeded
@given(slides, st.fractions(0, 3, max_denominator=20))
def test_the_rate_is_compared_with_the_densest_pair(slides: list[int], rate: Fraction) -> None:
    workload = tumbling(slides)
    plan = optimize(workload, rate, "weave_share", "panes")
    enough = rate >= twice_any_pair(workload)
    assert any("slices/s, twice that is above" in problem for problem in problems(plan)) != enough


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("strategy", ["no_share", "weave_share", "tri_weave", "shared", "auto"])
def test_a_plan_saves_at_least_the_share_that_it_claims(strategy: str, technique: str) -> None:
    cost = Cost(TECHNIQUES[technique])
    for seed in range(4):
        workload, rate = drawn(7, seed, unit=0.1), Fraction(40 * seed + 5)
        plan = optimize(workload, rate, strategy, technique)
        best = STRATEGIES["exhaustive"](workload, Statistics(rate), cost)
        share = guarantee(plan).share
        assert 0 <= share <= 1
        assert plan.unshared - plan.cost >= share * (plan.unshared - best.cost) or share == 0
        assert certain_share(best, cost) <= 1


def test_what_does_not_hold_is_said() -> None:
    plan = optimize(queries((16, 4), (10, 5)), rate=1, strategy="tri_weave", technique="blocks")
    assert problems(plan) == [
        "the plan is tri_weave with blocks, and the theorem is about weave_share with panes",
        "a has range 16 s and slide 4 s",
    ]
    few = optimize(tumbling([1, 2]), rate=1, strategy="weave_share", technique="panes")
    assert problems(few) == ["a and b cut 1.000 slices/s, twice that is above 1 rows/s"]


def test_each_grouping_has_to_meet_the_conditions() -> None:
    busy = [query(f"k{i}", s, s, keys=("k",)) for i, s in enumerate((1, 1))]
    plan = optimize([*tumbling([30, 40]), *busy], rate=1, strategy="weave_share", technique="panes")
    assert problems(plan) == ["k0 and k1 cut 1.000 slices/s, twice that is above 1 rows/s"]


def test_where_nothing_can_be_saved_everything_is() -> None:
    assert guarantee(optimize([query("a", 4, 4)], 10, "weave_share", "panes")).share == 1
    assert guarantee(optimize(queries((4, 4), (8, 4)), 10, "weave_share", "panes")).share == 1
