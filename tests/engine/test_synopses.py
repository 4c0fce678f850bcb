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

from weft.engine.combining import absorb, ranges_of
from weft.engine.synopses import Synopses

GROUPS = st.lists(
    st.lists(st.lists(st.integers(-4, 4), max_size=6), min_size=1, max_size=7), min_size=1, max_size=3
)
"""For each group its partials, each the values that a slice brought."""


def synopses(kind: str, lists: list[Any], type_: pa.DataType) -> Synopses:
    found = ranges_of(kind, absorb(kind, (pa.array(lists, type_),)))
    assert isinstance(found, Synopses)
    return found


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


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(groups=GROUPS, length=st.integers(1, 5))
def test_windows_that_slide_read_what_a_look_at_all_their_values_reads(groups: list[Any], length: int) -> None:
    windows, offsets, values = sliding(groups, length)
    partials = [partial for group in groups for partial in group]
    held = synopses("frequencies", partials, pa.list_(pa.int64()))

    def read(lower: str, type_: pa.DataType, *numbers: float) -> list[Any]:
        return held.answer(lower, numbers, type_, windows, offsets).to_pylist()

    assert read("different", pa.int64()) == [len(set(v)) for v in values]
    assert read("members", pa.list_(pa.int64())) == [sorted(set(v)) for v in values]
    assert read("mode", pa.int64()) == [min(v, key=lambda x: (-v.count(x), x)) if v else None for v in values]
    least = [None if not v else sorted(v)[max(0, -(-len(v) * 3 // 10) - 1)] for v in values]
    assert read("percentile_approx", pa.int64(), 0.3) == least
    between = [None if not v else [float(np.percentile(v, p)) for p in (0, 50, 90)] for v in values]
    for found, expected in zip(read("percentile", pa.list_(pa.float64()), 0.0, 0.5, 0.9), between, strict=True):
        assert found == (None if expected is None else pytest.approx(expected))
    pair = pa.list_(pa.struct([("item", pa.int64()), ("count", pa.int64())]))
    common = [sorted(Counter(v).items(), key=lambda x: (-x[1], x[0]))[:2] for v in values]
    assert [[tuple(p.values()) for p in each] for each in read("top_k", pair, 2.0)] == common


@settings(derandomize=True, deadline=None, database=None, max_examples=30)
@given(groups=GROUPS)
def test_partials_combined_hold_the_values_of_all(groups: list[Any]) -> None:
    partials = [partial for group in groups for partial in group]
    ends = np.cumsum([len(group) for group in groups])
    held = synopses("frequencies", partials, pa.list_(pa.int64()))
    values, counts = held.combine(ends - [len(group) for group in groups], ends)
    expected = [sorted(Counter(v for partial in group for v in partial).items()) for group in groups]
    assert [list(zip(*each, strict=True)) for each in zip(values.to_pylist(), counts.to_pylist())] == expected


def test_nan_is_the_greatest_value_and_equals_itself_and_minus_zero_equals_zero() -> None:
    held = synopses("frequencies", [[float("nan"), 1.0, -0.0, float("nan"), 0.0]], pa.list_(pa.float64()))
    assert held.columns[1].to_pylist() == [[2, 1, 2]]
    assert str(held.columns[0].to_pylist()[0][-1]) == "nan"


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
    assert weights.to_pylist()[1] == [3], "NaN that came beside"
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
    held = ranges_of("theta", absorb("theta", (pa.array(written),)))
    assert isinstance(held, Synopses)
    windows = np.zeros(2, np.int32), np.array([0, 0]), np.array([1, 3])
    one, union = held.answer("different", (), pa.int64(), windows, np.array([0, 3])).to_pylist()
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
    found = dict(zip(values.to_pylist()[0], counts.to_pylist()[0], strict=True))
    assert found == {None: 5, **{(f"item {i}" if texts else i): i for i in (1, 2, 3)}}
    assert values.to_pylist()[1] == []
