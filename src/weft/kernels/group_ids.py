"""Groups of rows by a hash table: a number for each, in the order of first sight."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

MIX = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)
TAG = np.uint64(33)  # what is left is not negative in the upper half of an int64
NUMBER = np.int64(0xFFFF_FFFF)


@njit(cache=True, nogil=True)
def number_rows(
    codes: NDArray[np.int64], columns: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The group of each of the `rows`, equal where `codes[row, columns]` are, and the first row of each group.

    requires  rows within codes, fewer than 2**31
    cost      O(columns) a row, expected; a group that is new misses the cache once, one that is not twice
    space     the result and 2 to 4 entries of 8 bytes a row
    """
    size = 2
    while size < 2 * len(rows):
        size *= 2
    table = np.full(size, -1, np.int64)  # open addressing: bits of the hash above the group's number, -1 where free
    groups = np.empty(len(rows), np.int32)
    firsts = np.empty(len(rows), np.int64)
    found = 0
    for i in range(len(rows)):
        row = rows[i]
        mixed = np.uint64(0)
        for column in columns:
            mixed = (mixed ^ np.uint64(codes[row, column])) * MIX
            mixed ^= mixed >> HALF
        tag = np.int64(mixed >> TAG)
        place = np.int64(mixed & np.uint64(size - 1))
        while True:
            entry = table[place]
            if entry < 0:
                table[place] = (tag << 32) | found
                firsts[found] = row
                groups[i] = found
                found += 1
                break
            if entry >> 32 == tag:
                group = entry & NUMBER
                first = firsts[group]
                same = True
                for column in columns:
                    if codes[first, column] != codes[row, column]:
                        same = False
                        break
                if same:
                    groups[i] = group
                    break
            place = (place + 1) & (size - 1)
    return groups, firsts[:found].copy()
