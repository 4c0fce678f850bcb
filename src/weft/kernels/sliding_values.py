"""Values with weights, many per partial: sorted, and counted over sliding windows.

A point is a value with its weight. The points of partial p are `bounds[p]:bounds[p + 1]`, and those of consecutive
partials are adjacent. `keys` are integers in the order of the values. A weight is added when its partial enters the
window and subtracted when it leaves: weights are integers, so subtraction is exact (SlickDeque, invertible).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Longs = NDArray[np.int64]

BLOCK = 64
"""Ranks per block. Blocks have counts too, so that a search skips whole blocks first."""

SHORT = 24
"""Lists up to this length are sorted by insertion, which allocates nothing."""

BEGIN, END, TOTAL, DISTINCT = 0, 1, 2, 3
"""What a window array holds: the partials `[BEGIN, END)`, their total weight, and the number of distinct values."""


@njit(cache=True, nogil=True)
def _argsort(keys: Longs, begin: int, end: int, order: Longs) -> None:
    """Write the positions of `keys[begin:end]` to `order[begin:end]`, by ascending key."""
    rising = True
    for i in range(begin, end):
        order[i] = i
        if i > begin and keys[i] < keys[i - 1]:
            rising = False
    if rising:
        return
    if end - begin > SHORT:
        order[begin:end] = np.argsort(keys[begin:end]) + begin
        return
    for i in range(begin + 1, end):
        key, j = keys[i], i
        while j > begin and keys[order[j - 1]] > key:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@njit(cache=True, nogil=True)
def sort_and_merge(keys: Longs, weights: Longs, begins: Longs, ends: Longs) -> tuple[Longs, Longs, Longs]:
    """For each run of points `begins[i]:ends[i]`: the distinct keys, ascending, and the total weight of each.

    returns   a position of each distinct key, the weights, and the bounds of each run in both
    requires  runs ascending, without overlap
    cost      O(n log n) in the points of a run, O(n) if they ascend
    space     one copy of the points
    """
    positions, sums = np.empty(len(keys), np.int64), np.empty(len(keys), weights.dtype)
    bounds, order = np.zeros(len(begins) + 1, np.int64), np.empty(len(keys), np.int64)
    distinct = 0
    for run in range(len(begins)):
        begin, end = begins[run], ends[run]
        _argsort(keys, begin, end, order)
        for i in range(begin, end):
            position = order[i]
            if i > begin and keys[position] == keys[order[i - 1]]:
                sums[distinct - 1] += weights[position]
            else:
                positions[distinct], sums[distinct] = position, weights[position]
                distinct += 1
        bounds[run + 1] = distinct
    return positions[:distinct], sums[:distinct], bounds


@njit(cache=True, nogil=True)
def rank(keys: Longs, bounds: Longs, groups: Longs) -> tuple[NDArray[np.int32], Longs, Longs]:
    """The rank of each point among the distinct keys of its group; partials of group g are `groups[g]:groups[g + 1]`.

    returns   the ranks; for each group and rank the position of a point that has it; the bounds of each group in these
    cost      O(n log n) in the points of a group
    """
    ranks, order = np.empty(len(keys), np.int32), np.empty(len(keys), np.int64)
    positions, firsts = np.empty(len(keys), np.int64), np.zeros(len(groups), np.int64)
    distinct = 0
    for g in range(len(groups) - 1):
        begin, end = bounds[groups[g]], bounds[groups[g + 1]]
        _argsort(keys, begin, end, order)
        for i in range(begin, end):
            position = order[i]
            if i == begin or keys[position] != keys[order[i - 1]]:
                positions[distinct] = position
                distinct += 1
            ranks[position] = distinct - 1 - firsts[g]
        firsts[g + 1] = distinct
    return ranks, positions[:distinct], firsts


@njit(cache=True, nogil=True)
def slide_to(
    window: Longs,
    lo: int,
    hi: int,
    ranks: NDArray[np.int32],
    weights: Longs,
    bounds: Longs,
    counts: Longs,
    blocks: Longs,
) -> None:
    """Move the window, and its `counts` and `blocks`, to the partials `lo:hi`; neither end may move back."""
    for i in range(bounds[window[BEGIN]], bounds[min(lo, window[END])]):
        r = ranks[i]
        counts[r] -= weights[i]
        blocks[r // BLOCK] -= weights[i]
        window[TOTAL] -= weights[i]
        if counts[r] == 0:
            window[DISTINCT] -= 1
    for i in range(bounds[max(lo, window[END])], bounds[max(hi, window[END])]):
        r = ranks[i]
        if counts[r] == 0:
            window[DISTINCT] += 1
        counts[r] += weights[i]
        blocks[r // BLOCK] += weights[i]
        window[TOTAL] += weights[i]
    window[BEGIN], window[END] = lo, max(hi, window[END])


@njit(cache=True, nogil=True)
def _rank_at(position: int, counts: Longs, blocks: Longs) -> int:
    """The rank of the value at this position, from 0, among all values of the window in ascending order."""
    block = 0
    while position >= blocks[block]:
        position -= blocks[block]
        block += 1
    r = block * BLOCK
    while position >= counts[r]:
        position -= counts[r]
        r += 1
    return r


@njit(cache=True, nogil=True)
def empty_window(firsts: Longs) -> tuple[Longs, Longs, Longs]:
    """The counts per rank and per block, large enough for any group, and the window array, all 0."""
    most = 1
    for g in range(len(firsts) - 1):
        most = max(most, firsts[g + 1] - firsts[g])
    return np.zeros(most, np.int64), np.zeros(most // BLOCK + 1, np.int64), np.zeros(4, np.int64)


@njit(cache=True, nogil=True)
def slide_quantiles(
    ranks: NDArray[np.int32],
    weights: Longs,
    bounds: Longs,
    firsts: Longs,
    groups: NDArray[np.int32],
    lo: Longs,
    hi: Longs,
    fractions: NDArray[np.float64],
    between: bool,
    descending: bool,
    totals: Longs,
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
) -> None:
    """Write, for each window and fraction, the two distinct values around the fraction's position in the sorted values.

    With `between` the position is `(n - 1) * fraction`, and the two values are those at its floor and at its ceiling.
    Otherwise both are the least value such that at least this fraction of all values is not greater. A window without a
    value has a total of 0. With `descending` positions count from the greatest value.

    requires  lo and hi never decrease, over all groups; windows lie within their group
    cost      O(1) per point that enters or leaves, O(ranks / 64) per fraction
    """
    counts, blocks, window = empty_window(firsts)
    for w in range(len(lo)):
        slide_to(window, lo[w], hi[w], ranks, weights, bounds, counts, blocks)
        total = totals[w] = window[TOTAL]
        if total == 0:
            continue
        first = firsts[groups[w]]
        for f in range(len(fractions)):
            if between:
                position = (total - 1) * fractions[f]
                below, above = int(np.floor(position)), int(np.ceil(position))
            else:
                below = above = min(total, max(1, int(np.ceil(total * fractions[f])))) - 1
            if descending:
                below, above = total - 1 - below, total - 1 - above
            lower[w, f] = first + _rank_at(below, counts, blocks)
            upper[w, f] = lower[w, f] if above == below else first + _rank_at(above, counts, blocks)


@njit(cache=True, nogil=True)
def slide_distinct_counts(
    ranks: NDArray[np.int32],
    weights: Longs,
    bounds: Longs,
    firsts: Longs,
    groups: NDArray[np.int32],
    lo: Longs,
    hi: Longs,
    ordered: Longs,
    limits: Longs,
    out: Longs,
) -> None:
    """Write the number of distinct values of each window; if there are `limits`, of those below the window's limit.

    requires  as `slide_quantiles`; `ordered` are the distinct keys of each group, ascending
    cost      O(1) per point that enters or leaves, O(ranks) per window with a limit
    """
    counts, blocks, window = empty_window(firsts)
    for w in range(len(lo)):
        slide_to(window, lo[w], hi[w], ranks, weights, bounds, counts, blocks)
        out[w] = window[DISTINCT]
        if len(limits) == 0:
            continue
        first, last = firsts[groups[w]], firsts[groups[w] + 1]
        within = np.searchsorted(ordered[first:last], limits[w])
        for r in range(within, last - first):
            if counts[r] > 0:
                out[w] -= 1


@njit(cache=True, nogil=True)
def slide_most_frequent(
    ranks: NDArray[np.int32],
    weights: Longs,
    bounds: Longs,
    firsts: Longs,
    groups: NDArray[np.int32],
    lo: Longs,
    hi: Longs,
    filled: Longs,
    positions: NDArray[np.int64],
    counted: NDArray[np.int64],
) -> None:
    """Write the most frequent values of each window and their counts, at most `positions.shape[1]` of them.

    Of equally frequent values the lesser comes first.

    requires  as `slide_quantiles`
    cost      O(ranks) per window, and O(most) per value that is inserted
    """
    counts, blocks, window = empty_window(firsts)
    most = positions.shape[1]
    for w in range(len(lo)):
        slide_to(window, lo[w], hi[w], ranks, weights, bounds, counts, blocks)
        first, last = firsts[groups[w]], firsts[groups[w] + 1]
        n = 0
        for block in range((last - first - 1) // BLOCK + 1):
            if blocks[block] == 0 or (n == most and blocks[block] <= counted[w, n - 1]):
                continue
            for r in range(block * BLOCK, min((block + 1) * BLOCK, last - first)):
                if counts[r] == 0 or (n == most and counts[r] <= counted[w, n - 1]):
                    continue
                j = min(n, most - 1)
                while j > 0 and counted[w, j - 1] < counts[r]:
                    positions[w, j], counted[w, j] = positions[w, j - 1], counted[w, j - 1]
                    j -= 1
                positions[w, j], counted[w, j] = first + r, counts[r]
                n = min(n + 1, most)
        filled[w] = n


@njit(cache=True, nogil=True)
def slide_distinct_values(
    ranks: NDArray[np.int32],
    weights: Longs,
    bounds: Longs,
    firsts: Longs,
    groups: NDArray[np.int32],
    lo: Longs,
    hi: Longs,
    starts: Longs,
    out: Longs,
) -> None:
    """Write the distinct values of each window to `out[starts[w]:starts[w + 1]]`, ascending.

    requires  as `slide_quantiles`
    cost      O(ranks) per window
    """
    counts, blocks, window = empty_window(firsts)
    for w in range(len(lo)):
        slide_to(window, lo[w], hi[w], ranks, weights, bounds, counts, blocks)
        first, last = firsts[groups[w]], firsts[groups[w] + 1]
        at = starts[w]
        for r in range(last - first):
            if counts[r] > 0:
                out[at] = first + r
                at += 1
