"""The price of trees: example 3 by hand, and omega of each technique as the dissertation's table 11 has it."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, e, floor, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.exhaustive import SECOND, queries
from weft.model import Window
from weft.optimizer import STRATEGIES, TECHNIQUES, Cost, Statistics
from weft.optimizer.cost.omega import WindowLoad

RATE = Statistics(Fraction(12, 10))
EXAMPLE_3 = queries((16, 4), (10, 5), (8, 4))


def test_a_plan_without_sharing_pays_a_pass_and_its_overlap_for_each_query() -> None:
    # rate 1.2 three times; 1/4 * 4, 1/5 * 2 and 1/4 * 2 final operations a second
    assert STRATEGIES["no_share"](EXAMPLE_3, RATE, Cost()).cost == 3 * Fraction(12, 10) + 1 + Fraction(
        4, 10
    ) + Fraction(1, 2)
    assert STRATEGIES["no_share"](EXAMPLE_3, RATE, Cost()).cost == Fraction(55, 10)


def test_one_tree_pays_one_pass_and_the_overlaps_of_all_at_the_common_edge_rate() -> None:
    plan = STRATEGIES["shared"](EXAMPLE_3, RATE, Cost())
    assert plan.trees[0].edge_rate == Fraction(4, 10)
    assert plan.trees[0].omega == 4 + 2 + 2
    assert plan.cost == Fraction(44, 10)


def test_a_composite_pass_reads_rows_once_and_folds_its_slices_for_each_tree() -> None:
    plan = STRATEGIES["tri_weave"](EXAMPLE_3, RATE, Cost())
    assert len(plan.trees) == 2
    assert plan.cost == Fraction(12, 10) + 2 * Fraction(4, 10) + Fraction(1, 4) * 6 + Fraction(1, 5) * 2


LOAD = WindowLoad.of(
    [Window(16 * SECOND, 4 * SECOND), Window(10 * SECOND, 5 * SECOND), Window(16 * SECOND, 8 * SECOND)]
)
E = Fraction(1, 2)
PARTIALS = (8, 5, 8)  # 16, 10 and 16 s at half a slice a second


def test_omega_of_panes_is_the_sum_of_range_by_slide() -> None:
    assert TECHNIQUES["panes"].omega(LOAD, E) == 4 + 2 + 2


def test_omega_of_flat_fat_is_the_sum_of_the_levels_that_cover_each_range() -> None:
    expected = sum(floor(log2(n - 1)) + Fraction(n - 1, 2 ** floor(log2(n))) for n in PARTIALS)
    assert TECHNIQUES["flat_fat"].omega(LOAD, E) == expected == 2 * (2 + Fraction(7, 8)) + (2 + Fraction(4, 4))


def test_omega_of_flat_fit_is_three_a_query() -> None:
    assert TECHNIQUES["flat_fit"].omega(LOAD, E) == 9


def test_omega_of_slick_deque_inv_is_two_for_each_different_number_of_partials() -> None:
    assert TECHNIQUES["slick_deque_inv"].omega(LOAD, E) == 2 * len(set(PARTIALS))


def test_omega_of_slick_deque_non_inv_grows_with_queries_and_hardly_with_partials() -> None:
    inverse_factorials = sum(Fraction(1, n) for n in (1, 2, 6, 24, 120, 720, 5040, 40320))
    assert TECHNIQUES["slick_deque_non_inv"].omega(LOAD, E) == 2 - Fraction(2, 8) + 3 + inverse_factorials


def test_the_mean_deque_over_a_million_partials_is_e_minus_one() -> None:
    load = WindowLoad.of([Window(1_000_000 * SECOND, SECOND)])
    assert float(TECHNIQUES["slick_deque_non_inv"].omega(load, Fraction(1))) == pytest.approx(2 - 2e-6 + 1 + e - 1)


def test_a_window_that_is_one_slice_needs_no_step_of_a_tree() -> None:
    assert TECHNIQUES["flat_fat"].omega(WindowLoad.of([Window(SECOND, SECOND)]), Fraction(1)) == 0


loads = st.lists(
    st.tuples(st.integers(1, 9), st.integers(0, 60)).map(lambda t: Window((t[0] + t[1]) * SECOND, t[0] * SECOND)),
    min_size=1,
    max_size=4,
).map(WindowLoad.of)
rates = st.fractions(1, 8, max_denominator=40)


@pytest.mark.parametrize("technique", TECHNIQUES.values(), ids=TECHNIQUES.keys())
@settings(derandomize=True, deadline=None, max_examples=80)
@given(loads, loads, rates, rates, rates)
def test_what_a_search_takes_for_a_floor_is_one(
    technique: object, one: WindowLoad, two: WindowLoad, e1: Fraction, e2: Fraction, more: Fraction
) -> None:
    t = technique
    together = max(e1, e2) + more
    floor_one, floor_two = float(t.floor(one, e1)), float(t.floor(two, e2))  # type: ignore[attr-defined]
    assert t.floor(one, e1) <= t.omega(one, e1 + more)  # type: ignore[attr-defined]
    assert t.floor(one, e1) <= t.omega(one, e1)  # type: ignore[attr-defined]
    joint = t.omega(one | two, together)  # type: ignore[attr-defined]
    assert t.joint_floor(floor_one, one, floor_two, two) <= joint + Fraction(1, 10**9)  # type: ignore[attr-defined]
    _, alone = (floor_one, floor_two) if t.additive else t.alone([one, two])  # type: ignore[attr-defined]
    assert floor_one + alone <= joint + Fraction(1, 10**9)
    assert t.joint_omega(one, two, together) == joint  # type: ignore[attr-defined]


def flat_fat_steps(partials: Fraction) -> Fraction:
    """Table 11 to the letter, but for the logarithm of less than two partials."""
    whole = max(0, int(partials - 1).bit_length() - 1)
    return whole + (partials - 1) / (1 << int(partials).bit_length() - 1)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=6), st.fractions(1, 9, max_denominator=50))
def test_flat_fat_adds_up_what_each_window_takes_and_its_floor_is_the_least_ahead(
    lengths: list[int], rate: Fraction
) -> None:
    load, t = WindowLoad.of([Window(length * SECOND, SECOND) for length in lengths]), TECHNIQUES["flat_fat"]
    assert t.omega(load, rate) == sum(flat_fat_steps(length * rate) for length in lengths)
    powers = [Fraction(1 << max(0, ceil(length * rate) - 1).bit_length()) for length in lengths]
    least = [min(flat_fat_steps(n * rate), flat_fat_steps(power)) for n, power in zip(lengths, powers, strict=True)]
    assert t.floor(load, rate) == sum(least)
