"""Incremental Weave Share: queries that come and go, what the curve predicts, and when all queries are replanned."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.exhaustive import drawn, queries, query
from weft.model import InvalidWorkload
from weft.optimizer import Cost, Statistics, optimize
from weft.optimizer.incremental import CannotAmend, Curve, change_plan, deviates, excess
from weft.plan import Plan, check_plan
from weft_bench.incremental_planning import IncrementalPlan, add, begin, comparisons, delete

EXAMPLE_3 = queries((16, 4), (10, 5), (8, 4))
COST = Cost()
seeded = settings(derandomize=True, deadline=None, max_examples=40)


def trees(plan: Plan) -> list[tuple[str, ...]]:
    return [tree.queries for tree in plan.trees]


def test_a_new_query_joins_the_tree_that_it_weaves_best_with() -> None:
    plan = optimize(EXAMPLE_3[:2], rate=1.2, strategy="no_share", technique="panes")
    plan, compared = change_plan(plan, [EXAMPLE_3[2]], [], COST)
    # c with a and with b; then, merged, {a, c} with b.
    assert (trees(plan), plan.cost, compared) == ([("a", "c"), ("b",)], Fraction(43, 10), 3)


def test_what_a_deleted_query_leaves_may_weave_with_others() -> None:
    # Without the dear query in it, the tree of b gets cheap enough to take a in.
    workload = queries((4, 4), (5, 5), (100, 5))
    plan = optimize(workload, rate=1.2, strategy="weave_share", technique="panes")
    assert trees(plan) == [("a",), ("b", "c")]
    left, compared = change_plan(plan, [], ["c"], COST)
    assert (trees(left), compared) == ([("a", "b")], 1)
    assert left.cost == optimize(workload[:2], rate=1.2, strategy="weave_share", technique="panes").cost


def test_trees_that_nothing_happened_to_are_not_compared() -> None:
    plan = optimize(drawn(20, seed=1, unit=0.1), 30, "weave_share", "panes")
    alone = next(tree.queries[0] for tree in plan.trees if len(tree.queries) == 1)
    left, compared = change_plan(plan, [], [alone], COST)
    assert (len(left.trees), compared) == (len(plan.trees) - 1, 0)


@seeded
@given(st.integers(0, 10**6), st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), min_size=1, max_size=8))
def test_plans_stay_whole_while_queries_come_and_go(seed: int, changes: list[tuple[bool, int]]) -> None:
    pool = list(drawn(14, seed, unit=0.1))
    for strategy in ("weave_share", "tri_weave"):
        changed, waiting = begin(pool[:6], Fraction(50), COST, strategy), pool[6:]
        for comes, number in changes:
            present = list(changed.plan.workload.by_name)
            if comes and waiting:
                changed = add(changed, [waiting.pop()], COST, tolerance=None)
            elif len(present) > 1:
                changed = delete(changed, [present[number % len(present)]], COST, tolerance=None)
            check_plan(changed.plan)
            scratch = Cost().plan(changed.plan.trees, changed.plan.feeds, _statistics(changed))
            assert changed.plan.cost == scratch
            assert not changed.replanned


def _statistics(changed: IncrementalPlan) -> Statistics:
    return Statistics(changed.plan.rate)


def test_the_slope_is_of_the_last_two_plans_of_different_size() -> None:
    curve = Curve(((10, Fraction(100)), (20, Fraction(160)), (20, Fraction(180))))
    assert curve.slope == 8
    assert curve.expected(25) == 220
    assert Curve(((10, Fraction(50)),)).expected(12) == 60


def test_a_plan_deviates_when_it_costs_more_than_the_tolerance_above_the_curve() -> None:
    plan = optimize(EXAMPLE_3, rate=1.2, strategy="no_share", technique="panes")  # costs 5.5
    curve = Curve(((3, Fraction(5)),))
    assert deviates(curve, plan, Fraction(9, 100))
    assert not deviates(curve, plan, Fraction(10, 100))
    assert not deviates(curve, plan, None)
    assert excess(curve, plan) == Fraction(1, 10)


def test_the_smaller_the_tolerance_the_more_plans_are_made_from_scratch() -> None:
    pool = list(drawn(80, seed=4, unit=0.1))
    ends = {}
    for tolerance in (Fraction(0), Fraction(2, 10), None):
        changed, replanned = begin(pool[:20], Fraction(100), COST), 0
        for q in pool[20:]:
            changed = add(changed, [q], COST, tolerance)
            replanned += changed.replanned
        ends[tolerance] = (replanned, changed.compared)
    assert ends[Fraction(0)][0] > ends[Fraction(2, 10)][0] > ends[None][0] == 0
    assert ends[Fraction(0)][1] > ends[Fraction(2, 10)][1] > ends[None][1]


def test_planning_from_scratch_compares_all_pairs_and_then_each_new_tree_with_the_others() -> None:
    plan = optimize(EXAMPLE_3, rate=1.2, strategy="weave_share", technique="panes")
    assert comparisons(plan) == 3 + 1


def test_new_keys_begin_a_pass_of_their_own() -> None:
    plan = optimize(EXAMPLE_3, rate=1.2, strategy="tri_weave", technique="panes")
    plan, _ = change_plan(plan, [query("k", 8, 4, keys=("symbol",))], [], COST)
    assert [feed.keys for feed in plan.feeds] == [(), ("symbol",)]


def test_what_cannot_be_changed_is_refused() -> None:
    plan = optimize(EXAMPLE_3, rate=1.2)
    with pytest.raises(CannotAmend, match="no query z; the plan has a, b, c"):
        change_plan(plan, [], ["z"], COST)
    with pytest.raises(CannotAmend, match="at least one"):
        change_plan(plan, [], "abc", COST)
    with pytest.raises(InvalidWorkload, match="two queries are named a"):
        change_plan(plan, [EXAMPLE_3[0]], [], COST)


def test_a_tree_that_nothing_happened_to_is_the_same_value_in_the_aamended_plan() -> None:
    by_symbol = query("k", 8, 4, keys=("symbol",))
    plan = optimize([*EXAMPLE_3, by_symbol], rate=1.2, strategy="weave_share", technique="panes")
    amended, compared = change_plan(plan, [], ["k"], COST)
    assert compared == 0
    assert all(any(tree is old for old in plan.trees) for tree in amended.trees)


def test_a_query_may_take_the_place_of_another_of_its_name() -> None:
    plan = optimize(EXAMPLE_3, rate=1.2, strategy="weave_share", technique="panes")
    other = query("a", 10, 5)
    changed, _ = change_plan(plan, [other], ["a"], COST)
    assert trees(changed) == [("b", "c", "a")]
    assert changed.workload.by_name["a"] is other
    elsewhere, _ = change_plan(plan, [query("a", 16, 4, keys=("symbol",))], ["a"], COST)
    assert [(feed.keys, trees(elsewhere)[feed.trees[0]]) for feed in elsewhere.feeds][-1] == (("symbol",), ("a",))
    with pytest.raises(CannotAmend, match="no query would be left"):
        change_plan(plan, [], ["a", "b", "c"], COST)
