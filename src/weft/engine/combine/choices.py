"""Greatest and least values, and columns of the partials that contain them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from weft.engine.combine.base import (
    Combiner,
    Longs,
    PreparedColumn,
    Serving,
    integers_behind,
    to_numpy_array,
    without_nulls,
)
from weft.engine.combine.ranks import ranks
from weft.kernels import NO_VALUE, float_keys, key_floats


class Extremes(Combiner):
    """The greatest or least of numbers and times: values are encoded as integers, and decoded."""

    def __init__(self, columns: tuple[pa.Array, ...], serving: Serving, *, greatest: bool) -> None:
        super().__init__(columns, serving)
        self._reversed = not greatest

    @cached_property
    def _prepared(self) -> PreparedColumn:
        column = self.columns[0]
        values = to_numpy_array(without_nulls(column))
        if pa.types.is_floating(column.type):
            keys = float_keys(values.astype(np.float64, copy=False), self._reversed)
        else:
            keys = ~values.astype(np.int64) if self._reversed else values.astype(np.int64, copy=False)
        if column.null_count:
            keys = np.where(to_numpy_array(column.is_null()), NO_VALUE, keys)  # below all other keys
        return self.prepared("max", keys)

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        type_ = self.columns[0].type
        keys = self._prepared.answer(lo, hi, np.empty(len(lo), np.int64))
        if pa.types.is_floating(type_):
            return (pa.array(key_floats(keys, self._reversed), mask=self.null(lo, hi)).cast(type_),)
        values = ~keys if self._reversed else keys
        null = self.null(lo, hi)
        if null is not None:
            values = np.where(null, 0, values)  # the placeholder of a NULL may not fit the type
        integers = pa.array(values, mask=null)
        if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
            return (integers.cast(type_),)
        return (integers.cast(integers_behind(type_)).view(type_),)


class Choices(Combiner):
    """The selective family: the first column decides which partial wins, and every column takes its value from it."""

    def __init__(self, columns: tuple[pa.Array, ...], serving: Serving, *, greatest: bool) -> None:
        super().__init__(columns, serving)
        self._greatest = greatest

    @cached_property
    def _prepared(self) -> PreparedColumn:
        # Ties go to the earlier partial for `min_by` and to the later for `max_by`: first and last in time.
        keys = order_keys(self.columns[0], greatest=self._greatest)
        return self.prepared("argmax_last" if self._greatest else "argmax_first", keys)

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        winners = self._prepared.answer(lo, hi, np.empty(len(lo), np.int64))
        indices = pa.array(winners, mask=winners < 0 if self.columns[0].null_count else None)
        return tuple(column.take(indices) for column in self.columns)


def order_keys(column: pa.Array, *, greatest: bool) -> Longs:
    """Integers in the order of the values, reversed for the least; the key of NULL is NO_VALUE, below all others."""
    keys = _ascending(column)
    if len(keys) and (keys.min() <= NO_VALUE + 1 or keys.max() >= -NO_VALUE - 2):
        keys = ranks(column)  # the values reach the limits of int64, and only NULL may have NO_VALUE
    if not greatest:
        keys = ~keys
    if column.null_count:
        keys = np.where(to_numpy_array(column.is_null()), NO_VALUE, keys)
    return np.ascontiguousarray(keys)


def _ascending(column: pa.Array) -> Longs:
    type_ = column.type
    if pa.types.is_floating(type_):
        # Adding 0.0 turns -0.0 into 0.0. The bits of floats ascend with their values once negative ones are inverted.
        values = to_numpy_array(without_nulls(column)).astype(np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        bits = values.view(np.int64)
        ascending: Longs = np.where(bits >= 0, bits, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF))
        return ascending
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_temporal(type_):
        return to_numpy_array(without_nulls(column)).astype(np.int64)  # type: ignore[no-any-return]
    return ranks(column)


def is_number(type_: pa.DataType) -> bool:
    """Whether an int64 can hold values of this type in their order."""
    exact = pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_temporal(type_)
    return bool(pa.types.is_floating(type_) or exact)
