"""Partials without a fixed size: distinct values with their counts, or the samples of a sketch with their weights.

Both are two lists per partial, with the values ascending; a Theta sketch has its limit in a third column. Merging adds
up weights. This is right for counts by definition, and for samples because the error of each slice is a fraction of its
own rows: the sum of the errors is the same fraction of all rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.combine.base import NOTHING_CHOSEN, Combiner, Longs, SumOverflow
from weft.engine.combine.choices import Extremes, is_number, order_keys
from weft.kernels import plain, sliding_values

Columns = tuple[pa.Array, ...]
Numbers = npt.NDArray[Any]
"""Weights: integers, or floats if they are sums of floats."""

SAFE_SUM = 2.0**62
"""If the absolute values of integers add up to less than this, the sum of any of them fits 64 bits."""


class SlidingWindows(NamedTuple):
    """Windows over the values of their groups, as the kernels of `sliding_values` take them."""

    ranks: npt.NDArray[np.int32]
    weights: Numbers
    bounds: Longs
    firsts: Longs
    groups: npt.NDArray[np.int32]
    lo: Longs
    hi: Longs


class ValueLists(Combiner):
    """Lists of values and of weights; for a Theta sketch also the limit of each partial."""

    def combine(self, lo: Longs, hi: Longs) -> Columns:
        """One partial per run, for runs that do not overlap: slices are merged into coarser slices."""
        lists = ascending_lists(self.values, self.weights, self._bounds[lo], self._bounds[hi])
        return lists if len(self.columns) == 2 else (*lists, self.limits(lo, hi))

    def limits(self, lo: Longs, hi: Longs) -> pa.Array:
        """The least limit of each range of Theta sketches."""
        return Extremes((self.columns[2],), NOTHING_CHOSEN, greatest=False).combine(lo, hi)[0]

    @cached_property
    def values(self) -> pa.Array:
        return self.columns[0].flatten()

    @cached_property
    def weights(self) -> Numbers:
        return weights_of(self.columns[1].flatten())

    @cached_property
    def _bounds(self) -> Longs:
        return list_bounds(self.columns[0])

    @cached_property
    def _keys(self) -> Longs:
        return _value_keys(self.values)

    def prepare(self, offsets: Longs) -> None:
        """Sort the values of each group, once for all queries."""
        self._ranked(offsets)

    def windows(self, groups: npt.NDArray[np.int32], lo: Longs, hi: Longs, offsets: Longs) -> SlidingWindows:
        """Windows by their group and their partials `[lo, hi)`; neither end ever decreases.

        The partials of group g are `offsets[g]:offsets[g + 1]`.
        """
        ranks, _, firsts = self._ranked(offsets)
        return SlidingWindows(ranks, self.weights, self._bounds, firsts, groups, lo, hi)

    def _ranked(self, offsets: Longs) -> tuple[npt.NDArray[np.int32], Longs, Longs]:
        if self._ranks is None:
            self._ranks = sliding_values.rank(self._keys, self._bounds, offsets)
        return self._ranks

    _ranks: tuple[npt.NDArray[np.int32], Longs, Longs] | None = None

    @cached_property
    def distinct_values(self) -> pa.Array:
        """The distinct values of each group, ascending. Kernels return positions in this array."""
        assert self._ranks is not None
        return self.values.take(pa.array(self._ranks[1]))

    @cached_property
    def distinct_keys(self) -> Longs:
        assert self._ranks is not None
        return self._keys[self._ranks[1]]

    @cached_property
    def distinct_floats(self) -> npt.NDArray[np.float64]:
        # A long integer becomes the nearest float, as in Spark.
        values = self.distinct_values.cast(pa.float64(), safe=False)
        return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def ascending_lists(values: pa.Array, weights: Numbers, begins: Longs, ends: Longs) -> Columns:
    """One list per range: its distinct values, ascending, with the sums of their weights."""
    refuse_overflow(weights)
    keys = _value_keys(values)
    positions, sums, bounds = sliding_values.sort_and_merge(
        keys, weights, plain(begins, np.int64), plain(ends, np.int64)
    )
    offsets = pa.array(bounds.astype(np.int32))
    unchanged = len(positions) == len(values) and (np.diff(positions) == 1).all()
    distinct = values if unchanged else values.take(pa.array(positions))
    return pa.ListArray.from_arrays(offsets, distinct), pa.ListArray.from_arrays(offsets, pa.array(sums))


def _value_keys(values: pa.Array) -> Longs:
    """Integers in the order of the values; distinct texts and decimals are sorted once."""
    if is_number(values.type):
        return order_keys(values, greatest=True)
    encoded = values.dictionary_encode(null_encoding="encode")
    keys: Longs = order_keys(encoded.dictionary, greatest=True)[encoded.indices.to_numpy()]
    return keys


def weights_of(column: pa.Array) -> Numbers:
    return plain(column.to_numpy(zero_copy_only=False), np.float64 if pa.types.is_floating(column.type) else np.int64)


def list_bounds(lists: pa.Array) -> Longs:
    """The bounds of each list among all values."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def refuse_overflow(weights: Numbers) -> None:
    """Raise if sums of these weights may overflow 64 bits."""
    if weights.dtype == np.int64 and np.abs(weights.astype(np.float64)).sum() >= SAFE_SUM:
        raise SumOverflow("sums of top_k_sum may leave 64 bits; sum a DOUBLE: top_k_sum(item, CAST(x AS DOUBLE), k)")
