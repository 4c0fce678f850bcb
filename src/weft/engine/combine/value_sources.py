"""Turns the lists and sketches that Spark sends into lists that combine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.aggregates.combining import FrequentItems, KllSketch, ThetaSketch, Values, ValueSource, WeightedValues
from weft.engine.combine.base import Longs
from weft.engine.combine.value_lists import Columns, ascending_lists, list_bounds, weights_of
from weft.kernels import plain, sketches


def values_from_spark(source: ValueSource, columns: Columns) -> Columns:
    match source:
        case Values():
            values, bounds = columns[0].flatten(), list_bounds(columns[0])
            return ascending_lists(values, np.ones(len(values), np.int64), bounds[:-1], bounds[1:])
        case WeightedValues():
            items, weights = columns[0].flatten().flatten()
            bounds = list_bounds(columns[0])
            return ascending_lists(items, weights_of(weights), bounds[:-1], bounds[1:])
        case ThetaSketch():
            return _theta(*_bytes(columns[0]))
        case KllSketch(real=real):
            return _kll(*_bytes(columns[0]), columns[1] if real else None)
        case FrequentItems(item=item):
            return _frequent(item, *_bytes(columns[0]))
    raise AssertionError(f"nothing reads {source}")


def _theta(data: npt.NDArray[np.uint8], bounds: Longs) -> Columns:
    starts = sketches.count_theta(data, bounds)
    hashes, limits = np.empty(starts[-1], np.int64), np.empty(len(bounds) - 1, np.int64)
    sketches.read_theta(data, bounds, starts, hashes, limits)
    lists = ascending_lists(pa.array(hashes), np.ones(len(hashes), np.int64), starts[:-1], starts[1:])
    return (*lists, pa.array(limits))


def _kll(data: npt.NDArray[np.uint8], bounds: Longs, nans: pa.Array | None) -> Columns:
    """`nans` counts the NaNs that sketches of doubles leave out; None: the sketches are of integers."""
    starts = sketches.count_kll(data, bounds)
    items, weights = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
    sketches.read_kll(data, bounds, starts, items, weights)
    if nans is None:
        return ascending_lists(pa.array(items), weights, starts[:-1], starts[1:])
    counts = pc.fill_null(nans, 0).to_numpy(zero_copy_only=False)
    has_nan = counts > 0
    ends = starts[1:][has_nan]
    starts = starts + np.concatenate([[0], np.cumsum(has_nan)])
    values = pa.array(np.insert(items.view(np.float64), ends, np.nan))
    return ascending_lists(values, np.insert(weights, ends, counts[has_nan]), starts[:-1], starts[1:])


def _frequent(item: type, data: npt.NDArray[np.uint8], bounds: Longs) -> Columns:
    texts = item is str
    starts = sketches.count_heavy(data, bounds)
    begins, sizes, weights = (np.zeros(starts[-1], np.int64) for _ in range(3))
    sketches.read_heavy(data, bounds, starts, texts, begins, sizes, weights)
    if texts:
        ends = np.concatenate([[0], np.cumsum(np.maximum(sizes, 0))])
        letters = np.empty(ends[-1], np.uint8)
        sketches.gather_bytes(data, begins, ends, letters)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(letters)]
        values = pa.Array.from_buffers(pa.large_string(), len(sizes), buffers).cast(pa.string())
    else:
        bits = np.empty(len(sizes), np.int64)
        sketches.gather_longs(data, begins, sizes, bits)
        values = pa.array(bits.view(np.float64) if item is float else bits)
    return ascending_lists(pc.if_else(pa.array(sizes >= 0), values, None), weights, starts[:-1], starts[1:])


def _bytes(column: pa.Array) -> tuple[npt.NDArray[np.uint8], Longs]:
    """All bytes of a binary column, and where the bytes of each value begin and end."""
    sizes = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    _, _, data = column.buffers()
    if data is None:
        return np.empty(0, np.uint8), bounds
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    return plain(np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]], np.uint8), bounds
