"""Every technique sits the same exam: plain loops, then blocks == panes for every operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.kernels import BLOCKS, NO_VALUE, PANES, Technique, prefix_answers, prefix_sums

TECHNIQUES = {"panes": PANES, "blocks": BLOCKS}
WIDTHS = {"moments_2": 3, "moments_3": 4, "moments_4": 5, "comoments": 6}
BIG = 2**63 - 1

examine = settings(max_examples=50, deadline=None, derandomize=True)
every_technique = pytest.mark.parametrize("technique", TECHNIQUES)
ranges = st.tuples(st.integers(0, 1 << 20), st.integers(0, 1 << 20))
seeds = st.integers(0, 1 << 30)
# Lengths around the borders of blocks and of the spans above them.
lengths = st.sampled_from([1, 2, 15, 16, 17, 31, 32, 33, 48, 200, 777])


def some_ranges(random: np.random.Generator, n: int, longest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    lo = random.integers(0, n, 40)
    hi = lo + np.minimum(random.integers(1, longest + 1, 40), n - lo)
    lo[0], hi[0] = 0, min(longest, n)
    return lo, hi


def ask(technique: Technique, values: NDArray[Any], lo: NDArray[np.int64], hi: NDArray[np.int64]) -> NDArray[Any]:
    out = np.empty((len(lo), *values.shape[1:]), values.dtype)
    technique.answer(technique.build(values, int((hi - lo).max())), lo, hi, out)
    return out


def column(operator: str, random: np.random.Generator, n: int) -> NDArray[Any]:
    if operator in WIDTHS:
        rows = random.integers(-8, 9, (n, WIDTHS[operator])).astype(np.float64)
        rows[:, 0] = random.integers(0, 4, n)
        rows[rows[:, 0] == 0, 1:] = math.nan  # what the identity carries is nobody's business
        return rows
    if operator == "float_sum":
        return random.standard_normal(n) * 10.0 ** random.integers(-3, 4, n)
    if operator.startswith("argmax"):
        return np.where(random.random(n) < 0.4, NO_VALUE, random.integers(-2, 3, n))
    return random.integers(-(2**63), 2**63 - 1, n)


@pytest.mark.parametrize("operator", BLOCKS)
@examine
@given(n=lengths, longest=lengths, seed=seeds)
def test_blocks_answer_as_panes_do(operator: str, n: int, longest: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = column(operator, random, n)
    lo, hi = some_ranges(random, n, min(n, longest))
    blocks, panes = ask(BLOCKS[operator], values, lo, hi), ask(PANES[operator], values, lo, hi)
    if operator in WIDTHS:
        some = panes[:, 0] > 0
        np.testing.assert_array_equal(blocks[:, 0], panes[:, 0])
        np.testing.assert_allclose(blocks[some], panes[some], rtol=1e-9, atol=1e-6)
    elif operator == "float_sum":
        np.testing.assert_allclose(blocks, panes, rtol=1e-12, atol=1e-9)
    else:
        np.testing.assert_array_equal(blocks, panes)


@pytest.mark.parametrize("operator", BLOCKS)
def test_every_range_of_a_long_column_within_a_short_longest(operator: str) -> None:
    # Short ranges also lie across the widest borders of the table, where its top level has to bridge them.
    random = np.random.default_rng(7)
    n, longest = 1 << 10, 70
    values = column(operator, random, n)
    if operator in WIDTHS:
        values[:, 0] = 1 + np.nan_to_num(values[:, 0])
        values = np.nan_to_num(values)
    lo = np.repeat(np.arange(n - longest), longest)
    hi = lo + np.tile(np.arange(1, longest + 1), n - longest)
    blocks, panes = ask(BLOCKS[operator], values, lo, hi), ask(PANES[operator], values, lo, hi)
    np.testing.assert_allclose(blocks, panes, rtol=1e-9, atol=1e-6)


@every_technique
@examine
@given(
    values=st.lists(
        st.sampled_from([1.0, -1.0, 1e16, -1e16, 0.1, math.nan, math.inf, -math.inf])
        | st.floats(-1e6, 1e6, allow_subnormal=False),
        min_size=1,
        max_size=90,
    ),
    seed=seeds,
)
def test_float_sums_are_those_of_the_window_alone(technique: str, values: list[float], seed: int) -> None:
    lo, hi = some_ranges(np.random.default_rng(seed), len(values), len(values))
    answers = ask(TECHNIQUES[technique]["float_sum"], np.array(values), lo, hi)
    for first, last, answer in zip(lo, hi, answers):
        inside = values[first:last]
        if any(math.isnan(v) for v in inside) or {math.inf, -math.inf} <= set(inside):
            assert math.isnan(answer)
        elif math.inf in inside or -math.inf in inside:
            assert answer == (math.inf if math.inf in inside else -math.inf)
        else:
            # As far as any order of adding may be from the exact sum, by what stands in this window only.
            assert answer == pytest.approx(
                math.fsum(inside), rel=0, abs=len(inside) * 2.0**-52 * math.fsum(map(abs, inside))
            )


@every_technique
@pytest.mark.parametrize("intruder", [1e16, math.nan, math.inf, -math.inf])
def test_a_sum_is_exact_again_when_the_intruder_has_left(technique: str, intruder: float) -> None:
    values = np.ones(200)
    values[37] = intruder
    lo = np.arange(38, 180)
    answers = ask(TECHNIQUES[technique]["float_sum"], values, lo, lo + 20)
    assert answers.tolist() == [20.0] * len(lo)


@every_technique
@pytest.mark.parametrize("operator", ["argmax_first", "argmax_last"])
@examine
@given(
    keys=st.lists(
        st.integers(-2, 2) | st.just(NO_VALUE) | st.just(NO_VALUE + 1) | st.just(BIG), min_size=1, max_size=90
    ),
    seed=seeds,
)
def test_argmax_breaks_ties_by_position(technique: str, operator: str, keys: list[int], seed: int) -> None:
    lo, hi = some_ranges(np.random.default_rng(seed), len(keys), len(keys))
    answers = ask(TECHNIQUES[technique][operator], np.array(keys, np.int64), lo, hi)
    sign = 1 if operator == "argmax_last" else -1
    for first, last, answer in zip(lo, hi, answers):
        candidates = [(keys[p], sign * p, p) for p in range(first, last) if keys[p] != NO_VALUE]
        assert answer == (max(candidates)[2] if candidates else -1)


@every_technique
def test_no_winner_among_partials_without_a_value(technique: str) -> None:
    keys = np.full(100, NO_VALUE)
    lo = np.array([0, 3, 0])
    hi = np.array([100, 4, 40])
    for operator in ("argmax_first", "argmax_last"):
        assert ask(TECHNIQUES[technique][operator], keys, lo, hi).tolist() == [-1, -1, -1]


@every_technique
@pytest.mark.parametrize(
    ("operator", "reduce"),
    [("bit_and", np.bitwise_and.reduce), ("bit_or", np.bitwise_or.reduce), ("bit_xor", np.bitwise_xor.reduce)],
)
@examine
@given(values=st.lists(st.integers(-(2**63), BIG), min_size=1, max_size=90), seed=seeds)
def test_bits_are_numpys(technique: str, operator: str, reduce: Any, values: list[int], seed: int) -> None:
    lo, hi = some_ranges(np.random.default_rng(seed), len(values), len(values))
    bits = np.array(values, np.int64)
    answers = ask(TECHNIQUES[technique][operator], bits, lo, hi)
    assert answers.tolist() == [reduce(bits[first:last]) for first, last in zip(lo, hi)]


def moments_of(rows: NDArray[np.float64], order: int) -> list[float]:
    if len(rows) == 0:
        return [0.0] + [math.nan] * order
    mean = rows.mean()
    return [len(rows), mean] + [((rows - mean) ** power).sum() for power in range(2, order + 1)]


def comoments_of(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[float]:
    if len(x) == 0:
        return [0.0] + [math.nan] * 5
    dx, dy = x - x.mean(), y - y.mean()
    return [len(x), x.mean(), y.mean(), (dx * dy).sum(), (dx * dx).sum(), (dy * dy).sum()]


@every_technique
@pytest.mark.parametrize("order", [2, 3, 4])
@examine
@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=70), seed=seeds)
def test_moments_are_those_of_the_raw_rows(technique: str, order: int, sizes: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    partials = [random.normal(1000.0, 3.0, size) for size in sizes]
    lo, hi = some_ranges(random, len(sizes), len(sizes))
    table = np.array([moments_of(rows, order) for rows in partials])
    answers = ask(TECHNIQUES[technique][f"moments_{order}"], table, lo, hi)
    for first, last, answer in zip(lo, hi, answers):
        rows = np.concatenate(partials[first:last])
        assert answer[0] == len(rows)
        if len(rows):
            scale = [1.0, 1.0] + [float((np.abs(rows - rows.mean()) ** power).sum()) for power in range(2, order + 1)]
            np.testing.assert_allclose(
                answer / np.maximum(scale, 1.0), np.array(moments_of(rows, order)) / np.maximum(scale, 1.0), atol=1e-9
            )


@every_technique
@examine
@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=70), seed=seeds)
def test_comoments_are_those_of_the_raw_rows(technique: str, sizes: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    xs = [random.normal(1000.0, 3.0, size) for size in sizes]
    ys = [0.5 * x + random.normal(-7.0, 1.0, len(x)) for x in xs]
    lo, hi = some_ranges(random, len(sizes), len(sizes))
    table = np.array([comoments_of(x, y) for x, y in zip(xs, ys)])
    answers = ask(TECHNIQUES[technique]["comoments"], table, lo, hi)
    for first, last, answer in zip(lo, hi, answers):
        x, y = np.concatenate(xs[first:last]), np.concatenate(ys[first:last])
        assert answer[0] == len(x)
        if len(x):
            np.testing.assert_allclose(answer, comoments_of(x, y), rtol=1e-9, atol=1e-8)


@every_technique
@pytest.mark.parametrize("operator", WIDTHS)
def test_a_window_without_rows_has_no_moments(technique: str, operator: str) -> None:
    rows = np.full((50, WIDTHS[operator]), math.nan)
    rows[:, 0] = 0.0
    assert ask(TECHNIQUES[technique][operator], rows, np.array([0, 7]), np.array([50, 8]))[:, 0].tolist() == [0.0, 0.0]


@every_technique
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_bad_row_spoils_the_moments_of_its_windows_alone(technique: str, bad: float) -> None:
    rows = np.tile([1.0, 5.0, 0.0], (100, 1))
    rows[40] = [1.0, bad, math.nan]
    lo = np.arange(80)
    m2 = ask(TECHNIQUES[technique]["moments_2"], rows, lo, lo + 20)[:, 2]
    assert [bool(np.isnan(v)) for v in m2] == [first <= 40 < first + 20 for first in lo]


@examine
@given(values=st.lists(st.integers(-(2**63), BIG), min_size=1, max_size=60), bounds=ranges)
def test_prefix_sums_are_right_where_the_answer_fits(values: list[int], bounds: tuple[int, int]) -> None:
    first, last = sorted(bound % (len(values) + 1) for bound in bounds)
    assume(abs(sum(values[first:last])) <= BIG)
    out = np.empty(1, np.int64)
    prefix_answers(prefix_sums(np.array(values, np.int64)), np.array([first]), np.array([last]), out)
    assert out[0] == sum(values[first:last])  # though the running total may have wrapped around


def test_a_column_without_partials_has_tables() -> None:
    nothing = np.empty(0, np.int64)
    assert prefix_sums(nothing).tolist() == [0]
    for operator, technique in BLOCKS.items():
        width = (WIDTHS[operator],) if operator in WIDTHS else ()
        values = np.empty((0, *width), np.float64 if width or operator == "float_sum" else np.int64)
        out = values.copy()
        technique.answer(technique.build(values, 0), nothing, nothing, out)


def test_each_kernel_is_compiled_for_one_signature() -> None:
    for family in TECHNIQUES.values():
        for technique in family.values():
            for kernel in (technique.build, technique.answer):
                assert len(getattr(kernel, "signatures", ())) <= 1
