"""Partials in the order of (group, slice), and the slice of each time."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

DISTINCT_LIMIT = 1 << 15
"""Above this many distinct slices the table that ranks them leaves the cache, and a comparison sort is as fast."""

SLOTS = 4 * DISTINCT_LIMIT
MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads multiples of a slide over the slots
SHIFT = np.uint64(64 - SLOTS.bit_length() + 1)

GREATEST = np.int64(0x7FFF_FFFF_FFFF_FFFF)
LEAST = np.int64(-0x8000_0000_0000_0000)
NOT_A_NUMBER = np.int64(0x7FF8_0000_0000_0000)
"""The bits that stand for every NaN: there are many, and Spark treats them as equal."""


def sort_order(groups: NDArray[np.int32], slices: NDArray[np.int64], group_count: int) -> NDArray[np.int64]:
    """The stable permutation that sorts partials by (group, slice).

    requires  0 <= groups < group_count
    cost      O(n) up to `DISTINCT_LIMIT` distinct slices, else O(n log n); one pass if all is sorted already, two if
              each group is
    space     four arrays of n
    """
    if is_sorted(groups, slices):
        return np.arange(len(slices))
    if is_sorted_by_group(groups, slices, group_count):
        in_groups: NDArray[np.int64] = counting_order(groups, np.arange(len(slices)), group_count)
        return in_groups
    distinct, ranks = rank_slices(slices)
    if len(distinct) > DISTINCT_LIMIT:
        by_slice = np.argsort(slices, kind="stable")
    else:
        by_slice = counting_order(ranks_in_time(distinct)[ranks], np.arange(len(slices)), len(distinct))
    order: NDArray[np.int64] = counting_order(groups, by_slice, group_count)
    return order


def ranks_in_time(distinct: NDArray[np.int64]) -> NDArray[np.int32]:
    """For each of the distinct slices, how many are before it."""
    ranks = np.empty(len(distinct), np.int32)
    ranks[np.argsort(distinct)] = np.arange(len(distinct), dtype=np.int32)
    return ranks


@njit(cache=True, nogil=True)
def is_sorted(groups: NDArray[np.int32], slices: NDArray[np.int64]) -> bool:
    """Whether partials are sorted by (group, slice).

    requires  arrays of one length
    cost      O(n), less if the first disorder comes early
    space     none
    """
    for i in range(1, len(slices)):
        if groups[i] < groups[i - 1] or (groups[i] == groups[i - 1] and slices[i] < slices[i - 1]):
            return False
    return True


@njit(cache=True, nogil=True)
def is_sorted_by_group(groups: NDArray[np.int32], slices: NDArray[np.int64], group_count: int) -> bool:
    """Whether the slices of each group ascend, as they do if partials are in the order of batches.

    requires  0 <= groups < group_count
    cost      O(n + group_count), less if the first disorder comes early
    space     group_count
    """
    newest = np.full(group_count, LEAST)
    for i in range(len(slices)):
        if slices[i] < newest[groups[i]]:
            return False
        newest[groups[i]] = slices[i]
    return True


@njit(cache=True, nogil=True)
def rank_slices(slices: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The distinct slices in the order of first occurrence, and for each partial the position of its slice there.

    requires  nothing; stops when there are more than `DISTINCT_LIMIT` distinct slices
    cost      O(1) per partial
    space     a fixed hash table and n ranks
    """
    slots = np.full(SLOTS, -1, np.int32)  # open addressing: positions in `distinct`, -1 where free
    distinct = np.empty(DISTINCT_LIMIT + 1, np.int64)
    ranks = np.empty(len(slices), np.int32)
    distinct_count = 0
    rank = np.int32(-1)
    for i in range(len(slices)):
        time = slices[i]
        if rank >= 0 and distinct[rank] == time:
            ranks[i] = rank
            continue
        slot = np.int64((np.uint64(time) * MIX) >> SHIFT)
        rank = slots[slot]
        while rank >= 0 and distinct[rank] != time:
            slot = (slot + 1) & (SLOTS - 1)
            rank = slots[slot]
        if rank < 0:
            rank = np.int32(distinct_count)
            slots[slot] = rank
            distinct[distinct_count] = time
            distinct_count += 1
            if distinct_count > DISTINCT_LIMIT:
                break
        ranks[i] = rank
    return distinct[:distinct_count].copy(), ranks


@njit(cache=True, nogil=True)
def counting_order(keys: NDArray[np.int32], order: NDArray[np.int64], key_count: int) -> NDArray[np.int64]:
    """`order` sorted by `keys[order]`, stable.

    requires  0 <= keys < key_count; order a permutation
    cost      O(n + key_count)
    space     the result and key_count
    """
    next_positions = group_offsets(keys, key_count)
    result = np.empty(len(order), np.int64)
    for i in order:
        key = keys[i]
        result[next_positions[key]] = i
        next_positions[key] += 1
    return result


@njit(cache=True, nogil=True)
def group_offsets(groups: NDArray[np.int32], group_count: int) -> NDArray[np.int64]:
    """Where each group begins when partials are sorted by group, and at the end their number.

    requires  0 <= groups < group_count
    cost      O(n + group_count)
    space     the result
    """
    offsets = np.zeros(group_count + 1, np.int64)
    for group in groups:
        offsets[group + 1] += 1
    for g in range(group_count):
        offsets[g + 1] += offsets[g]
    return offsets


@njit(cache=True, nogil=True)
def merge_order(
    groups_a: NDArray[np.int32],
    slices_a: NDArray[np.int64],
    groups_b: NDArray[np.int32],
    slices_b: NDArray[np.int64],
    group_count: int,
) -> NDArray[np.int64]:
    """The permutation of `a` followed by `b` that sorts both by (group, slice), a before b if they are equal.

    requires  a and b each sorted by (group, slice); 0 <= groups < group_count
    cost      O(n + group_count), without a comparison for groups where b is newer than a
    space     the result and two arrays of group_count
    """
    begins_a, begins_b = group_offsets(groups_a, group_count), group_offsets(groups_b, group_count)
    shift = len(slices_a)
    order = np.empty(shift + len(slices_b), np.int64)
    at = 0
    for g in range(group_count):
        i, until_i = begins_a[g], begins_a[g + 1]
        j, until_j = begins_b[g], begins_b[g + 1]
        if i < until_i and j < until_j and slices_b[j] < slices_a[until_i - 1]:
            while i < until_i and j < until_j:
                if slices_b[j] < slices_a[i]:
                    order[at] = shift + j
                    j += 1
                else:
                    order[at] = i
                    i += 1
                at += 1
        for rest in range(i, until_i):
            order[at] = rest
            at += 1
        for rest in range(j, until_j):
            order[at] = shift + rest
            at += 1
    return order


@njit(cache=True, nogil=True, error_model="numpy")
def floor_edges(times: NDArray[np.int64], slides: NDArray[np.int64], shifts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The greatest edge not after each time, over the classes with edges at `shifts[c] + k * slides[c]`.

    requires  at least one class; slides positive; a slide around each time fits 64 bits
    cost      O(classes) per time, O(1) if the previous time is in the same slice
    space     the result
    """
    edges = np.empty(len(times), np.int64)
    edge, following = np.int64(0), np.int64(0)  # the slice of the previous time is [edge, following); empty at first
    for i in range(len(times)):
        time = times[i]
        if not edge <= time < following:
            since, until = slides[0], slides[0]
            for c in range(len(slides)):
                past = (time - shifts[c]) % slides[c]
                since = min(since, past) if c else past
                until = min(until, slides[c] - past) if c else slides[c] - past
            edge, following = time - since, time + until
        edges[i] = edge
    return edges


@njit(cache=True, nogil=True)
def float_keys(values: NDArray[np.float64], turned: bool) -> NDArray[np.int64]:
    """Integers in the order of the floats: -0.0 just below 0.0, NaN above all; reversed if `turned`.

    requires  nothing
    cost      one pass
    space     the result
    """
    bits = values.view(np.int64)
    keys = np.empty(len(values), np.int64)
    turn = np.int64(-1) if turned else np.int64(0)
    for i in range(len(values)):
        # The bits of floats ascend with their values once the bits of negative floats are inverted.
        key = bits[i] ^ ((bits[i] >> 63) & GREATEST)
        keys[i] = (NOT_A_NUMBER if values[i] != values[i] else key) ^ turn
    return keys


@njit(cache=True, nogil=True)
def key_floats(keys: NDArray[np.int64], turned: bool) -> NDArray[np.float64]:
    """The inverse of `float_keys`.

    requires  keys of `float_keys`
    cost      one pass
    space     the result
    """
    bits = np.empty(len(keys), np.int64)
    turn = np.int64(-1) if turned else np.int64(0)
    for i in range(len(keys)):
        key = keys[i] ^ turn
        bits[i] = key ^ ((key >> 63) & GREATEST)
    return bits.view(np.float64)
