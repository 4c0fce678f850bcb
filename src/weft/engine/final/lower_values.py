"""From the values of each window as it slides to the answer of an aggregate, as Spark would give it."""

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
"""A Theta sketch's hashes lie between 0 and this."""

LONGEST = 2.0**63
"""The least float that is too large for a 64-bit integer."""


def lower_values(
    how: AnswerLowering, lists: ValueLists, windows: SlidingWindows, numbers: tuple[float, ...], type_: pa.DataType
) -> pa.Array:
    """The answers of the windows; `numbers` are those of the call."""
    match how:
        case Quantiles(interpolated=True):
            return _interpolated(lists, windows, numbers, type_)
        case Quantiles():
            return _quantiles(lists, windows, numbers, type_)
        case DistinctCount():
            return _distinct_count(lists, windows)
        case DistinctValues():
            return _members(lists, windows, type_)
        case Mode():
            filled, places, _ = _most_frequent(windows, 1)
            return lists.different_values.take(pa.array(places[:, 0], mask=filled == 0))
        case MostFrequent():
            return _frequent_items(lists, windows, int(numbers[0]), type_)
        case GreatestSums():
            return _greatest_sums(lists, windows, int(numbers[0]), type_)
        case Histogram():
            return _histogram(lists, windows, int(numbers[0]), type_)
    raise AssertionError(f"nothing reads {how}")


def _places(windows: SlidingWindows, fractions: tuple[float, ...], between: bool) -> tuple[Longs, Longs, Longs]:
    """The number of rows of each window, and the places of the values around each fraction of them."""
    count = len(windows.hi)
    totals, places = np.empty(count, np.int64), np.zeros((2, count, len(fractions)), np.int64)
    at = np.array(fractions, np.float64)
    sliding_values.slide_quantiles(*windows, at, between, totals, places[0], places[1])
    return totals, places[0], places[1]


def _interpolated(
    lists: ValueLists, windows: SlidingWindows, fractions: tuple[float, ...], type_: pa.DataType
) -> pa.Array:
    """Between two neighbouring values, in proportion, as Spark computes it."""
    totals, lower, upper = _places(windows, fractions, True)
    values = lists.different_floats
    if not len(values):
        return pa.nulls(len(totals), type_)
    position = np.multiply.outer(np.maximum(totals - 1, 0), np.array(fractions))
    below, above = values[lower], values[upper]
    with np.errstate(invalid="ignore", over="ignore"):
        between = below + (above - below) * (position - np.floor(position))
    # Where both are the same there is nothing between them; equal infinities would make NaN of it.
    answers = np.where((lower == upper) | (below == above), below, between)
    return _one_or_list(pa.array(answers.ravel()), totals == 0, len(fractions), type_)


def _quantiles(
    lists: ValueLists, windows: SlidingWindows, fractions: tuple[float, ...], type_: pa.DataType
) -> pa.Array:
    totals, lower, _ = _places(windows, fractions, False)
    if not len(lists.values):
        return pa.nulls(len(totals), type_)
    answers = lists.different_values.take(pa.array(lower.ravel()))
    return _one_or_list(answers, totals == 0, len(fractions), type_)


def _distinct_count(lists: ValueLists, windows: SlidingWindows) -> pa.Array:
    out, limits = np.empty(len(windows.lo), np.int64), np.empty(0, np.int64)
    if len(lists.columns) == 3:
        limits = plain(lists.limits(windows.lo, windows.hi).to_numpy(), np.int64)
    sliding_values.slide_different(*windows, lists.different_keys, limits, out)
    return pa.array(out if not len(limits) else np.rint(out / (limits / HASHES)).astype(np.int64))


def _members(lists: ValueLists, windows: SlidingWindows, type_: pa.DataType) -> pa.Array:
    sizes = _distinct_count(lists, windows).to_numpy()
    starts = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty(starts[-1], np.int64)
    sliding_values.slide_members(*windows, starts, out)
    return _lists(starts, lists.different_values.take(pa.array(out)), type_)


def _most_frequent(windows: SlidingWindows, most: int) -> tuple[Longs, Longs, Longs]:
    count = len(windows.hi)
    filled, places = np.empty(count, np.int64), np.zeros((2, count, most), np.int64)
    sliding_values.slide_common(*windows, filled, places[0], places[1])
    return filled, places[0], places[1]


def _frequent_items(lists: ValueLists, windows: SlidingWindows, most: int, type_: pa.DataType) -> pa.Array:
    filled, places, counted = _most_frequent(windows, most)
    chosen = np.arange(places.shape[1]) < filled[:, None]
    items = _typed(lists.different_values.take(pa.array(places[chosen])), type_.value_type[0].type)
    pairs = pa.StructArray.from_arrays([items, pa.array(counted[chosen])], fields=list(type_.value_type))
    return _lists(np.concatenate([[0], np.cumsum(filled)]), pairs, type_)


def _greatest_sums(lists: ValueLists, windows: SlidingWindows, most: int, type_: pa.DataType) -> pa.Array:
    """Sums of floats are never subtracted; those of integers and of decimals are."""
    refuse_overflow(lists.weights)
    count, most = len(windows.hi), min(most, max(1, int(np.diff(windows.firsts).max(initial=0))))
    filled, places = np.empty(count, np.int64), np.empty((count, most), np.int64)
    sums = np.empty((count, most), lists.weights.dtype)
    sliding_summaries.slide_sums(*windows, lists.weights.dtype != np.float64, filled, places, sums)
    chosen = np.arange(most) < filled[:, None]
    item, total = type_.value_type
    items = _typed(lists.different_values.take(pa.array(places[chosen])), item.type)
    pairs = pa.StructArray.from_arrays([items, _sums(sums[chosen], total.type)], fields=[item, total])
    return _lists(np.concatenate([[0], np.cumsum(filled)]), pairs, type_)


def _histogram(lists: ValueLists, windows: SlidingWindows, most: int, type_: pa.DataType) -> pa.Array:
    """Bins of neighbouring values: the mean of each and the number of values."""
    if not len(lists.values):
        return pa.nulls(len(windows.hi), type_)
    most = min(most, int(np.diff(windows.firsts).max(initial=0)))
    filled, bins = np.empty(len(windows.hi), np.int64), np.empty((2, len(windows.hi), most))
    sliding_summaries.slide_bins(*windows, lists.different_floats, filled, bins[0], bins[1])
    chosen = np.arange(most) < filled[:, None]
    middle = _middles(bins[0][chosen], type_.value_type[0].type)
    pairs = pa.StructArray.from_arrays([middle, pa.array(bins[1][chosen])], fields=list(type_.value_type))
    offsets = pa.array(np.concatenate([[0], np.cumsum(filled)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pairs, mask=pa.array(filled == 0)).cast(type_)


def _one_or_list(answers: pa.Array, null: npt.NDArray[np.bool_], each: int, type_: pa.DataType) -> pa.Array:
    """One value per window, or a list of them where the query asks for several fractions."""
    if not pa.types.is_list(type_):
        return pc.if_else(pa.array(null), pa.scalar(None, type_), _typed(answers, type_))
    offsets = pa.array(np.arange(len(null) + 1, dtype=np.int32) * each)
    return pa.ListArray.from_arrays(offsets, _typed(answers, type_.value_type), mask=pa.array(null)).cast(type_)


def _lists(bounds: Longs, values: pa.Array, type_: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values).cast(type_)


def _sums(sums: Numbers, type_: pa.DataType) -> pa.Array:
    """Sums as the query's type; those of decimals are integers in units of the last digit."""
    if not pa.types.is_decimal(type_):
        return pa.array(sums).cast(type_)
    wide = np.stack([sums, sums >> 63], axis=1)  # 128 bits, the sign in all of the upper ones
    return pa.Array.from_buffers(type_, len(sums), [None, pa.py_buffer(np.ascontiguousarray(wide))])


def _middles(middles: npt.NDArray[np.float64], type_: pa.DataType) -> pa.Array:
    """Means in the type that Spark gives them; those of integers, dates and instants are rounded towards zero."""
    if pa.types.is_decimal(type_):  # without those that have more digits, as in Spark
        return pa.array(middles, mask=np.abs(middles) >= 10.0 ** (type_.precision - type_.scale)).cast(type_)
    if pa.types.is_floating(type_):
        return pa.array(middles).cast(type_)
    within = np.abs(middles) < LONGEST  # beyond it the last that there is, as in Java
    ends = np.where(middles < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    return _typed(pa.array(np.where(within, np.where(within, middles, 0).astype(np.int64), ends)), type_)


def _typed(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values in the query's type; a sketch holds dates and instants as integers. Integers that no float is equal to
    become the nearest one.
    """
    if pa.types.is_date32(type_) and pa.types.is_integer(values.type):
        values = values.cast(pa.int32())
    return values if values.type == type_ else values.cast(type_, safe=not pa.types.is_floating(type_))
