"""A direct-mapped table of partials: what finds another group in its bucket throws that group out."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from weft.aggregates.kind import TableOperation

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SUM = int(TableOperation.SUM)
GREATEST = int(TableOperation.GREATEST)
LEAST = int(TableOperation.LEAST)
ALL_BITS = int(TableOperation.ALL_BITS)
ANY_BIT = int(TableOperation.ANY_BIT)
"""How two values of a column become one, as plain integers for the compiler; what is none of these is ODD_BITS."""

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_STIR = np.uint64(0xBF58476D1CE4E5B9)  # SplitMix64
_HALF = np.uint64(32)


@njit(cache=True, nogil=True)
def throw_in(
    keys: Longs,
    longs: Longs,
    floats: Floats,
    valid: Flags,
    long_ops: Longs,
    float_ops: Longs,
    table_keys: Longs,
    table_longs: Longs,
    table_floats: Floats,
    table_valid: Flags,
    used: Flags,
) -> int:
    """Put each row into the table; what is thrown out takes the place of rows read already, and its number returns.

    requires  a row a group: `keys` (n, k), `longs` (n, i), `floats` (n, f), `valid` (n, i + f), an op a column; the
              table's arrays the same with a row a bucket; 0 stands where nothing is valid
    cost      O(k + i + f) a row
    space     none: `keys[:m]`, `longs[:m]`, `floats[:m]`, `valid[:m]` are what left, in that order
    source    paper 5, section 2; a sum that would leave 64 bits is thrown out too, for Spark to say what that means
    """
    width, whole, real = keys.shape[1], longs.shape[1], floats.shape[1]
    buckets = np.uint64(len(used))
    left = 0
    for row in range(len(keys)):
        mixed = _MIX
        for k in range(width):
            mixed = (mixed ^ np.uint64(keys[row, k])) * _STIR
            mixed ^= mixed >> _HALF
        place = np.int64((mixed * _MIX >> _HALF) * buckets >> _HALF)
        if used[place]:
            same = True
            for k in range(width):
                if table_keys[place, k] != keys[row, k]:
                    same = False
                    break
            if same:
                for i in range(whole):
                    if long_ops[i] == SUM and valid[row, i] and table_valid[place, i]:
                        one, other = table_longs[place, i], longs[row, i]
                        total = one + other
                        if ((one ^ total) & (other ^ total)) < 0:
                            same = False
                            break
            if same:
                _merge(row, place, longs, floats, valid, long_ops, float_ops, table_longs, table_floats, table_valid)
                continue
            # A row is read before the first that it could overwrite: never more leave than came.
            for k in range(width):
                one = table_keys[place, k]
                table_keys[place, k] = keys[row, k]
                keys[left, k] = one
            for i in range(whole):
                one = table_longs[place, i]
                table_longs[place, i] = longs[row, i]
                longs[left, i] = one
            for f in range(real):
                was = table_floats[place, f]
                table_floats[place, f] = floats[row, f]
                floats[left, f] = was
            for v in range(whole + real):
                there = table_valid[place, v]
                table_valid[place, v] = valid[row, v]
                valid[left, v] = there
            left += 1
            continue
        used[place] = True
        for k in range(width):
            table_keys[place, k] = keys[row, k]
        for i in range(whole):
            table_longs[place, i] = longs[row, i]
        for f in range(real):
            table_floats[place, f] = floats[row, f]
        for v in range(whole + real):
            table_valid[place, v] = valid[row, v]
    return left


@njit(cache=True, nogil=True)
def _merge(
    row: int,
    place: int,
    longs: Longs,
    floats: Floats,
    valid: Flags,
    long_ops: Longs,
    float_ops: Longs,
    table_longs: Longs,
    table_floats: Floats,
    table_valid: Flags,
) -> None:
    whole = longs.shape[1]
    for i in range(whole):
        if not valid[row, i]:
            continue
        new = longs[row, i]
        if not table_valid[place, i]:
            table_valid[place, i] = True
            table_longs[place, i] = new
            continue
        old, op = table_longs[place, i], long_ops[i]
        if op == SUM:
            table_longs[place, i] = old + new
        elif op == GREATEST:
            table_longs[place, i] = max(old, new)
        elif op == LEAST:
            table_longs[place, i] = min(old, new)
        elif op == ALL_BITS:
            table_longs[place, i] = old & new
        elif op == ANY_BIT:
            table_longs[place, i] = old | new
        else:
            table_longs[place, i] = old ^ new
    for f in range(floats.shape[1]):
        if not valid[row, whole + f]:
            continue
        value = floats[row, f]
        if not table_valid[place, whole + f]:
            table_valid[place, whole + f] = True
            table_floats[place, f] = value
            continue
        before = table_floats[place, f]
        if float_ops[f] == SUM:
            table_floats[place, f] = before + value
        elif float_ops[f] == GREATEST:
            # NaN is the greatest, as Spark has it.
            if not np.isnan(before) and (np.isnan(value) or value > before):
                table_floats[place, f] = value
        elif np.isnan(before) or value < before:
            table_floats[place, f] = value
