"""Operations of the worked examples 3 to 6 of the dissertation, and those of its table 4 for windows up to 4096."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.kernels import OPERATORS, TECHNIQUES, ImpossiblePair, technique
from weft_bench.benchmarks.techniques.operation_counts import count_operations, table_4

MAX, SUM = OPERATORS["max"], OPERATORS["int_sum"]
LOWEST, ZEROS = np.full(5, -(10**9)), np.zeros(5, np.int64)
EXAMPLE_3 = np.array([2, 4, 0, 3, 7, 6, 1, 8, 9, 5])
EXAMPLE_5 = np.array([6, 5, 0, 1, 3, 4, 2, 7])


@pytest.mark.parametrize(("name", "operations"), [("panes", 40), ("flat_fit", 21)])
def test_example_3_one_query(name: str, operations: int) -> None:
    count = count_operations(name, MAX, LOWEST, EXAMPLE_3)
    assert count.answers == [[2, 4, 4, 4, 7, 7, 7, 8, 9, 9]]
    assert count.total == operations


def test_example_3_flat_fit_slide_by_slide() -> None:
    # wReset at the first slide and every wSize + 1 = 6 slides; a single operation before and after it.
    assert count_operations("flat_fit", MAX, LOWEST, EXAMPLE_3).slides == [4, 1, 2, 2, 2, 1, 4, 1, 2, 2]


@pytest.mark.parametrize(("name", "longer", "shorter"), [("panes", 40, 10), ("flat_fit", 21, 6)])
def test_example_4_a_second_query_beside_it(name: str, longer: int, shorter: int) -> None:
    count = count_operations(name, MAX, LOWEST, EXAMPLE_3, ranges=[5, 2])
    assert count.answers == [[2, 4, 4, 4, 7, 7, 7, 8, 9, 9], [2, 4, 4, 3, 7, 7, 6, 8, 9, 9]]
    assert [sum(operations) for operations in count.operations] == [longer, shorter]


@pytest.mark.parametrize(("name", "operations"), [("panes", 48), ("slick_deque_inv", 32)])
def test_example_5_two_sums(name: str, operations: int) -> None:
    count = count_operations(name, SUM, ZEROS, EXAMPLE_5, ranges=[5, 3])
    assert count.answers == [[6, 11, 11, 12, 15, 13, 10, 17], [6, 11, 11, 6, 4, 8, 9, 13]]
    assert count.total == operations


@pytest.mark.parametrize(
    ("name", "before", "operations"),
    # The deque is empty at first; the others hold a window of initial values.
    [("panes", LOWEST, 48), ("slick_deque_non_inv", LOWEST[:0], 11)],
)
def test_example_6_two_maxima(name: str, before: NDArray[np.int64], operations: int) -> None:
    count = count_operations(name, MAX, before, EXAMPLE_5, ranges=[5, 3])
    assert count.answers == [[6, 6, 6, 6, 6, 5, 4, 7], [6, 6, 6, 5, 3, 4, 4, 7]]
    assert count.total == operations


@pytest.mark.parametrize("name", TECHNIQUES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13, 16, 31, 64, 100, 255, 1000, 1024, 4096])
def test_operations_stay_within_table_4(name: str, n: int) -> None:
    operator = MAX if TECHNIQUES[name].accepts(MAX) else SUM
    random = np.random.default_rng(n)
    # Panes does the same at every slide; the others are seen for two of their periods.
    slides = 4 if name == "panes" else 2 * (n + 1) if name == "flat_fit" else 2 * n
    # The deque begins empty: what it held would be dropped at the cost of slides that are not seen.
    before = random.integers(0, 1000, 0 if name == "slick_deque_non_inv" else n)
    partials = random.integers(0, 1000, slides)
    count = count_operations(name, operator, before, partials, [n] if TECHNIQUES[name].many else None)
    bound = table_4(name, n)
    assert count.total <= bound.amortised * slides
    assert max(count.slides) <= bound.worst


@pytest.mark.parametrize("n", [2, 7, 64, 500])
def test_the_deque_is_at_its_worst_when_the_greatest_comes_after_a_fall(n: int) -> None:
    falling = np.arange(n, 0, -1)
    count = count_operations("slick_deque_non_inv", MAX, falling[:0], np.append(falling[:-1], n + 1), [n])
    assert max(count.slides) == n - 1
    assert count.total < 2 * n


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("panes", lambda n: n * n / 2),
        ("flat_fat", lambda n: n * np.log2(n)),
        ("b_int", lambda n: n * np.log2(n)),
        ("flat_fit", lambda n: 3 * n),
        ("slick_deque_inv", lambda n: 2 * n),
        ("slick_deque_non_inv", lambda n: n),
    ],
)
@pytest.mark.parametrize("n", [16, 64])
def test_all_ranges_at_once_stay_within_table_4(name: str, bound: object, n: int) -> None:
    operator = MAX if TECHNIQUES[name].accepts(MAX) else SUM
    random = np.random.default_rng(1)
    count = count_operations(
        name, operator, random.integers(0, 1000, n), random.integers(0, 1000, 3 * n), ranges=range(n, 0, -1)
    )
    assert callable(bound)
    assert sum(count.slides[n:]) / (2 * n) <= bound(n)


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("slick_deque_inv", "max"),
        ("slick_deque_inv", "argmax_first"),
        ("slick_deque_inv", "float_sum"),
        ("panes_inv", "float_sum"),
        ("panes_inv", "moments_2"),
        ("slick_deque_non_inv", "moments_4"),
        ("slick_deque_non_inv", "int_sum"),
        ("slick_deque_non_inv", "bit_or"),
    ],
)
def test_an_impossible_pair_cannot_be_made(name: str, operator: str) -> None:
    with pytest.raises(ImpossiblePair, match=f"{name} needs an operator that is .*{operator} is not .*two_stacks"):
        technique(name, operator)
    with pytest.raises(ImpossiblePair):
        TECHNIQUES[name].of(OPERATORS[operator])


def test_every_operator_has_a_technique_and_every_technique_an_operator() -> None:
    for operator in OPERATORS.values():
        assert sum(recipe.accepts(operator) for recipe in TECHNIQUES.values()) >= 6
    for recipe in TECHNIQUES.values():
        assert any(recipe.accepts(operator) for operator in OPERATORS.values())
