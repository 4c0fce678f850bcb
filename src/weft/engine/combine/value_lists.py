"""Partials of no fixed size: values with how often each came, or the samples of a sketch with their weights.

Both are two lists a partial, the values ascending, each once; a Theta sketch has its limit beside. Merging adds weights
up: for exact counts by definition, and for samples because every slice's error is a fraction of its own rows, so that
their sum is the same fraction of all.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.combine.numeric import NOTHING_CHOSEN, Extremes, Longs, Ranges, SumOverflow, is_number, order_keys
from weft.kernels import plain, sketches, sliding_summaries, sliding_values

Columns = tuple[pa.Array, ...]
Numbers = npt.NDArray[Any]
"""Weights: whole numbers, or floats where they are sums of floats."""

HASHES = 2.0**63
"""A Theta sketch's hashes lie between 0 and this."""

LONGEST = 2.0**63
"""The least float that is too large for a 64-bit integer."""

SUMS = 2.0**62
"""Whole numbers whose sizes add up to less than this have sums that fit into 64 bits, whichever are added."""


def absorb_synopsis(kind: str, columns: Columns) -> Columns:
    """What Spark says of a slice, as lists that combine."""
    if kind in ("frequencies", "distinct"):
        values, bounds = columns[0].flatten(), _bounds(columns[0])
        return _tidied(values, np.ones(len(values), np.int64), bounds[:-1], bounds[1:])
    if kind == "sums":
        items, measures = columns[0].flatten().flatten()
        bounds = _bounds(columns[0])
        return _tidied(items, _weights(measures), bounds[:-1], bounds[1:])
    data, bounds = _bytes(columns[0])
    if kind == "theta":
        starts = sketches.count_theta(data, bounds)
        hashes, limits = np.empty(starts[-1], np.int64), np.empty(len(bounds) - 1, np.int64)
        sketches.read_theta(data, bounds, starts, hashes, limits)
        lists = _tidied(pa.array(hashes), np.ones(len(hashes), np.int64), starts[:-1], starts[1:])
        return (*lists, pa.array(limits))
    if kind.startswith("kll_"):
        starts = sketches.count_kll(data, bounds)
        items, weights = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
        sketches.read_kll(data, bounds, starts, items, weights)
        if kind == "kll_bigint":
            return _tidied(pa.array(items), weights, starts[:-1], starts[1:])
        return _with_nan(items.view(np.float64), weights, starts, columns[1])
    return _heavy(kind, data, bounds)


def _with_nan(values: npt.NDArray[np.float64], weights: Longs, starts: Longs, nans: pa.Array) -> Columns:
    """The samples of sketches, and how many NaN came beside."""
    counts = pc.fill_null(nans, 0).to_numpy(zero_copy_only=False)
    has = counts > 0
    ends = starts[1:][has]
    starts = starts + np.concatenate([[0], np.cumsum(has)])
    found = pa.array(np.insert(values, ends, np.nan))
    return _tidied(found, np.insert(weights, ends, counts[has]), starts[:-1], starts[1:])


def _heavy(kind: str, data: npt.NDArray[np.uint8], bounds: Longs) -> Columns:
    texts = kind == "heavy_string"
    starts = sketches.count_heavy(data, bounds)
    begins, sizes, weights = (np.zeros(starts[-1], np.int64) for _ in range(3))
    sketches.read_heavy(data, bounds, starts, texts, begins, sizes, weights)
    if texts:
        ends = np.concatenate([[0], np.cumsum(np.maximum(sizes, 0))])
        found = np.empty(ends[-1], np.uint8)
        sketches.gather_bytes(data, begins, ends, found)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(found)]
        values = pa.Array.from_buffers(pa.large_string(), len(sizes), buffers).cast(pa.string())
    else:
        bits = np.empty(len(sizes), np.int64)
        sketches.gather_longs(data, begins, sizes, bits)
        values = pa.array(bits.view(np.float64) if kind == "heavy_double" else bits)
    return _tidied(pc.if_else(pa.array(sizes >= 0), values, None), weights, starts[:-1], starts[1:])


class Synopses(Ranges):
    """Lists of values and of weights; for a Theta sketch also the limit of each partial."""

    def combine(self, lo: Longs, hi: Longs) -> Columns:
        """One partial of several, for runs that do not overlap: slices that become coarser ones."""
        lists = _tidied(self._values, self._weights, self._bounds[lo], self._bounds[hi])
        return lists if len(self.columns) == 2 else (*lists, self._limits(lo, hi))

    def _limits(self, lo: Longs, hi: Longs) -> pa.Array:
        return Extremes((self.columns[2],), NOTHING_CHOSEN, greatest=False).combine(lo, hi)[0]

    @cached_property
    def _values(self) -> pa.Array:
        return self.columns[0].flatten()

    @cached_property
    def _weights(self) -> Numbers:
        return _weights(self.columns[1].flatten())

    @cached_property
    def _bounds(self) -> Longs:
        return _bounds(self.columns[0])

    @cached_property
    def _keys(self) -> Longs:
        return _keys(self._values)

    def answer(
        self,
        lower: str,
        numbers: tuple[float, ...],
        type_: pa.DataType,
        windows: tuple[npt.NDArray[np.int32], Longs, Longs],
        offsets: Longs,
    ) -> pa.Array:
        """What an aggregate reads from the values of each window: its group, and its partials `[lo, hi)`.

        The partials of group g are `offsets[g]:offsets[g + 1]`; neither end of the windows ever falls.
        """
        groups, lo, hi = windows
        return getattr(self, f"_{lower}")((*self._slid(offsets), groups, lo, hi), numbers, type_)

    def prepare(self, offsets: Longs) -> None:
        """Put the values of each group in order, once for all who read them."""
        self._ranked(offsets)

    def _slid(self, offsets: Longs) -> tuple[Any, ...]:
        ranks, _, firsts = self._ranked(offsets)
        return ranks, self._weights, self._bounds, firsts

    def _ranked(self, offsets: Longs) -> tuple[npt.NDArray[np.int32], Longs, Longs]:
        if self._ranks is None:
            self._ranks = sliding_values.rank(self._keys, self._bounds, offsets)
        return self._ranks

    _ranks: tuple[npt.NDArray[np.int32], Longs, Longs] | None = None

    @cached_property
    def _different_values(self) -> pa.Array:
        """The different values of each group, ascending: what the kernels' places stand for."""
        assert self._ranks is not None
        return self._values.take(pa.array(self._ranks[1]))

    @cached_property
    def _different_floats(self) -> npt.NDArray[np.float64]:
        values = self._different_values.cast(pa.float64(), safe=False)  # long integers as the nearest, as in Spark
        return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    def _quantiles(self, windows: Any, numbers: tuple[float, ...], between: bool) -> tuple[Longs, Longs, Longs]:
        count = len(windows[-1])
        totals, places = np.empty(count, np.int64), np.zeros((2, count, len(numbers)), np.int64)
        fractions = np.array(numbers, np.float64)
        sliding_values.slide_quantiles(*windows, fractions, between, totals, places[0], places[1])
        return totals, places[0], places[1]

    def _percentile(self, windows: Any, numbers: tuple[float, ...], type_: pa.DataType) -> pa.Array:
        """Between two values that stand side by side, in proportion, as Spark computes it."""
        totals, lower, upper = self._quantiles(windows, numbers, True)
        values = self._different_floats
        if not len(values):
            return pa.nulls(len(totals), type_)
        position = np.multiply.outer(np.maximum(totals - 1, 0), np.array(numbers))
        below, above = values[lower], values[upper]
        with np.errstate(invalid="ignore", over="ignore"):
            found = below + (above - below) * (position - np.floor(position))
        # Where both are the same there is nothing between them; equal infinities would make NaN of it.
        found = np.where((lower == upper) | (below == above), below, found)
        return _listed(pa.array(found.ravel()), totals == 0, len(numbers), type_)

    def _percentile_approx(self, windows: Any, numbers: tuple[float, ...], type_: pa.DataType) -> pa.Array:
        totals, lower, _ = self._quantiles(windows, numbers, False)
        if not len(self._values):
            return pa.nulls(len(totals), type_)
        found = self._different_values.take(pa.array(lower.ravel()))
        return _listed(found, totals == 0, len(numbers), type_)

    def _different(self, windows: Any, numbers: tuple[float, ...], type_: pa.DataType) -> pa.Array:
        assert self._ranks is not None
        lo, hi = windows[-2:]
        out, limits = np.empty(len(lo), np.int64), np.empty(0, np.int64)
        if len(self.columns) == 3:
            limits = plain(self._limits(lo, hi).to_numpy(), np.int64)
        sliding_values.slide_different(*windows, self._keys[self._ranks[1]], limits, out)
        return pa.array(out if not len(limits) else np.rint(out / (limits / HASHES)).astype(np.int64))

    def _common(self, windows: Any, most: int) -> tuple[Longs, Longs, Longs]:
        count = len(windows[-1])
        filled, places = np.empty(count, np.int64), np.zeros((2, count, most), np.int64)
        sliding_values.slide_common(*windows, filled, places[0], places[1])
        return filled, places[0], places[1]

    def _mode(self, windows: Any, numbers: tuple[float, ...], type_: pa.DataType) -> pa.Array:
        filled, places, _ = self._common(windows, 1)
        return self._different_values.take(pa.array(places[:, 0], mask=filled == 0))

    def _top_k(self, windows: Any, numbers: tuple[float, ...], type_: pa.DataType) -> pa.Array:
        filled, places, counted = self._common(windows, int(numbers[0]))
        chosen = np.arange(places.shape[1]) < filled[:, None]
        items = _typed(self._different_values.take(pa.array(places[chosen])), type_.value_type[0].type)
        pairs = pa.StructArray.from_arrays([items, pa.array(counted[chosen])], fields=list(type_.value_type))
        return _lists(np.concatenate([[0], np.cumsum(filled)]), pairs, type_)

    def _top_sums(self, windows: Any, numbers: tuple[float, ...], type_: pa.DataType) -> pa.Array:
        """Sums of floats are never subtracted; those of whole numbers and of decimals are."""
        _refuse_wide(self._weights)
        count, most = len(windows[-1]), min(int(numbers[0]), max(1, int(np.diff(windows[3]).max(initial=0))))
        filled, places = np.empty(count, np.int64), np.empty((count, most), np.int64)
        sums = np.empty((count, most), self._weights.dtype)
        sliding_summaries.slide_sums(*windows, self._weights.dtype != np.float64, filled, places, sums)
        chosen = np.arange(most) < filled[:, None]
        item, total = type_.value_type
        items = _typed(self._different_values.take(pa.array(places[chosen])), item.type)
        pairs = pa.StructArray.from_arrays([items, _sums(sums[chosen], total.type)], fields=[item, total])
        return _lists(np.concatenate([[0], np.cumsum(filled)]), pairs, type_)

    def _bins(self, windows: Any, numbers: tuple[float, ...], type_: pa.DataType) -> pa.Array:
        """Bins of values that stand side by side: the mean of each and how many they are."""
        if not len(self._values):
            return pa.nulls(len(windows[-1]), type_)
        most = min(int(numbers[0]), int(np.diff(windows[3]).max(initial=0)))
        filled, bins = np.empty(len(windows[-1]), np.int64), np.empty((2, len(windows[-1]), most))
        sliding_summaries.slide_bins(*windows, self._different_floats, filled, bins[0], bins[1])
        chosen = np.arange(most) < filled[:, None]
        middle = _middles(bins[0][chosen], type_.value_type[0].type)
        pairs = pa.StructArray.from_arrays([middle, pa.array(bins[1][chosen])], fields=list(type_.value_type))
        offsets = pa.array(np.concatenate([[0], np.cumsum(filled)]).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, pairs, mask=pa.array(filled == 0)).cast(type_)

    def _members(self, windows: Any, numbers: tuple[float, ...], type_: pa.DataType) -> pa.Array:
        sizes = self._different(windows, numbers, pa.int64()).to_numpy()
        starts = np.concatenate([[0], np.cumsum(sizes)])
        out = np.empty(starts[-1], np.int64)
        sliding_values.slide_members(*windows, starts, out)
        return _lists(starts, self._different_values.take(pa.array(out)), type_)


def _keys(values: pa.Array) -> Longs:
    """Integers in the order of the values; of texts and decimals each different one is put in order once."""
    if is_number(values.type):
        return order_keys(values, greatest=True)
    encoded = values.dictionary_encode(null_encoding="encode")
    keys: Longs = order_keys(encoded.dictionary, greatest=True)[encoded.indices.to_numpy()]
    return keys


def _weights(column: pa.Array) -> Numbers:
    return plain(column.to_numpy(zero_copy_only=False), np.float64 if pa.types.is_floating(column.type) else np.int64)


def _tidied(values: pa.Array, weights: Numbers, begins: Longs, ends: Longs) -> Columns:
    _refuse_wide(weights)
    places, sums, bounds = sliding_values.tidy(_keys(values), weights, plain(begins, np.int64), plain(ends, np.int64))
    offsets = pa.array(bounds.astype(np.int32))
    kept = values if len(places) == len(values) and (np.diff(places) == 1).all() else values.take(pa.array(places))
    return pa.ListArray.from_arrays(offsets, kept), pa.ListArray.from_arrays(offsets, pa.array(sums))


def _bounds(lists: pa.Array) -> Longs:
    """Where each list begins and ends among all values."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def _bytes(column: pa.Array) -> tuple[npt.NDArray[np.uint8], Longs]:
    """All bytes of a binary column, and where each value's begin and end."""
    sizes = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    _, _, data = column.buffers()
    if data is None:
        return np.empty(0, np.uint8), bounds
    whole = np.frombuffer(data, np.uint8)
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    return plain(whole[offsets[0] : offsets[-1]], np.uint8), bounds


def _listed(found: pa.Array, null: npt.NDArray[np.bool_], each: int, type_: pa.DataType) -> pa.Array:
    """One value a window, or a list of them where the query asks for several fractions."""
    if not pa.types.is_list(type_):
        return pc.if_else(pa.array(null), pa.scalar(None, type_), _typed(found, type_))
    offsets = pa.array(np.arange(len(null) + 1, dtype=np.int32) * each)
    return pa.ListArray.from_arrays(offsets, _typed(found, type_.value_type), mask=pa.array(null)).cast(type_)


def _lists(bounds: Longs, values: pa.Array, type_: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values).cast(type_)


def _refuse_wide(weights: Numbers) -> None:
    """Whole numbers that may not fit into 64 bits when they are added up: none of them is added up wrongly."""
    if weights.dtype == np.int64 and np.abs(weights.astype(np.float64)).sum() >= SUMS:
        raise SumOverflow("sums of top_k_sum may leave 64 bits; sum a DOUBLE: top_k_sum(item, CAST(x AS DOUBLE), k)")


def _sums(sums: Numbers, type_: pa.DataType) -> pa.Array:
    """Sums as the query's type; those of decimals are whole numbers of their last digit."""
    if not pa.types.is_decimal(type_):
        return pa.array(sums).cast(type_)
    wide = np.stack([sums, sums >> 63], axis=1)  # 128 bits, the sign in all of the upper ones
    return pa.Array.from_buffers(type_, len(sums), [None, pa.py_buffer(np.ascontiguousarray(wide))])


def _middles(middles: npt.NDArray[np.float64], type_: pa.DataType) -> pa.Array:
    """Means as the type that Spark gives them: those of whole numbers, dates and instants without what is left over."""
    if pa.types.is_decimal(type_):  # without those that have more digits, as in Spark
        return pa.array(middles, mask=np.abs(middles) >= 10.0 ** (type_.precision - type_.scale)).cast(type_)
    if pa.types.is_floating(type_):
        return pa.array(middles).cast(type_)
    within = np.abs(middles) < LONGEST  # beyond it the last that there is, as in Java
    ends = np.where(middles < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    return _typed(pa.array(np.where(within, np.where(within, middles, 0).astype(np.int64), ends)), type_)


def _typed(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values as the query's type has them; a sketch holds dates and instants as integers. Integers that no float is
    equal to become the nearest one.
    """
    if pa.types.is_date32(type_) and pa.types.is_integer(values.type):
        values = values.cast(pa.int32())
    return values if values.type == type_ else values.cast(type_, safe=not pa.types.is_floating(type_))
