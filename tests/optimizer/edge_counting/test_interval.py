"""Edges between two numbers: the exact count lies there, and the two are close."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from weft.model import Edges
from weft.optimizer.edge_counting import bit_set, density, edge_rate, edge_rate_between, exact, interval
from weft_bench.benchmarks.plan import random_classes


@pytest.mark.parametrize("longest", [100, 1_000, 86_400])
@pytest.mark.parametrize("windows", [4, 15, 40])
def test_the_exact_count_lies_between(windows: int, longest: int) -> None:
    for seed in range(6):
        edges = Edges.of_classes(random_classes(windows, longest, seed))
        low, high = interval.enclose(edges.classes)
        assert low <= 1 - density(edges) <= high


def test_forty_random_slides_of_a_day_are_enclosed_to_a_ten_thousandth() -> None:
    for seed in range(4):
        low, high = interval.enclose(Edges.of_classes(random_classes(40, 86_400, seed)).classes)
        assert high - low <= (1 - high) / 10_000


@pytest.mark.parametrize("slides", [
    # Few primes beyond the base, in many classes: threes and fours of them meet everywhere.
    [17, 34, 51, 68, 85], [17 * 19, 19 * 23, 17 * 23, 17, 38, 46], [17 * a for a in (2, 3, 5, 7, 11, 13)],
    # Powers that the base has only in part.
    [32, 64, 96, 160, 27, 81, 54], [25, 50, 125, 49, 98], [121, 242, 169, 338, 343],
])  # fmt: skip
def test_slides_with_the_same_few_primes_are_enclosed_too(slides: list[int]) -> None:
    random = Random(7)
    for _ in range(40):
        edges = Edges.of_classes((s, random.choice([0, random.randrange(s)])) for s in slides for _ in range(3))
        low, high = interval.enclose(edges.classes)
        assert low <= exact.missed(edges.classes) <= high
        if edges.period <= bit_set.LONGEST_PERIOD:
            assert low <= 1 - bit_set.density(edges) <= high


def test_slides_just_below_two_to_the_31_do_not_overflow() -> None:
    slides = [(1 << 31) - k for k in (1, 2, 3, 4, 8, 16, 19, 48)]
    edges = Edges.of_classes((s, shift) for s in slides for shift in (0, s // 3))
    low, high = interval.enclose(edges.classes)
    assert low <= exact.missed(edges.classes) <= high


def test_what_can_be_counted_in_time_is_counted() -> None:
    edges = Edges.of_classes((s * 1_000_000, h * 1_000_000) for s, h in random_classes(30, 1_000, 3))
    assert edge_rate_between(edges) == (edge_rate(edges), edge_rate(edges))


def test_what_cannot_is_enclosed_world_by_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """All slides are even: begins at even instants and those at odd ones never meet."""
    random = Random(3)
    slides = [2 * random.randint(50, 5_000) for _ in range(24)]
    edges = Edges.of_classes((s, shift) for s in slides for shift in (0, random.randrange(s)))
    monkeypatch.setattr(interval, "STEPS", 0)
    interval.forget()
    low, high = interval.density_between(edges)
    interval.forget()
    assert low < density(edges) < high
    assert high - low < Fraction(1, 1000) * low
