"""A direct-mapped hash table of partials: a group evicts another group that is in its bucket."""

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
"""How two values of a column become one, as plain integers for the compiler; any other number is ODD_BITS."""

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_STIR = np.uint64(0xBF58476D1CE4E5B9)  # SplitMix64
_HALF = np.uint64(32)


@njit(cache=True, nogil=True)
def insert_rows(
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
    """Put each row into the table; returns m, the number of evicted groups, which overwrite the first m rows.

    One loop: what a row finds in its bucket depends on all rows before it.

    requires  one partial per row: `keys` (n, k), `longs` (n, i), `floats` (n, f), `valid` (n, i + f), one op per
              column; the table's arrays the same with one row per bucket; 0 where a value is not valid
    cost      O(k + i + f) per row
    space     none: the evicted groups are `keys[:m]`, `longs[:m]`, `floats[:m]`, `valid[:m]`, in the order of eviction
    source    paper 5, section 2; a group whose sum would overflow 64 bits is evicted too: Spark handles the overflow
    """
    width, long_count, float_count = keys.shape[1], longs.shape[1], floats.shape[1]
    buckets = np.uint64(len(used))
    evicted = 0
    for row in range(len(keys)):
        mixed = _MIX
        for k in range(width):
            mixed = (mixed ^ np.uint64(keys[row, k])) * _STIR
            mixed ^= mixed >> _HALF
        bucket = np.int64((mixed * _MIX >> _HALF) * buckets >> _HALF)
        if used[bucket]:
            same = True
            for k in range(width):
                if table_keys[bucket, k] != keys[row, k]:
                    same = False
                    break
            if same:
                for i in range(long_count):
                    if long_ops[i] == SUM and valid[row, i] and table_valid[bucket, i]:
                        old, new = table_longs[bucket, i], longs[row, i]
                        total = old + new
                        if ((old ^ total) & (new ^ total)) < 0:
                            same = False
                            break
            if same:
                _merge(row, bucket, longs, floats, valid, long_ops, float_ops, table_longs, table_floats, table_valid)
                continue
            # At most one group is evicted per row, so only rows that are read already are overwritten.
            for k in range(width):
                old = table_keys[bucket, k]
                table_keys[bucket, k] = keys[row, k]
                keys[evicted, k] = old
            for i in range(long_count):
                old = table_longs[bucket, i]
                table_longs[bucket, i] = longs[row, i]
                longs[evicted, i] = old
            for f in range(float_count):
                old_float = table_floats[bucket, f]
                table_floats[bucket, f] = floats[row, f]
                floats[evicted, f] = old_float
            for v in range(long_count + float_count):
                old_valid = table_valid[bucket, v]
                table_valid[bucket, v] = valid[row, v]
                valid[evicted, v] = old_valid
            evicted += 1
            continue
        used[bucket] = True
        for k in range(width):
            table_keys[bucket, k] = keys[row, k]
        for i in range(long_count):
            table_longs[bucket, i] = longs[row, i]
        for f in range(float_count):
            table_floats[bucket, f] = floats[row, f]
        for v in range(long_count + float_count):
            table_valid[bucket, v] = valid[row, v]
    return evicted


@njit(cache=True, nogil=True)
def _merge(
    row: int,
    bucket: int,
    longs: Longs,
    floats: Floats,
    valid: Flags,
    long_ops: Longs,
    float_ops: Longs,
    table_longs: Longs,
    table_floats: Floats,
    table_valid: Flags,
) -> None:
    long_count = longs.shape[1]
    for i in range(long_count):
        if not valid[row, i]:
            continue
        new = longs[row, i]
        if not table_valid[bucket, i]:
            table_valid[bucket, i] = True
            table_longs[bucket, i] = new
            continue
        old, op = table_longs[bucket, i], long_ops[i]
        if op == SUM:
            table_longs[bucket, i] = old + new
        elif op == GREATEST:
            table_longs[bucket, i] = max(old, new)
        elif op == LEAST:
            table_longs[bucket, i] = min(old, new)
        elif op == ALL_BITS:
            table_longs[bucket, i] = old & new
        elif op == ANY_BIT:
            table_longs[bucket, i] = old | new
        else:
            table_longs[bucket, i] = old ^ new
    for f in range(floats.shape[1]):
        if not valid[row, long_count + f]:
            continue
        value = floats[row, f]
        if not table_valid[bucket, long_count + f]:
            table_valid[bucket, long_count + f] = True
            table_floats[bucket, f] = value
            continue
        before = table_floats[bucket, f]
        if float_ops[f] == SUM:
            table_floats[bucket, f] = before + value
        elif float_ops[f] == GREATEST:
            # NaN is the greatest value, as in Spark.
            if not np.isnan(before) and (np.isnan(value) or value > before):
                table_floats[bucket, f] = value
        elif np.isnan(before) or value < before:
            table_floats[bucket, f] = value
