"""Summaries of values with weights over sliding windows: histograms, and the values with the greatest sums.

Points, partials, ranks and bounds are those of `sliding_values`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from weft.kernels.sliding_values import empty_window, slide_to

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

NO_GAP = np.inf
WIDEST_GAP = 1.7976931348623157e308
"""The gap between two bins of which one is infinite or NaN: wider than any other, but below NO_GAP."""


@njit(cache=True, nogil=True)
def _set_gap(gaps: Floats, at: int, gap: float) -> None:
    """Write a gap to its leaf, and the lesser of each pair up to the root."""
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
    """Merge the two nearest bins until there are at most `most`; returns the number of bins.

    Of equally near pairs the lowest is merged. The middle of a bin is the mean of its values, its height is their
    number. The bins are written to the beginning of both arrays, ascending.

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
    # A tournament tree: gaps[leaves + i] is the gap between bin i and the next; a parent holds the lesser of two gaps.
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
    written, at = 0, 0
    while at < count:
        middles[written], heights[written] = middles[at], heights[at]
        written, at = written + 1, after[at]
    return written


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
    """Write the values of each window as bins, at most `middles.shape[1]` of them.

    requires  as `slide_quantiles`; `values` are the distinct values of each group, ascending
    cost      O(ranks log ranks) per window
    """
    counts, blocks, window = empty_window(firsts)
    window_middles, window_heights = np.empty(len(counts)), np.empty(len(counts))
    for w in range(len(lo)):
        slide_to(window, lo[w], hi[w], ranks, weights, bounds, counts, blocks)
        first, last = firsts[groups[w]], firsts[groups[w] + 1]
        n = 0
        for r in range(last - first):
            if counts[r] > 0:
                window_middles[n], window_heights[n] = values[first + r], counts[r]
                n += 1
        filled[w] = join_bins(window_middles[:n], window_heights[:n], middles.shape[1])
        for i in range(filled[w]):
            middles[w, i], heights[w, i] = window_middles[i], window_heights[i]


@njit(cache=True, nogil=True)
def _above(one: float, other: float) -> bool:
    """Whether one is greater than the other; NaN is greater than all numbers."""
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
    positions: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Write the values of each window with the greatest sums of weights, and the sums, at most `positions.shape[1]`.

    Of equal sums the lesser value comes first. Integer weights are subtracted when they leave (`inverts`). Floats are
    added up again for each window, because subtracting them is not exact.

    requires  as `slide_quantiles`
    cost      O(1) per point that enters or leaves, without `inverts` per point of each window; O(ranks) per window
    """
    point_counts = empty_window(firsts)[0]  # points of each rank in the window: a value with points may have a sum of 0
    totals = np.zeros(len(point_counts), weights.dtype)
    begin = end = 0
    most = positions.shape[1]
    for w in range(len(lo)):
        for i in range(bounds[begin], bounds[min(lo[w], end) if inverts else end]):
            point_counts[ranks[i]] -= 1
            totals[ranks[i]] = totals[ranks[i]] - weights[i] if inverts else 0
        first_new = max(lo[w], end) if inverts else lo[w]
        for i in range(bounds[first_new], bounds[max(hi[w], first_new)]):
            point_counts[ranks[i]] += 1
            totals[ranks[i]] += weights[i]
        begin, end = lo[w], max(hi[w], end)
        first, n = firsts[groups[w]], 0
        for r in range(firsts[groups[w] + 1] - first):
            if point_counts[r] == 0 or (n == most and not _above(totals[r], sums[w, n - 1])):
                continue
            j = min(n, most - 1)
            while j > 0 and _above(totals[r], sums[w, j - 1]):
                positions[w, j], sums[w, j] = positions[w, j - 1], sums[w, j - 1]
                j -= 1
            positions[w, j], sums[w, j] = first + r, totals[r]
            n = min(n + 1, most)
        filled[w] = n
