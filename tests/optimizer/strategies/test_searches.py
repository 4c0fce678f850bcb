"""What each search promises by itself, against plain loops."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.exhaustive import drawn, queries, query
from weft.model import Workload
from weft.optimizer import EXHAUSTIVE_LIMIT, STRATEGIES, TECHNIQUES, Cost, Statistics, TooManyQueries, optimize
from weft.optimizer.strategies.auto import search
from weft.optimizer.strategies.base import groupings
from weft.optimizer.strategies.contiguous import suffixes
from weft.optimizer.strategies.merge_trees import merge_trees
from weft.optimizer.strategies.random_share import random_share
from weft.optimizer.strategies.tree_prices import Pricing, bits, inseparable, singles
from weft.plan import Plan

seeded = settings(derandomize=True, deadline=None, max_examples=40)
some_windows = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), min_size=1, max_size=7)
rates = st.fractions(0, 60, max_denominator=10)


def named(windows: list[tuple[int, int]]) -> Workload:
    return queries(*((slide + more, slide) for more, slide in windows))


def pass_costs(plan: Plan) -> Fraction:
    """The cost of the trees if each has its pass."""
    return sum((plan.rate + tree.final_cost for tree in plan.trees), Fraction(0))


def tree_cost(workload: Workload, members: tuple[int, ...], rate: Fraction) -> Fraction:
    return rate + Cost().tree([workload[i] for i in members]).final_cost


# Prices.


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("unit", [1, 7.919])  # with the second, marks would be too many and edges stay classes
@seeded
@given(windows=some_windows)
def test_a_price_is_what_the_cost_model_says(technique: str, unit: float, windows: list[tuple[int, int]]) -> None:
    cost = Cost(TECHNIQUES[technique])
    odd = [query("odd", 8191 * unit, 8191), query("odder", 8209 * unit, 8209)] if unit != 1 else []
    group = groupings(Workload([*named(windows), *odd]))[0]
    pricing = Pricing(singles(group), cost)
    tree = 0
    for i in range(len(group)):
        joined = pricing.joined(tree, 1 << i) if tree else pricing.final(1 << i)
        tree |= 1 << i
        expected = cost.tree([q for _, q in group[: i + 1]]).final_cost
        assert joined == expected == Pricing(singles(group), cost).final(tree) == pricing.tree(tree).final_cost


def test_a_slide_that_a_shorter_one_contains_still_has_its_own_edges() -> None:
    group = groupings(queries((4, 4), (2, 2)))[0]
    pricing = Pricing(singles(group), Cost())
    assert (pricing.final(0b01), pricing.final(0b10)) == (Fraction(1, 4), Fraction(1, 2))


def test_queries_with_equal_edges_are_one_atom_where_that_loses_nothing() -> None:
    group = groupings(queries((8, 4), (16, 4), (10, 5)))[0]
    atoms = {name: len(inseparable(group, Cost(technique))) for name, technique in TECHNIQUES.items()}
    assert atoms == {
        "blocks": 2,
        "auto": 2,
        "panes": 2,
        "panes_inv": 2,
        "b_int": 3,
        "two_stacks": 2,
        "daba": 2,
        "flat_fit": 2,
        "flat_fat": 3,
        "slick_deque_inv": 3,
        "slick_deque_non_inv": 3,
    }


def test_only_changed_trees_are_compared_again() -> None:
    group = groupings(drawn(12, seed=2, unit=0.1))[0]
    pricing = Pricing(singles(group), Cost())
    trees, compared = merge_trees(pricing, [1 << i for i in range(11)], Fraction(30))
    assert compared >= 11 * 10 // 2
    again, compared = merge_trees(pricing, [*trees, 1 << 11], Fraction(30), changed=[1 << 11])
    assert sum(again) == pricing.all
    assert compared >= len(trees)
    assert merge_trees(pricing, trees, Fraction(30), changed=[]) == (trees, 0)


# Searches.


@seeded
@given(windows=some_windows, rate=rates)
def test_pairing_is_the_best_of_all_pairings(windows: list[tuple[int, int]], rate: Fraction) -> None:
    workload = named(windows)

    @cache
    def best(left: tuple[int, ...]) -> Fraction:
        if not left:
            return Fraction(0)
        first, *others = left
        options = [tree_cost(workload, (first,), rate) + best(tuple(others))]
        for other in others:
            rest = tuple(i for i in others if i != other)
            options.append(tree_cost(workload, (first, other), rate) + best(rest))
        return min(options)

    plan = optimize(workload, rate, "pairing", "panes")
    assert plan.cost == best(tuple(range(len(workload))))
    assert all(len(tree.queries) <= 2 for tree in plan.trees)


@seeded
@given(windows=some_windows, rate=rates)
def test_contiguous_is_the_best_of_all_ways_to_cut_the_order(windows: list[tuple[int, int]], rate: Fraction) -> None:
    workload, count = named(windows), len(windows)

    def cuts(mask: int) -> list[tuple[int, ...]]:
        ends = [i + 1 for i in range(count - 1) if mask >> i & 1]
        return [tuple(range(a, b)) for a, b in zip([0, *ends], [*ends, count])]

    least = min(sum(tree_cost(workload, run, rate) for run in cuts(mask)) for mask in range(1 << count - 1))
    plan = optimize(workload, rate, "contiguous", "panes")
    assert plan.cost == least
    order = {q.name: i for i, q in enumerate(workload)}
    for tree in plan.trees:
        places = [order[name] for name in tree.queries]
        assert places == list(range(places[0], places[-1] + 1))


@seeded
@given(windows=some_windows, rate=rates)
def test_when_the_first_query_expires_the_rest_is_known_already(windows: list[tuple[int, int]], rate: Fraction) -> None:
    group = groupings(named(windows))[0]
    whole = suffixes(Pricing(singles(group), Cost()), rate)
    for first in range(1, len(group)):
        alone = suffixes(Pricing(singles(group[first:]), Cost()), rate)
        assert whole.costs[first] == alone.costs[0]
        assert [len(run) for run in whole.trees(first)] == [len(run) for run in alone.trees()]


def test_random_depends_on_its_seed_and_stops_when_a_merge_saves_nothing() -> None:
    workload, statistics = drawn(40, seed=4, unit=0.1), Statistics(Fraction(300))
    plans = {random_share(seed)(workload, statistics, Cost()).trees for seed in range(5)}
    assert len(plans) > 1
    assert random_share(3)(workload, statistics, Cost()) == random_share(3)(workload, statistics, Cost())


@pytest.mark.parametrize("seed", range(6))
def test_auto_improves_both_greedy_plans_also_where_it_cannot_look_at_all(seed: int) -> None:
    workload, statistics = drawn(24, seed, unit=0.1), Statistics(Fraction(60 + 40 * seed))
    plan = search(small=0, effort=4_000)(workload, statistics, Cost())
    assert not plan.optimal
    for name in ("weave_share", "tri_weave"):
        assert plan.cost <= STRATEGIES[name](workload, statistics, Cost()).cost


def test_the_search_of_auto_finds_most_optima_of_ten_queries() -> None:
    found = 0
    for seed in range(12):
        workload, statistics = drawn(10, seed, unit=0.1), Statistics(Fraction(200))
        best = STRATEGIES["exhaustive"](workload, statistics, Cost())
        found += search(small=0)(workload, statistics, Cost()).cost == best.cost
    assert found >= 11


def test_auto_keeps_the_better_greedy_plan_where_trying_many_trees_takes_too_long() -> None:
    odd = Workload(query(f"q{i}", 3 * slide + i, slide) for i, slide in enumerate(range(1_001, 1_001 + 2 * 40, 2)))
    plans = {name: optimize(odd, 1, name, "panes") for name in ("weave_share", "tri_weave", "auto")}
    assert plans["auto"].cost == min(plans["weave_share"].cost, plans["tri_weave"].cost)


def test_auto_says_that_a_small_workload_is_optimal() -> None:
    plan = optimize(queries((16, 4), (10, 5), (8, 4)), rate=1.2, strategy="auto", technique="panes")
    assert (plan.optimal, plan.strategy) == (True, "auto")
    assert plan.cost <= Fraction(43, 10)


def test_exhaustive_search_counts_different_windows_and_refuses_too_many() -> None:
    different = Workload(query(f"q{i}", 3 * i + 5, i + 1) for i in range(EXHAUSTIVE_LIMIT + 1))
    with pytest.raises(TooManyQueries, match=f"at most {EXHAUSTIVE_LIMIT} queries.*use the strategy auto"):
        optimize(different, strategy="exhaustive")
    equal = Workload(query(f"q{i}", 20, 5) for i in range(100))
    assert len(optimize(equal, strategy="exhaustive").trees) == 1


def test_pairing_refuses_what_would_take_hours() -> None:
    many = Workload(query(f"q{i}", 20, 5) for i in range(301))
    with pytest.raises(TooManyQueries, match="pairing takes at most 300 queries"):
        optimize(many, strategy="pairing")


def test_bits_of_a_tree_are_its_atoms() -> None:
    assert list(bits(0)) == []
    assert list(bits(1 << 70 | 1)) == [0, 70]
