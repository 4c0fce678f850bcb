"""Every worked example about edges in the papers, and both counters against plain marking."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import gcd, lcm, prod
from random import Random
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weft.model import EdgeClass, Edges, Window
from weft.optimizer.edge_counting import COUNTERS, bit_set, density, edge_rate, exact

SECOND = 1_000_000


def weaveability(left: Edges, right: Edges) -> Fraction:
    """Common edges / all edges in the composite slide: 1 where the two are the same, 0 where they never meet.

    >>> weaveability(Edges(((6, 0), (6, 4))), Edges(((9, 0), (9, 3))))
    Fraction(1, 4)
    """
    together = density(left | right)
    return (density(left) + density(right) - together) / together


def edges_in(edges: Edges, until: int) -> list[int]:
    """The edges in `(0, until]`, by looking at each instant."""
    return [t for t in range(1, until + 1) if any((t - shift) % slide == 0 for slide, shift in edges.classes)]


# The papers' examples. P1's windows begin at multiples of the slide, P3's end there: (slide, shift) pairs say both.

A = Edges.of([Window(12, 9)])
B = Edges.of([Window(10, 6)])


def test_ranges_12_and_10_with_slides_9_and_6_are_cut_into_fragments_3_6_and_4_2() -> None:
    # t    0        3     4     6        9     10    12       16    18
    # a             |                    |           |              |
    # b                   |     |              |     |        |     |
    assert edges_in(A, 18) == [3, 9, 12, 18]
    assert edges_in(B, 18) == [4, 6, 10, 12, 16, 18]
    assert (A | B).period == 18
    assert edges_in(A | B, 18) == [3, 4, 6, 9, 10, 12, 16, 18]


def test_their_edge_rates_are_2_in_9_and_2_in_6_and_together_8_in_18() -> None:
    assert (density(A), density(B), density(A | B)) == (Fraction(2, 9), Fraction(2, 6), Fraction(8, 18))


def test_two_of_their_eight_edges_are_common() -> None:
    assert sorted(set(edges_in(A, 18)) & set(edges_in(B, 18))) == [12, 18]
    assert weaveability(A, B) == Fraction(1, 4)


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS.keys())
def test_slides_2_3_4_5_6_have_44_edges_in_60(counter: object) -> None:
    edges = Edges.of_classes((slide, 0) for slide in (2, 3, 4, 5, 6))
    assert lcm(2, 3, 4, 5, 6) == 60
    assert counter(edges) * 60 == 44  # type: ignore[operator]


def overlaps(left: EdgeClass, right: EdgeClass) -> bool:
    """The papers' check: pairwise is enough for any group."""
    return abs(left[1] - right[1]) % gcd(left[0], right[0]) == 0


def f1_terms(classes: list[EdgeClass]) -> list[int]:
    """The papers' alternating series, a term for each size of group: edges that all of a group have in common."""
    period = lcm(*(slide for slide, _ in classes))
    return [
        sum(
            period // lcm(*(slide for slide, _ in group))
            for group in combinations(classes, size)
            if all(overlaps(a, b) for a, b in combinations(group, 2))
        )
        for size in range(1, len(classes) + 1)
    ]


def test_the_series_for_slides_2_3_4_5_6_is_87_70_36_10_1() -> None:
    assert f1_terms([(slide, 0) for slide in (2, 3, 4, 5, 6)]) == [87, 70, 36, 10, 1]
    assert 87 - 70 + 36 - 10 + 1 == 44


WITH_FRAGMENTS: list[EdgeClass] = [(3, 0), (4, 0), (4, 3), (6, 0), (6, 2), (9, 0)]


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS.keys())
def test_slides_3_4_6_9_with_fragments_3_1_and_2_4_have_27_edges_in_36(counter: object) -> None:
    edges = Edges.of_classes(WITH_FRAGMENTS)
    assert lcm(3, 4, 6, 9) == 36
    assert counter(edges) * 36 == 27  # type: ignore[operator]


def test_the_series_for_slides_with_fragments_is_46_26_8_1() -> None:
    # The example leaves out what another class contains: (6, 0) and (9, 0) lie within (3, 0); the series keeps them.
    terms = f1_terms(WITH_FRAGMENTS)
    assert terms[:4] == [46, 26, 8, 1]
    assert sum(terms[::2]) - sum(terms[1::2]) == 46 - 26 + 8 - 1 == 27


def test_slide_3_meets_slide_6_shifted_by_3_every_6_and_shifted_by_2_never() -> None:
    three, six_3, six_2 = (Edges(((3, 0),)), Edges(((6, 3),)), Edges(((6, 2),)))
    assert overlaps((3, 0), (6, 3))
    assert not overlaps((3, 0), (6, 2))
    assert density(three) + density(six_3) - density(three | six_3) == Fraction(1, 6)
    assert density(three) + density(six_2) - density(three | six_2) == 0
    assert weaveability(three, six_2) == 0


def test_slide_5_with_fragments_2_3_and_slide_3_have_9_edges_in_15() -> None:
    five, three = Edges.of_classes([(5, 0), (5, 2)]), Edges(((3, 0),))
    assert density(five | three) * 15 == 6 + 5 - 2 == 9
    assert sorted(set(edges_in(five, 15)) & set(edges_in(three, 15))) == [12, 15]


# Laws.

classes = st.integers(1, 30).flatmap(lambda slide: st.tuples(st.just(slide), st.integers(0, slide - 1)))
unions = st.lists(classes, min_size=1, max_size=7).map(Edges.of_classes)
seeded = settings(derandomize=True, deadline=None, max_examples=300)


@seeded
@given(unions)
@example(Edges(((2, 0), (2, 1))))
@example(Edges(((4, 0), (4, 2), (6, 1), (6, 5), (9, 1))))
def test_both_counters_agree_wherever_a_bit_set_is_possible(edges: Edges) -> None:
    if edges.period <= bit_set.LONGEST_PERIOD:
        assert exact.density(edges) == bit_set.density(edges)
    if edges.period <= 20_000:
        assert bit_set.density(edges) * edges.period == len(edges_in(edges, edges.period))


@seeded
@given(unions)
def test_residues_alone_give_what_marking_gives(edges: Edges) -> None:
    """Short composite slides are marked: here none is, so that the reasoning about residues is examined too."""
    if edges.period > bit_set.LONGEST_PERIOD:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "SHORT_PERIOD", 0)
        patch.setattr(exact, "FEW", 2)
        exact.forget()
        try:
            assert exact.density(edges) == bit_set.density(edges)
        finally:
            exact.forget()


windows = st.tuples(st.integers(1, 24), st.integers(0, 100), st.integers(0, 23)).map(
    lambda t: Window(t[0] + t[1], t[0], t[2] % t[0])
)


@seeded
@given(st.lists(windows, min_size=1, max_size=5))
def test_windows_with_fragments_and_offsets_agree_too(drawn: list[Window]) -> None:
    edges = Edges.of(drawn)
    if edges.period <= bit_set.LONGEST_PERIOD:
        assert exact.density(edges) == bit_set.density(edges)


@seeded
@given(unions, unions)
def test_merging_never_loses_an_edge_and_weaveability_is_a_share(left: Edges, right: Edges) -> None:
    assert max(density(left), density(right)) <= density(left | right) <= density(left) + density(right)
    assert 0 <= weaveability(left, right) <= 1
    assert weaveability(left, left) == 1


@seeded
@given(unions, st.integers(-100, 100), st.integers(1, 12))
def test_neither_the_beginning_nor_the_unit_of_time_matters(edges: Edges, begin: int, unit: int) -> None:
    moved = Edges.of_classes((slide * unit, (shift + begin) * unit) for slide, shift in edges.classes)
    assert density(moved) * unit == density(edges)


def test_slides_without_a_common_prime_are_independent() -> None:
    slides = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59]
    edges = Edges.of_classes((slide, slide // 2) for slide in slides)
    assert density(edges) == 1 - prod(Fraction(slide - 1, slide) for slide in slides)


def test_a_bit_set_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(bit_set.CompositeSlideTooLong, match="use the exact counter"):
        bit_set.density(Edges.of_classes((slide, 0) for slide in (101, 103, 107, 109)))


def test_an_edge_rate_is_a_second_and_times_are_microseconds() -> None:
    assert edge_rate(Edges.of([Window(16 * SECOND, 4 * SECOND)])) == Fraction(1, 4)


def test_a_hundred_slides_of_seconds_with_ranges_of_milliseconds_are_counted_at_once() -> None:
    random = Random(1)
    drawn = [(s, round(s * random.uniform(2, 20), 3)) for s in random.choices(range(2, 61), k=100)]
    edges = Edges.of(Window(round(seconds * SECOND), s * SECOND) for s, seconds in drawn)
    begun = process_time()
    rate = edge_rate(edges)
    assert 0 < rate < 1000
    assert process_time() - begun < 2


def test_epochs_2_3_5_end_22_times_in_a_cycle_of_30() -> None:
    assert density(Edges.of_classes([(2, 0), (3, 0), (5, 0)])) * 30 == 22
