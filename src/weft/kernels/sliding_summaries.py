"""Values with weights over windows that slide, told in few: a histogram, or those with the greatest sums.

Points, partials, ranks and bounds are those of `synopses`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from weft.kernels.sliding_values import room, shift

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

NO_GAP = np.inf
WIDEST_GAP = 1.7976931348623157e308
"""Between bins that both are there: what lies between infinities, or beside NaN, is so far apart."""


@njit(cache=True, nogil=True)
def _set_gap(gaps: Floats, at: int, gap: float) -> None:
    """Write a gap to its leaf, and the least of each pair up to the root."""
    at += len(gaps) // 2
    gaps[at] = gap
    while at > 1:
        at //= 2
        gaps[at] = min(gaps[2 * at], gaps[2 * at + 1])


@njit(cache=True, nogil=True)
def _gap(middles: Floats, lower: int, upper: int) -> float:
    gap = middles[upper] - middles[lower]
    return gap if gap <= WIDEST_GAP else WIDEST_GAP


@njit(cache=True, nogil=True)
def join_bins(middles: Floats, heights: Floats, most: int) -> int:
    """Make one of the two bins that are nearest, the lower ones of such, until there are `most`; returns how many.

    The middle of a bin is the mean of its values, its height how many they are. Bins are written to the beginning of
    both arrays, ascending.

    requires  middles ascending, heights above 0, most at least 1
    cost      O(n log n)
    space     4 n
    """
    count = len(middles)
    if count <= most:
        return count
    leaves = 1
    while leaves < count:
        leaves *= 2
    # A tournament: gaps[leaves + i] lies between bin i and the next, and parents hold the least of two.
    gaps = np.full(2 * leaves, NO_GAP)
    after, before = np.arange(1, count + 1), np.arange(-1, count - 1)
    for i in range(count - 1):
        gaps[leaves + i] = _gap(middles, i, i + 1)
    for i in range(leaves - 1, 0, -1):
        gaps[i] = min(gaps[2 * i], gaps[2 * i + 1])
    for _ in range(count - most):
        at = 1
        while at < leaves:
            at = 2 * at if gaps[2 * at] <= gaps[2 * at + 1] else 2 * at + 1
        lower = at - leaves
        upper = after[lower]
        heights[lower] += heights[upper]
        middles[lower] += (middles[upper] - middles[lower]) * (heights[upper] / heights[lower])
        after[lower] = after[upper]
        _set_gap(gaps, upper, NO_GAP)
        if after[lower] < count:
            before[after[lower]] = lower
            _set_gap(gaps, lower, _gap(middles, lower, after[lower]))
        else:
            _set_gap(gaps, lower, NO_GAP)
        if before[lower] >= 0:
            _set_gap(gaps, before[lower], _gap(middles, before[lower], lower))
    found, at = 0, 0
    while at < count:
        middles[found], heights[found] = middles[at], heights[at]
        found, at = found + 1, after[at]
    return found


@njit(cache=True, nogil=True)
def slide_bins(
    ranks: NDArray[np.int32],
    weights: Longs,
    bounds: Longs,
    firsts: Longs,
    groups: NDArray[np.int32],
    lo: Longs,
    hi: Longs,
    values: Floats,
    filled: Longs,
    middles: Floats,
    heights: Floats,
) -> None:
    """Write the values of each window as bins, `middles.shape[1]` of them at most.

    `values` are the different ones of each group. Requires as `slide_quantiles`; O(ranks log ranks) a window.
    """
    counts, blocks, held = room(firsts)
    some, many = np.empty(len(counts)), np.empty(len(counts))
    for w in range(len(lo)):
        shift(held, lo[w], hi[w], ranks, weights, bounds, counts, blocks)
        first, last = firsts[groups[w]], firsts[groups[w] + 1]
        n = 0
        for r in range(last - first):
            if counts[r] > 0:
                some[n], many[n] = values[first + r], counts[r]
                n += 1
        filled[w] = join_bins(some[:n], many[:n], middles.shape[1])
        for i in range(filled[w]):
            middles[w, i], heights[w, i] = some[i], many[i]


@njit(cache=True, nogil=True)
def _above(one: float, other: float) -> bool:
    """NaN is above all numbers."""
    return one > other or (one != one and other == other)


@njit(cache=True, nogil=True)
def slide_sums(
    ranks: NDArray[np.int32],
    weights: NDArray[np.float64],
    bounds: Longs,
    firsts: Longs,
    groups: NDArray[np.int32],
    lo: Longs,
    hi: Longs,
    inverts: bool,
    filled: Longs,
    places: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Write the values of each window whose weights add up to the most, and the sums, `places.shape[1]` at most.

    Of equal sums the lesser value stands first. Weights are whole numbers, which are taken away when they leave
    (`inverts`), or floats, which are added up anew for each window: what has left must leave no trace.

    requires  as `slide_quantiles`
    cost      O(1) a point that comes or leaves, or that is in a window where nothing is taken away; O(ranks) a window
    """
    slices = room(firsts)[0]  # how many points of each rank are in the window: a sum of 0 is a sum
    totals = np.zeros(len(slices), weights.dtype)
    begin = end = 0
    most = places.shape[1]
    for w in range(len(lo)):
        for i in range(bounds[begin], bounds[min(lo[w], end) if inverts else end]):
            slices[ranks[i]] -= 1
            totals[ranks[i]] = totals[ranks[i]] - weights[i] if inverts else 0
        first_new = max(lo[w], end) if inverts else lo[w]
        for i in range(bounds[first_new], bounds[max(hi[w], first_new)]):
            slices[ranks[i]] += 1
            totals[ranks[i]] += weights[i]
        begin, end = lo[w], max(hi[w], end)
        first, n = firsts[groups[w]], 0
        for r in range(firsts[groups[w] + 1] - first):
            if slices[r] == 0 or (n == most and not _above(totals[r], sums[w, n - 1])):
                continue
            j = min(n, most - 1)
            while j > 0 and _above(totals[r], sums[w, j - 1]):
                places[w, j], sums[w, j] = places[w, j - 1], sums[w, j - 1]
                j -= 1
            places[w, j], sums[w, j] = first + r, totals[r]
            n = min(n + 1, most)
        filled[w] = n
