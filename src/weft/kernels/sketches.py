"""Reads sketches of Apache DataSketches: samples with weights.

`data[bounds[p]:bounds[p + 1]]` are the bytes of partial p; if there are none, it has no sketch. The formats are
described at datasketches.apache.org: KLL of serial versions 1 and 2, frequent items of version 1, compact Theta
sketches of version 3 and compressed ones of version 4.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]

NO_LIMIT = np.int64(0x7FFF_FFFF_FFFF_FFFF)
"""The limit of a Theta sketch that has dropped no hash."""


@njit(cache=True, nogil=True)
def _little(data: Bytes, at: int, size: int) -> np.int64:
    """The integer in these bytes, little-endian."""
    value = np.int64(0)
    for i in range(size):
        value |= np.int64(data[at + i]) << np.int64(8 * i)
    return value


@njit(cache=True, nogil=True)
def count_kll(data: Bytes, bounds: Longs) -> Longs:
    """Where the samples of each KLL sketch of 8-byte items begin: cumulative counts."""
    out = np.zeros(len(bounds), np.int64)
    for p in range(len(bounds) - 1):
        begin, end = bounds[p], bounds[p + 1]
        samples = 0
        if end - begin > 8:
            single = data[begin + 3] & 4
            samples = 1 if single else (end - begin - 36 - 4 * np.int64(data[begin + 18])) // 8
        out[p + 1] = out[p] + samples
    return out


@njit(cache=True, nogil=True)
def read_kll(data: Bytes, bounds: Longs, starts: Longs, items: Longs, weights: Longs) -> None:
    """Write the 64 bits of each sample, and its weight: a sample of level i stands for 2**i rows."""
    for p in range(len(bounds) - 1):
        begin, n = bounds[p], starts[p + 1] - starts[p]
        if n == 0:
            continue
        if data[begin + 3] & 4:
            items[starts[p]], weights[starts[p]] = _little(data, begin + 8, 8), 1
            continue
        levels = np.int64(data[begin + 18])
        first = bounds[p + 1] - 8 * n
        bottom = _little(data, begin + 20, 4)
        for level in range(levels):
            low = _little(data, begin + 20 + 4 * level, 4) - bottom
            high = n if level == levels - 1 else _little(data, begin + 24 + 4 * level, 4) - bottom
            for i in range(low, high):
                items[starts[p] + i] = _little(data, first + 8 * i, 8)
                weights[starts[p] + i] = np.int64(1) << level


@njit(cache=True, nogil=True)
def count_theta(data: Bytes, bounds: Longs) -> Longs:
    """Where the hashes of each Theta sketch begin: cumulative counts."""
    out = np.zeros(len(bounds), np.int64)
    for p in range(len(bounds) - 1):
        begin, end = bounds[p], bounds[p + 1]
        hashes = 0
        if end - begin > 8:
            words, version = data[begin] & 63, data[begin + 1]
            if version == 4:
                hashes = _little(data, begin + 8 * words, np.int64(data[begin + 4]))
            else:
                hashes = 1 if words == 1 else _little(data, begin + 8, 4)
        out[p + 1] = out[p] + hashes
    return out


@njit(cache=True, nogil=True)
def read_theta(data: Bytes, bounds: Longs, starts: Longs, hashes: Longs, limits: Longs) -> None:
    """Write the hashes, and the limit of each sketch: it has all hashes of its rows that are below the limit."""
    for p in range(len(bounds) - 1):
        begin, n = bounds[p], starts[p + 1] - starts[p]
        limits[p] = NO_LIMIT
        if bounds[p + 1] - begin < 8:
            continue
        words, version = np.int64(data[begin] & 63), data[begin + 1]
        if version == 4:
            if words > 1:
                limits[p] = _little(data, begin + 8, 8)
            width, at = np.int64(data[begin + 3]), 8 * (begin + 8 * words + np.int64(data[begin + 4]))
            value = np.int64(0)
            for i in range(n):  # differences of `width` bits, the highest bit of a byte first
                delta = np.int64(0)
                for _ in range(width):
                    delta = (delta << 1) | ((data[at >> 3] >> (7 - (at & 7))) & 1)
                    at += 1
                value += delta
                hashes[starts[p] + i] = value
            continue
        if words > 2:
            limits[p] = _little(data, begin + 16, 8)
        for i in range(n):
            hashes[starts[p] + i] = _little(data, begin + 8 * (words + i), 8)


@njit(cache=True, nogil=True)
def count_heavy(data: Bytes, bounds: Longs) -> Longs:
    """Where the items of each sketch of frequent items begin: cumulative counts. NULL is one more item."""
    out = np.zeros(len(bounds), np.int64)
    for p in range(len(bounds) - 1):
        begin, end = bounds[p], bounds[p + 1]
        items = 0
        if end > begin:
            if data[begin] & 63 > 1:
                items = _little(data, begin + 8, 4)
            items += 1 if _nulls(data, end) else 0
        out[p + 1] = out[p] + items
    return out


@njit(cache=True, nogil=True)
def _nulls(data: Bytes, end: int) -> np.int64:
    """The number of NULLs, which Spark writes after a sketch, big-endian."""
    value = np.int64(0)
    for i in range(end - 8, end):
        value = (value << 8) | np.int64(data[i])
    return value


@njit(cache=True, nogil=True)
def read_heavy(
    data: Bytes, bounds: Longs, starts: Longs, texts: bool, begins: Longs, sizes: Longs, weights: Longs
) -> None:
    """Write where in `data` each item begins, its size, and its greatest possible count; NULL is last, with size -1."""
    for p in range(len(bounds) - 1):
        begin, end = bounds[p], bounds[p + 1]
        if end == begin:
            continue
        slot = starts[p]
        if data[begin] & 63 > 1:
            n, slack = _little(data, begin + 8, 4), _little(data, begin + 24, 8)
            at = begin + 32 + 8 * n
            for i in range(n):
                size = 8
                if texts:
                    size = _little(data, at, 4)
                    at += 4
                begins[slot], sizes[slot] = at, size
                weights[slot] = _little(data, begin + 32 + 8 * i, 8) + slack
                at += size
                slot += 1
        if slot < starts[p + 1]:
            begins[slot], sizes[slot], weights[slot] = 0, -1, _nulls(data, end)


@njit(cache=True, nogil=True)
def gather_longs(data: Bytes, begins: Longs, sizes: Longs, out: Longs) -> None:
    """Write the 64 bits at each begin; 0 for NULL."""
    for i in range(len(begins)):
        out[i] = _little(data, begins[i], 8) if sizes[i] == 8 else 0


@njit(cache=True, nogil=True)
def gather_bytes(data: Bytes, begins: Longs, bounds: Longs, out: Bytes) -> None:
    """Write the bytes from each begin on to `out[bounds[i]:bounds[i + 1]]`."""
    for i in range(len(begins)):
        for j in range(bounds[i + 1] - bounds[i]):
            out[bounds[i] + j] = data[begins[i] + j]
