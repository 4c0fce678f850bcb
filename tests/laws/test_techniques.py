"""Every technique x every operator that it accepts equals recomputation: over columns, by steps, moved, many at once.

Techniques are plain functions that numba also compiles. All pairs are examined as plain Python, which runs the same
lines without compiling a hundred kernels; a set of pairs that covers every kind of element is examined compiled too.
"""

from __future__ import annotations

import math
from collections import deque
from functools import cache, reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.kernels import NO_VALUE, OPERATORS, TECHNIQUES, State, Steps, Technique, technique
from weft.kernels.techniques.technique import BEGIN, END, SLOTS

Longs = NDArray[np.int64]
Windows = tuple[Longs, Longs]

PAIRS = [
    (name, operator)
    for name, recipe in TECHNIQUES.items()
    for operator in OPERATORS
    if recipe.accepts(OPERATORS[operator])
]
COMPILED = [
    pytest.param(*pair, marks=pytest.mark.slow) if pair[1] in ("int_sum", "moments_2") else pair
    for pair in PAIRS
    if pair[1] in ("int_sum", "float_sum", "argmax_last", "moments_2")
]
MANY = [pair for pair in PAIRS if TECHNIQUES[pair[0]].many]
WIDTHS = {"moments_2": 3, "moments_3": 4, "moments_4": 5, "comoments": 6}

examine = settings(max_examples=12, deadline=None, derandomize=True)
seeds = st.integers(0, 1 << 30)
group_sizes = st.lists(st.integers(1, 40), min_size=1, max_size=5)
every_pair = pytest.mark.parametrize(("name", "operator"), PAIRS)


@cache
def plain(name: str, operator: str) -> Technique:
    return TECHNIQUES[name].of(OPERATORS[operator])


def partials(operator: str, random: np.random.Generator, n: int) -> NDArray[Any]:
    """Few different keys, so that there are ties; a float column has whatever a float can be."""
    if operator in WIDTHS:
        rows = random.integers(-8, 9, (n, WIDTHS[operator])).astype(np.float64)
        rows[:, 0] = random.integers(0, 4, n)
        return rows
    if operator == "float_sum":
        values = random.standard_normal(n) * 10.0 ** random.integers(-3, 4, n)
        odd = random.random(n) < 0.1
        values[odd] = random.choice([math.nan, math.inf, -math.inf, 1e16, -1e16, 1e300, 0.0], odd.sum())
        return values
    if operator.startswith("argmax"):
        return np.where(random.random(n) < 0.3, NO_VALUE, random.integers(-2, 3, n))
    if operator in ("max", "min"):
        return random.integers(-3, 4, n)
    return random.integers(-(2**63), 2**63 - 1, n)


def recomputed(operator: str, values: NDArray[Any], lo: int, hi: int) -> Any:
    inside = values[lo:hi].tolist()
    if operator == "int_sum":
        return (sum(inside) + 2**63) % 2**64 - 2**63
    if operator in ("max", "min"):
        return (max if operator == "max" else min)(inside)
    if operator.startswith("bit_"):
        return {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}[operator].reduce(inside)
    if operator.startswith("argmax"):
        last = operator == "argmax_last"
        candidates = [(values[p], p if last else -p, p) for p in range(lo, hi) if values[p] != NO_VALUE]
        return max(candidates)[2] if candidates else -1
    if operator == "float_sum":
        return inside
    combine = OPERATORS[operator].combine
    return reduce(lambda older, newer: combine(values, older, newer), map(tuple, inside))


def agree(operator: str, answer: Any, expected: Any) -> None:
    if operator in WIDTHS:
        assert answer[0] == expected[0]
        if expected[0]:
            np.testing.assert_allclose(answer, expected, rtol=1e-9, atol=1e-6)
    elif operator != "float_sum":
        assert answer == expected
    elif any(math.isnan(v) for v in expected) or {math.inf, -math.inf} <= set(expected):
        assert math.isnan(answer)
    elif {math.inf, -math.inf} & set(expected):
        assert answer == (math.inf if math.inf in expected else -math.inf)
    else:
        # As far as any order of adding may be from the exact sum, by what stands in this window only.
        size = math.fsum(map(abs, expected))
        assert answer == pytest.approx(math.fsum(expected), rel=0, abs=len(expected) * 2.0**-52 * size)


def windows(random: np.random.Generator, sizes: list[int], *, regular: bool) -> Windows:
    """For each group in turn windows whose ends never fall: with gaps, with repeats, of any number of slices."""
    los, his, begin = [], [], 0
    for size in sizes:
        if regular:
            length, slide = int(random.integers(1, size + 1)), int(random.integers(1, size + 1))
            lo = np.arange(0, size, min(length, slide))
            hi = np.minimum(lo + length, size)
        else:
            lo = np.sort(random.integers(0, size, random.integers(0, 2 * size)))
            hi = np.maximum.accumulate(np.minimum(lo + random.integers(1, size + 1, len(lo)), size))
        los.append(begin + lo)
        his.append(begin + hi)
        begin += size
    return np.concatenate(los).astype(np.int64), np.concatenate(his).astype(np.int64)


def longest(lo: Longs, hi: Longs) -> int:
    return int((hi - lo).max(initial=1))


def check_columns(made: Technique, operator: str, sizes: list[int], seed: int, *, regular: bool) -> None:
    random = np.random.default_rng(seed)
    values = partials(operator, random, sum(sizes))
    lo, hi = windows(random, sizes, regular=regular)
    out = np.empty((len(lo), *values.shape[1:]), values.dtype)
    tables = made.build(values, longest(lo, hi))
    for _ in range(2):  # tables are scratch: the second query over them must not see the first
        with np.errstate(all="ignore"):
            made.answer(tables, lo, hi, out)
        for first, until, answer in zip(lo, hi, out):
            agree(operator, answer, recomputed(operator, values, first, until))


@every_pair
@examine
@given(sizes=group_sizes, seed=seeds, regular=st.booleans())
def test_over_a_column_of_many_groups(name: str, operator: str, sizes: list[int], seed: int, regular: bool) -> None:
    check_columns(plain(name, operator), operator, sizes, seed, regular=regular)


@pytest.mark.parametrize(("name", "operator"), COMPILED)
@examine
@given(sizes=group_sizes, seed=seeds, regular=st.booleans())
def test_over_a_column_compiled(name: str, operator: str, sizes: list[int], seed: int, regular: bool) -> None:
    check_columns(technique(name, operator), operator, sizes, seed, regular=regular)


def place(state: State, p: int, operator: str) -> int:
    """Of a position in the column, where it stands in the ring of a state."""
    return int(p & state[1][SLOTS]) if operator.startswith("argmax") and p >= 0 else p


def walk(steps: Steps, operator: str, window: int, seed: int, *, moved: bool) -> None:
    """Insert and evict at random, never above the window, and ask at every state; now and then move to a copy."""
    random = np.random.default_rng(seed)
    values = partials(operator, random, 90)
    state = steps.start(values, window)
    inside: deque[int] = deque()
    out = np.empty((1, *values.shape[1:]), values.dtype)
    for i in range(len(values)):
        for _ in range(min(len(inside), int(random.integers(0, 3)))):
            steps.evict(state)
            inside.popleft()
        if len(inside) == window:
            steps.evict(state)
            inside.popleft()
        steps.insert(state, values, i)
        inside.append(i)
        if moved and random.random() < 0.2:
            saved = tuple(array.copy() for array in state)
            for array in state:
                array[...] = 0
            state = saved
        if random.random() < 0.7:
            with np.errstate(all="ignore"):
                steps.ask(state, out, 0)
            expected = recomputed(operator, values, inside[0], inside[-1] + 1)
            if operator.startswith("argmax"):
                expected = place(state, expected, operator)
            agree(operator, out[0], expected)


@every_pair
@examine
@given(window=st.integers(1, 40), seed=seeds)
def test_step_by_step_saved_and_moved(name: str, operator: str, window: int, seed: int) -> None:
    steps = plain(name, operator).steps
    assert steps is not None
    with np.errstate(all="ignore"):
        walk(steps, operator, window, seed, moved=True)


@pytest.mark.parametrize("name", TECHNIQUES)
def test_step_by_step_compiled(name: str) -> None:
    operator = "max" if TECHNIQUES[name].accepts(OPERATORS["max"]) else "int_sum"
    steps = technique(name, operator).steps
    assert steps is not None
    for window in (1, 2, 7, 16, 33):
        walk(steps, operator, window, seed=window, moved=True)


@every_pair
@examine
@given(window=st.integers(1, 40), seed=seeds)
def test_a_slide_is_evict_insert_ask(name: str, operator: str, window: int, seed: int) -> None:
    steps = plain(name, operator).steps
    assert steps is not None
    values = partials(operator, np.random.default_rng(seed), 60)
    state = steps.start(values, window)
    out = np.empty_like(values)
    with np.errstate(all="ignore"):
        for i in range(len(values)):
            steps.slide(state, values, i, window, out, i)
            expected = recomputed(operator, values, max(0, i + 1 - window), i + 1)
            agree(operator, out[i], place(state, expected, operator) if operator.startswith("argmax") else expected)
    assert state[1][END] - state[1][BEGIN] == min(window, len(values))


def check_many(made: Technique, operator: str, sizes: list[int], count: int, seed: int) -> None:
    """Ranges over common ends, each of them now longer, now shorter, as slices of unequal length make them."""
    random = np.random.default_rng(seed)
    values = partials(operator, random, sum(sizes))
    los, his, begin = [], [], 0
    for size in sizes:
        hi = np.sort(random.integers(1, size + 1, size))
        lo = np.stack([np.maximum.accumulate(hi - 1 - random.integers(0, hi)) for _ in range(count)], axis=1)
        lo.sort(axis=1)
        los.append(begin + lo)
        his.append(begin + hi)
        begin += size
    lo, hi = np.concatenate(los), np.concatenate(his)
    out = np.empty((*lo.shape, *values.shape[1:]), values.dtype)
    assert made.answer_many is not None
    with np.errstate(all="ignore"):
        made.answer_many(made.build(values, longest(lo[:, 0], hi), count), lo, hi, out)
    for i, until in enumerate(hi):
        for j in range(count):
            agree(operator, out[i, j], recomputed(operator, values, lo[i, j], until))


@pytest.mark.parametrize(("name", "operator"), MANY)
@examine
@given(sizes=group_sizes, count=st.integers(1, 5), seed=seeds)
def test_many_ranges_at_once(name: str, operator: str, sizes: list[int], count: int, seed: int) -> None:
    check_many(plain(name, operator), operator, sizes, count, seed)


@pytest.mark.parametrize("name", [name for name, recipe in TECHNIQUES.items() if recipe.many])
def test_many_ranges_at_once_compiled(name: str) -> None:
    operator = "max" if TECHNIQUES[name].accepts(OPERATORS["max"]) else "int_sum"
    for seed in range(10):
        check_many(technique(name, operator), operator, [30, 1, 17], 4, seed)


@pytest.mark.parametrize("name", TECHNIQUES)
def test_those_that_cannot_have_no_form_for_many(name: str) -> None:
    operator = "max" if TECHNIQUES[name].accepts(OPERATORS["max"]) else "int_sum"
    made = plain(name, operator)
    assert made.steps is not None
    assert (made.answer_many is not None) == (made.steps.ask_many is not None) == TECHNIQUES[name].many


def test_more_ranges_than_the_tables_were_made_for_are_refused() -> None:
    values = np.arange(10)
    made = plain("slick_deque_inv", "int_sum")
    assert made.answer_many is not None
    with pytest.raises(ValueError, match="more ranges"):
        made.answer_many(made.build(values, 5, 1), np.array([[0, 1]]), np.array([5]), np.empty((1, 2), np.int64))


@pytest.mark.parametrize(
    "name", [name for name, recipe in TECHNIQUES.items() if recipe.accepts(OPERATORS["float_sum"])]
)
@pytest.mark.parametrize("intruder", [1e16, 1e300, math.nan, math.inf, -math.inf])
def test_a_float_sum_is_exact_again_when_the_intruder_has_left(name: str, intruder: float) -> None:
    values = np.ones(200)
    values[37] = intruder
    lo = np.arange(38, 180)
    out = np.empty(len(lo))
    made = plain(name, "float_sum")
    made.answer(made.build(values, 20), lo, lo + 20, out)
    assert out.tolist() == [20.0] * len(lo)
