"""From the values of each sliding window to the answer of an aggregate, as Spark returns it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
from weft.engine.combine.base import Longs
from weft.engine.combine.value_lists import Numbers, SlidingWindows, ValueLists, refuse_overflow
from weft.kernels import plain, sliding_summaries, sliding_values

HASHES = 2.0**63
"""The hashes of a Theta sketch are between 0 and this."""

LONGEST = 2.0**63
"""The least float that is too large for a 64-bit integer."""


def lower_values(
    how: AnswerLowering, lists: ValueLists, windows: SlidingWindows, numbers: tuple[float, ...], type_: pa.DataType
) -> pa.Array:
    """The answers of the windows; `numbers` are the numbers of the call."""
    match how:
        case Quantiles(interpolated=interpolated, descending=descending):
            read = _interpolated if interpolated else _quantiles
            return read(lists, windows, numbers, descending, type_)
        case DistinctCount():
            return _distinct_count(lists, windows)
        case DistinctValues():
            return _distinct_values(lists, windows, type_)
        case Mode():
            item_counts, positions, _ = _most_frequent(windows, 1)
            return lists.distinct_values.take(pa.array(positions[:, 0], mask=item_counts == 0))
        case MostFrequent():
            return _frequent_items(lists, windows, int(numbers[0]), type_)
        case GreatestSums():
            return _greatest_sums(lists, windows, int(numbers[0]), type_)
        case Histogram():
            return _histogram(lists, windows, int(numbers[0]), type_)
    raise AssertionError(f"nothing reads {how}")


def _positions_around(
    windows: SlidingWindows, fractions: tuple[float, ...], between: bool, descending: bool
) -> tuple[Longs, Longs, Longs]:
    """The number of rows of each window, and the positions of the values before and after each fraction of them."""
    count = len(windows.hi)
    totals, positions = np.empty(count, np.int64), np.zeros((2, count, len(fractions)), np.int64)
    sliding_values.slide_quantiles(
        *windows, np.array(fractions, np.float64), between, descending, totals, positions[0], positions[1]
    )
    return totals, positions[0], positions[1]


def _interpolated(
    lists: ValueLists, windows: SlidingWindows, fractions: tuple[float, ...], descending: bool, type_: pa.DataType
) -> pa.Array:
    """Linear interpolation between two neighbouring values, as Spark computes it."""
    totals, lower, upper = _positions_around(windows, fractions, True, descending)
    values = lists.distinct_floats
    if not len(values):
        return pa.nulls(len(totals), type_)
    position = np.multiply.outer(np.maximum(totals - 1, 0), np.array(fractions))
    below, above = values[lower], values[upper]
    with np.errstate(invalid="ignore", over="ignore"):
        between = below + (above - below) * (position - np.floor(position))
    # Equal values are not interpolated: for equal infinities the result would be NaN.
    answers = np.where((lower == upper) | (below == above), below, between)
    return _one_or_list(pa.array(answers.ravel()), totals == 0, len(fractions), type_)


def _quantiles(
    lists: ValueLists, windows: SlidingWindows, fractions: tuple[float, ...], descending: bool, type_: pa.DataType
) -> pa.Array:
    totals, lower, _ = _positions_around(windows, fractions, False, descending)
    if not len(lists.values):
        return pa.nulls(len(totals), type_)
    answers = lists.distinct_values.take(pa.array(lower.ravel()))
    return _one_or_list(answers, totals == 0, len(fractions), type_)


def _distinct_count(lists: ValueLists, windows: SlidingWindows) -> pa.Array:
    out, limits = np.empty(len(windows.lo), np.int64), np.empty(0, np.int64)
    if len(lists.columns) == 3:
        limits = plain(lists.limits(windows.lo, windows.hi).to_numpy(), np.int64)
    sliding_values.slide_distinct_counts(*windows, lists.distinct_keys, limits, out)
    return pa.array(out if not len(limits) else np.rint(out / (limits / HASHES)).astype(np.int64))


def _distinct_values(lists: ValueLists, windows: SlidingWindows, type_: pa.DataType) -> pa.Array:
    sizes = _distinct_count(lists, windows).to_numpy()
    starts = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty(starts[-1], np.int64)
    sliding_values.slide_distinct_values(*windows, starts, out)
    return _lists(starts, lists.distinct_values.take(pa.array(out)), type_)


def _most_frequent(windows: SlidingWindows, most: int) -> tuple[Longs, Longs, Longs]:
    count = len(windows.hi)
    item_counts, positions = np.empty(count, np.int64), np.zeros((2, count, most), np.int64)
    sliding_values.slide_most_frequent(*windows, item_counts, positions[0], positions[1])
    return item_counts, positions[0], positions[1]


def _frequent_items(lists: ValueLists, windows: SlidingWindows, most: int, type_: pa.DataType) -> pa.Array:
    item_counts, positions, frequencies = _most_frequent(windows, most)
    chosen = np.arange(positions.shape[1]) < item_counts[:, None]
    items = _typed(lists.distinct_values.take(pa.array(positions[chosen])), type_.value_type[0].type)
    pairs = pa.StructArray.from_arrays([items, pa.array(frequencies[chosen])], fields=list(type_.value_type))
    return _lists(np.concatenate([[0], np.cumsum(item_counts)]), pairs, type_)


def _greatest_sums(lists: ValueLists, windows: SlidingWindows, most: int, type_: pa.DataType) -> pa.Array:
    """Integers and decimals are subtracted when they leave a window; floats are never subtracted."""
    refuse_overflow(lists.weights)
    count, most = len(windows.hi), min(most, max(1, int(np.diff(windows.firsts).max(initial=0))))
    item_counts, positions = np.empty(count, np.int64), np.empty((count, most), np.int64)
    sums = np.empty((count, most), lists.weights.dtype)
    sliding_summaries.slide_sums(*windows, lists.weights.dtype != np.float64, item_counts, positions, sums)
    chosen = np.arange(most) < item_counts[:, None]
    item, total = type_.value_type
    items = _typed(lists.distinct_values.take(pa.array(positions[chosen])), item.type)
    pairs = pa.StructArray.from_arrays([items, _sums(sums[chosen], total.type)], fields=[item, total])
    return _lists(np.concatenate([[0], np.cumsum(item_counts)]), pairs, type_)


def _histogram(lists: ValueLists, windows: SlidingWindows, most: int, type_: pa.DataType) -> pa.Array:
    """Bins of neighbouring values: the mean and the number of the values in each."""
    if not len(lists.values):
        return pa.nulls(len(windows.hi), type_)
    most = min(most, int(np.diff(windows.firsts).max(initial=0)))
    item_counts, bins = np.empty(len(windows.hi), np.int64), np.empty((2, len(windows.hi), most))
    sliding_summaries.slide_bins(*windows, lists.distinct_floats, item_counts, bins[0], bins[1])
    chosen = np.arange(most) < item_counts[:, None]
    middle = _middles(bins[0][chosen], type_.value_type[0].type)
    pairs = pa.StructArray.from_arrays([middle, pa.array(bins[1][chosen])], fields=list(type_.value_type))
    offsets = pa.array(np.concatenate([[0], np.cumsum(item_counts)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pairs, mask=pa.array(item_counts == 0)).cast(type_)


def _one_or_list(answers: pa.Array, null: npt.NDArray[np.bool_], each: int, type_: pa.DataType) -> pa.Array:
    """One value per window, or one list per window if the query asks for several fractions."""
    if not pa.types.is_list(type_):
        return pc.if_else(pa.array(null), pa.scalar(None, type_), _typed(answers, type_))
    offsets = pa.array(np.arange(len(null) + 1, dtype=np.int32) * each)
    return pa.ListArray.from_arrays(offsets, _typed(answers, type_.value_type), mask=pa.array(null)).cast(type_)


def _lists(bounds: Longs, values: pa.Array, type_: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values).cast(type_)


def _sums(sums: Numbers, type_: pa.DataType) -> pa.Array:
    """Sums in the query's type; sums of decimals are unscaled integers."""
    if not pa.types.is_decimal(type_):
        return pa.array(sums).cast(type_)
    wide = np.stack([sums, sums >> 63], axis=1)  # 128 bits: the upper 64 repeat the sign
    return pa.Array.from_buffers(type_, len(sums), [None, pa.py_buffer(np.ascontiguousarray(wide))])


def _middles(middles: npt.NDArray[np.float64], type_: pa.DataType) -> pa.Array:
    """Means in the type that Spark gives them; means of integers, dates and timestamps are rounded towards zero."""
    if pa.types.is_decimal(type_):  # a mean with too many digits is NULL, as in Spark
        return pa.array(middles, mask=np.abs(middles) >= 10.0 ** (type_.precision - type_.scale)).cast(type_)
    if pa.types.is_floating(type_):
        return pa.array(middles).cast(type_)
    within = np.abs(middles) < LONGEST  # larger means become the greatest or least integer, as in Java
    ends = np.where(middles < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    return _typed(pa.array(np.where(within, np.where(within, middles, 0).astype(np.int64), ends)), type_)


def _typed(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values in the query's type: a sketch holds dates and timestamps as integers.

    An integer that a float cannot represent becomes the nearest float.
    """
    if pa.types.is_date32(type_) and pa.types.is_integer(values.type):
        values = values.cast(pa.int32())
    return values if values.type == type_ else values.cast(type_, safe=not pa.types.is_floating(type_))
