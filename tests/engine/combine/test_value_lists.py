"""Partials of no fixed size: what is read from windows over them, and what sketches are read for."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.aggregates import KINDS
from weft.aggregates.lowering import (
    AnswerLowering,
    DistinctCount,
    DistinctValues,
    GreatestSums,
    Histogram,
    Mode,
    MostFrequent,
    Quantiles,
)
from weft.engine.combine.base import SumOverflow
from weft.engine.combine.registry import combiner_of, partial_from_spark
from weft.engine.combine.value_lists import ValueLists
from weft.engine.final.lower_values import lower_values

GROUPS = st.lists(st.lists(st.lists(st.integers(-4, 4), max_size=6), min_size=1, max_size=7), min_size=1, max_size=3)
"""For each group its partials, each the values that a slice brought."""


def value_lists(kind: str, lists: list[Any], type_: pa.DataType) -> ValueLists:
    combiner = combiner_of(KINDS[kind], absorb(kind, (pa.array(lists, type_),)))
    assert isinstance(combiner, ValueLists)
    return combiner


def absorb(kind: str, columns: tuple[pa.Array, ...]) -> tuple[pa.Array, ...]:
    return partial_from_spark(KINDS[kind], columns)


def answer(
    combiner: ValueLists,
    how: AnswerLowering,
    numbers: tuple[float, ...],
    type_: pa.DataType,
    windows: Any,
    offsets: Any,
) -> pa.Array:
    return lower_values(how, combiner, combiner.windows(*windows, offsets), numbers, type_)


def sliding(groups: list[list[list[int]]], length: int) -> tuple[Any, np.ndarray, list[list[int]]]:
    """Windows of `length` partials that move by one, their groups and bounds; and the values that each holds."""
    numbers, lo, hi, values = [], [], [], []
    offsets = [0]
    for g, partials in enumerate(groups):
        for i in range(len(partials)):
            end = min(i + length, len(partials))
            numbers.append(g)
            lo.append(offsets[-1] + i)
            hi.append(offsets[-1] + end)
            values.append([v for partial in partials[i:end] for v in partial])
        offsets.append(offsets[-1] + len(partials))
    windows = np.array(numbers, np.int32), np.array(lo, np.int64), np.array(hi, np.int64)
    return windows, np.array(offsets, np.int64), values


@pytest.mark.slow
@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(groups=GROUPS, length=st.integers(1, 5))
def test_windows_that_slide_read_what_a_look_at_all_their_values_reads(groups: list[Any], length: int) -> None:
    windows, offsets, values = sliding(groups, length)
    partials = [partial for group in groups for partial in group]
    combiner = value_lists("frequencies", partials, pa.list_(pa.int64()))

    def read(lower: AnswerLowering, type_: pa.DataType, *numbers: float) -> list[Any]:
        return answer(combiner, lower, numbers, type_, windows, offsets).to_pylist()

    assert read(DistinctCount(), pa.int64()) == [len(set(v)) for v in values]
    assert read(DistinctValues(), pa.list_(pa.int64())) == [sorted(set(v)) for v in values]
    assert read(Mode(), pa.int64()) == [min(v, key=lambda x: (-v.count(x), x)) if v else None for v in values]
    least = [None if not v else sorted(v)[max(0, -(-len(v) * 3 // 10) - 1)] for v in values]
    assert read(Quantiles(interpolated=False), pa.int64(), 0.3) == least
    between = [None if not v else [float(np.percentile(v, p)) for p in (0, 50, 90)] for v in values]
    for actual, expected in zip(
        read(Quantiles(interpolated=True), pa.list_(pa.float64()), 0.0, 0.5, 0.9), between, strict=True
    ):
        assert actual == (None if expected is None else pytest.approx(expected))
    pair = pa.list_(pa.struct([("item", pa.int64()), ("count", pa.int64())]))
    common = [sorted(Counter(v).items(), key=lambda x: (-x[1], x[0]))[:2] for v in values]
    assert [[tuple(p.values()) for p in each] for each in read(MostFrequent(), pair, 2.0)] == common


def joined(values: list[float], most: int) -> list[tuple[float, float]]:
    """The two nearest bins made one, the lower ones of such, as long as there are too many: all are looked at."""
    bins = [(float(v), float(n)) for v, n in sorted(Counter(values).items())]
    while len(bins) > most:
        i = min(range(len(bins) - 1), key=lambda i: bins[i + 1][0] - bins[i][0])
        (x, m), (y, n) = bins[i : i + 2]
        bins[i : i + 2] = [(x + (y - x) * (n / (m + n)), m + n)]
    return bins


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(groups=GROUPS, length=st.integers(1, 5), most=st.integers(1, 6))
def test_a_histogram_joins_the_nearest_values_of_each_window(groups: list[Any], length: int, most: int) -> None:
    windows, offsets, values = sliding(groups, length)
    combiner = value_lists("frequencies", [partial for group in groups for partial in group], pa.list_(pa.int64()))
    pair = pa.list_(pa.struct([("x", pa.float64()), ("y", pa.float64())]))
    actual = answer(combiner, Histogram(), (float(most),), pair, windows, offsets).to_pylist()
    for bins, window_values in zip(actual, values, strict=True):
        expected = joined(window_values, most)
        assert ([] if bins is None else [tuple(b.values()) for b in bins]) == [pytest.approx(b) for b in expected]
        assert (bins is None) == (not window_values)


@pytest.mark.parametrize("most", [2, 7, 40])
def test_the_bins_of_many_values_are_those_values_side_by_side(most: int) -> None:
    random = Random(most)
    draws = (lambda: random.gauss(0, 1), lambda: random.gauss(50, 5), lambda: random.expovariate(1) * 1e6)
    values = [random.choice(draws)() for _ in range(2000)]
    combiner = value_lists("frequencies", [values], pa.list_(pa.float64()))
    windows = np.zeros(1, np.int32), np.array([0]), np.array([1])
    pair = pa.list_(pa.struct([("x", pa.float64()), ("y", pa.float64())]))
    (bins,) = answer(combiner, Histogram(), (float(most),), pair, windows, np.array([0, 1])).to_pylist()
    middles, heights = [b["x"] for b in bins], [int(b["y"]) for b in bins]
    assert len(bins) == most
    assert middles == sorted(middles)
    assert sum(heights) == len(values)
    ends = np.cumsum(heights)
    for middle, begin, end in zip(middles, [0, *ends], ends, strict=False):
        assert middle == pytest.approx(np.mean(sorted(values)[begin:end]), rel=1e-9)


def test_infinities_and_nan_are_bins_apart_as_long_as_there_is_room() -> None:
    combiner = value_lists(
        "frequencies", [[float("inf"), 1.0, 1.5, float("nan"), float("-inf"), 9.0]], pa.list_(pa.float64())
    )
    windows = np.zeros(1, np.int32), np.array([0]), np.array([1])
    pair = pa.list_(pa.struct([("x", pa.float64()), ("y", pa.float64())]))
    (bins,) = answer(combiner, Histogram(), (5.0,), pair, windows, np.array([0, 1])).to_pylist()
    assert repr([b["x"] for b in bins]) == "[-inf, 1.25, 9.0, inf, nan]"
    assert [b["y"] for b in bins] == [1, 2, 1, 1, 1]


PAIRS = st.lists(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), max_size=5), min_size=1, max_size=6),
    min_size=1, max_size=3,
)  # fmt: skip
"""For each group its partials, each the items that a slice brought and what they add."""


@pytest.mark.parametrize("measure", [pa.int64(), pa.float64()])
@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(groups=PAIRS, length=st.integers(1, 5))
def test_the_greatest_sums_of_windows_that_slide_are_those_of_all_their_rows(
    measure: pa.DataType, groups: list[Any], length: int
) -> None:
    windows, offsets, values = sliding(groups, length)
    rows = pa.list_(pa.struct([("item", pa.int32()), ("added", measure)]))
    partials = [[{"item": i, "added": n} for i, n in partial] for group in groups for partial in group]
    combiner = value_lists("sums", partials, rows)
    type_ = pa.list_(pa.struct([("item", pa.int32()), ("sum", measure)]))
    actual = answer(combiner, GreatestSums(), (3.0,), type_, windows, offsets).to_pylist()
    for items, pairs in zip(actual, values, strict=True):
        sums = {item: sum(n for i, n in pairs if i == item) for item, _ in pairs}
        expected = sorted(sums.items(), key=lambda each: (-each[1], each[0]))[:3]
        assert [tuple(each.values()) for each in items] == expected


def test_what_has_left_a_window_leaves_no_trace_in_a_sum_of_floats() -> None:
    rows = pa.list_(pa.struct([("item", pa.string()), ("added", pa.float64())]))
    slices = [[("a", 1e300), ("b", float("nan"))], [("a", 1e-3), ("b", 1.0)], [("a", 1e-3), ("c", -5.0)]]
    combiner = value_lists("sums", [[{"item": i, "added": n} for i, n in each] for each in slices], rows)
    windows = np.zeros(2, np.int32), np.array([0, 1]), np.array([2, 3])
    type_ = pa.list_(pa.struct([("item", pa.string()), ("sum", pa.float64())]))
    first, then = answer(combiner, GreatestSums(), (3.0,), type_, windows, np.array([0, 3])).to_pylist()
    assert [each["item"] for each in first] == ["b", "a"], "NaN is the greatest number"
    assert [tuple(each.values()) for each in then] == [("b", 1.0), ("a", 2e-3), ("c", -5.0)]


def test_sums_that_may_not_fit_are_refused_and_not_added_up_wrongly() -> None:
    rows = pa.list_(pa.struct([("item", pa.int64()), ("added", pa.int64())]))
    with pytest.raises(SumOverflow, match="CAST"):
        value_lists("sums", [[{"item": 1, "added": 2**62}, {"item": 1, "added": 2**62}]], rows)


@settings(derandomize=True, deadline=None, database=None, max_examples=30)
@given(groups=GROUPS)
def test_partials_combined_hold_the_values_of_all(groups: list[Any]) -> None:
    partials = [partial for group in groups for partial in group]
    ends = np.cumsum([len(group) for group in groups])
    combiner = value_lists("frequencies", partials, pa.list_(pa.int64()))
    values, counts = combiner.combine(ends - [len(group) for group in groups], ends)
    expected = [sorted(Counter(v for partial in group for v in partial).items()) for group in groups]
    assert [list(zip(*each, strict=True)) for each in zip(values.to_pylist(), counts.to_pylist())] == expected


def test_nan_is_the_greatest_value_and_equals_itself_and_minus_zero_equals_zero() -> None:
    combiner = value_lists("frequencies", [[float("nan"), 1.0, -0.0, float("nan"), 0.0]], pa.list_(pa.float64()))
    assert combiner.columns[1].to_pylist() == [[2, 1, 2]]
    assert str(combiner.columns[0].to_pylist()[0][-1]) == "nan"


def sketch_of(values: list[float], k: int) -> Any:
    sketch = datasketches.kll_doubles_sketch(k)
    sketch.update(np.array(values))
    return sketch


@pytest.mark.parametrize("size", [0, 1, 2, 150, 3000])
def test_a_kll_sketch_is_read_for_all_its_samples_and_weights(size: int) -> None:
    random = Random(size)
    sketch = sketch_of([random.random() for _ in range(size)], 128)
    values, weights = absorb("kll_double", (pa.array([sketch.serialize(), None]), pa.array([0, 3])))
    assert sum(weights.to_pylist()[0]) == size == sketch.n
    assert weights.to_pylist()[1] == [3], "NaNs are counted beside the sketch"
    for at in (0.1, 0.5, 0.9) if size else ():
        below = sum(w for v, w in zip(values.to_pylist()[0], weights.to_pylist()[0], strict=True) if v <= at)
        assert below / size == pytest.approx(sketch.get_rank(at, True))


@pytest.mark.parametrize("size", [0, 1, 2, 300, 20_000])
def test_a_theta_sketch_and_unions_of_them_count_what_the_library_counts(size: int) -> None:
    built = []
    for part in range(3):
        sketch = datasketches.update_theta_sketch(9)
        for i in range(part * size // 2, part * size // 2 + size):
            sketch.update(i)
        built.append(sketch.compact())
    written = [sketch.serialize() for sketch in built]
    hashes, _, limits = absorb("theta", (pa.array(written),))
    assert [sorted(each) for each in hashes.to_pylist()] == [sorted(each) for each in built]
    assert limits.to_pylist() == [each.theta64 for each in built]
    combiner = combiner_of(KINDS["theta"], absorb("theta", (pa.array(written),)))
    assert isinstance(combiner, ValueLists)
    windows = np.zeros(2, np.int32), np.array([0, 0]), np.array([1, 3])
    one, union = answer(combiner, DistinctCount(), (), pa.int64(), windows, np.array([0, 3])).to_pylist()
    assert one == round(built[0].get_estimate())
    assert union == pytest.approx(2 * size, rel=3 / 511**0.5)


@pytest.mark.parametrize("texts", [False, True])
def test_frequent_items_are_read_with_their_counts_and_how_many_are_null(texts: bool) -> None:
    serde = datasketches.PyStringsSerDe() if texts else datasketches.PyLongsSerDe()
    sketch = datasketches.frequent_items_sketch(4)
    for item in (1, 2, 2, 3, 3, 3):
        sketch.update(f"item {item}" if texts else item)
    written = sketch.serialize(serde) + (5).to_bytes(8, "big")  # as Spark writes it
    values, counts = absorb("heavy_string" if texts else "heavy_bigint", (pa.array([written, None]),))
    actual = dict(zip(values.to_pylist()[0], counts.to_pylist()[0], strict=True))
    assert actual == {None: 5, **{(f"item {i}" if texts else i): i for i in (1, 2, 3)}}
    assert values.to_pylist()[1] == []
