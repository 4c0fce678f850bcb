"""Numbers the groups of rows with a hash table, in the order of first occurrence."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

MIX = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)
TAG = np.uint64(33)  # leaves 31 bits, which are not negative in the upper half of an int64
NUMBER = np.int64(0xFFFF_FFFF)


@njit(cache=True, nogil=True)
def number_rows(
    codes: NDArray[np.int64], columns: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The group of each of the `rows`, equal if `codes[row, columns]` are equal, and the first row of each group.

    requires  rows within codes, fewer than 2**31
    cost      O(columns) per row, expected; one cache miss for a new group, two for a known one
    space     the result and 2 to 4 entries of 8 bytes per row
    """
    size = 2
    while size < 2 * len(rows):
        size *= 2
    table = np.full(size, -1, np.int64)  # open addressing: bits of the hash above the group's number, -1 if free
    groups = np.empty(len(rows), np.int32)
    firsts = np.empty(len(rows), np.int64)
    group_count = 0
    for i in range(len(rows)):
        row = rows[i]
        mixed = np.uint64(0)
        for column in columns:
            mixed = (mixed ^ np.uint64(codes[row, column])) * MIX
            mixed ^= mixed >> HALF
        tag = np.int64(mixed >> TAG)
        slot = np.int64(mixed & np.uint64(size - 1))
        while True:
            entry = table[slot]
            if entry < 0:
                table[slot] = (tag << 32) | group_count
                firsts[group_count] = row
                groups[i] = group_count
                group_count += 1
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
            slot = (slot + 1) & (size - 1)
    return groups, firsts[:group_count].copy()
