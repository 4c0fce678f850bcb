"""Three counters, one number, also where a bit set is impossible; and the short cuts of paper 1."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weft.model import Edges, Window
from weft.optimizer.edge_counting import COUNTERS, density, edge_rate, exact, f1, residues
from weft.optimizer.edge_counting.primes import coprime_bases, factorise, is_prime
from weft_bench.benchmarks.plan import random_classes
from weft_bench.rivals.planners import merge_pair_by_pair, prototype_density
from weft_bench.rivals.probing_planner import ShortCuts, weave_by_probing

seeded = settings(derandomize=True, deadline=None, max_examples=150)
classes = st.integers(1, 40).flatmap(lambda slide: st.tuples(st.just(slide), st.integers(0, slide - 1)))
unions = st.lists(classes, min_size=1, max_size=6).map(Edges.of_classes)


@pytest.mark.slow
@seeded
@given(unions)
@example(Edges(((1, 0),)))
def test_f1_and_the_exact_counter_agree(edges: Edges) -> None:
    assert f1.density(edges) == exact.density(edges) == f1.density(edges, f1.GcdTable(16))


@pytest.mark.parametrize(("edges", "period", "count"), [
    (Edges.of([Window(12, 9), Window(10, 6)]), 18, 8),
    (Edges.of_classes((slide, 0) for slide in (2, 3, 4, 5, 6)), 60, 44),
    (Edges.of_classes([(3, 0), (4, 0), (4, 3), (6, 0), (6, 2), (9, 0)]), 36, 27),
    (Edges(((3, 0), (6, 2))), 6, 3),
    (Edges(((3, 0), (5, 0), (5, 2))), 15, 9),
    (Edges(((2, 0), (3, 0), (5, 0))), 30, 22),
])  # fmt: skip
@pytest.mark.parametrize("counter", COUNTERS)
def test_every_worked_example_by_every_counter(counter: str, edges: Edges, period: int, count: int) -> None:
    assert COUNTERS[counter](edges) * period == count


@pytest.mark.slow
@pytest.mark.parametrize("slack", [0, 16, 10_000])
def test_primes_taken_out_and_primes_decided_give_one_number(slack: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residues, "SLACK", slack)
    for seed in range(6):
        drawn = random_classes(14, 400, seed)
        exact.forget()
        assert exact.density(Edges.of_classes(drawn)) == prototype_density(drawn)


def test_a_modulus_that_divides_what_is_divided_by_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def missed(self: residues.Residues) -> Fraction:
        tried.append(self)
        if len(tried) == 1:
            raise residues.BadModulus
        return original(self)

    original = residues.Residues.missed
    monkeypatch.setattr(residues.Residues, "missed", missed)
    drawn = random_classes(10, 500, 3)
    exact.forget()
    assert exact.density(Edges.of_classes(drawn)) == prototype_density(drawn)
    assert len(tried) == 2


def test_composite_slides_beyond_64_bits_are_counted() -> None:
    slides = [(1 << 61) - 1, (1 << 31) - 1, 1_000_003, 999_983, 10**12 + 39, 10**15 + 37]
    edges = Edges.of_classes((slide, 1) for slide in slides)
    assert edges.period > 1 << 63
    assert density(edges) == 1 - prod(Fraction(slide - 1, slide) for slide in slides)


def test_slides_that_share_a_large_factor_need_no_search_for_it() -> None:
    large = ((1 << 61) - 1) * 2
    assert factorise([large, large // 2 * 3]) == {
        large: {2: (2,), (1 << 61) - 1: ((1 << 61) - 1,)},
        large // 2 * 3: {3: (3,), (1 << 61) - 1: ((1 << 61) - 1,)},
    }


@seeded
@given(st.lists(st.integers(2, 10_000), min_size=1, max_size=8))
def test_coprime_bases_make_up_every_number(numbers: list[int]) -> None:
    bases = coprime_bases(numbers)
    for n in numbers:
        for base in bases:
            while n % base == 0:
                n //= base
        assert n == 1


def test_primes_are_those_that_a_sieve_leaves() -> None:
    assert [n for n in range(200) if is_prime(n)] == [n for n in range(2, 200) if all(n % d for d in range(2, n))]


def test_a_slide_that_no_clock_can_tell_is_refused() -> None:
    edges = Edges.of_classes((slide, 0) for slide in (1 << 64, 3, 5, 7, 11, 13, 17, 19, 23, 29))
    with pytest.raises(exact.SlideTooLong, match="the longest is"):
        density(edges)


def test_f1_refuses_more_groups_than_anybody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f1, "MOST_GROUPS", 100)
    with pytest.raises(f1.TooManyGroups, match="use the exact counter"):
        f1.density(Edges.of_classes((slide, 0) for slide in (7, 11, 13, 17, 19, 23, 29)))


WINDOWS = [Window(length, slide) for length, slide in ((16, 4), (10, 5), (8, 4), (30, 12), (25, 10), (9, 6), (20, 20))]


@pytest.mark.parametrize("short_cuts", [ShortCuts(*three) for three in product([True, False], repeat=3)])
def test_every_short_cut_of_paper_1_leaves_the_merges_as_they_are(short_cuts: ShortCuts) -> None:
    saving = Fraction(1_000_000)
    woven = weave_by_probing(WINDOWS, saving, short_cuts)
    assert sorted(map(list, woven.trees)) == sorted(merge_pair_by_pair(WINDOWS, saving, edge_rate)[0])


def test_each_short_cut_of_paper_1_saves_work() -> None:
    saving = Fraction(1_000_000)
    naive = weave_by_probing(WINDOWS, saving, ShortCuts(False, False, False))
    lookup = weave_by_probing(WINDOWS, saving, ShortCuts(True, False, False))
    bitmap = weave_by_probing(WINDOWS, saving, ShortCuts(True, True, False))
    smaller = weave_by_probing(WINDOWS, saving)
    assert naive.counted > lookup.counted == bitmap.counted
    assert naive.probes > lookup.probes > bitmap.probes >= smaller.probes
