"""Which windows of a query hold a partial, and where their partials lie.

The partials of group g are `offsets[g]:offsets[g + 1]`, by ascending slice; equal slices may repeat. Window k covers
`[offset + k * slide, offset + k * slide + length)`. A window without a partial of the group has no answer. A gap
of years costs as much as a gap of one slide, because the next partial determines the next window.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True, error_model="numpy")
def count_windows(
    slices: NDArray[np.int64],
    offsets: NDArray[np.int64],
    length: int,
    slide: int,
    offset: int,
    k_low: int,
    k_high: int,
) -> NDArray[np.int64]:
    """Count, for each group, the windows k in `[k_low, k_high]` that hold at least one of its partials.

    requires  slices ascending within a group; slide and length positive; times plus or minus a window fit 64 bits
    cost      O(1) per partial, divisions only if a slide is skipped
    space     the result
    """
    groups = len(offsets) - 1
    counts = np.zeros(groups, np.int64)
    for g in range(groups):
        first, last = offsets[g], offsets[g + 1]
        if first == last:
            continue
        count = 0
        # All windows before `following` are counted or empty.
        following = max(k_low, (slices[first] - offset - length) // slide + 1)
        if following > min(k_high, (slices[last - 1] - offset) // slide):
            continue
        begin = offset + following * slide
        for i in range(first, last):
            time = slices[i]
            if time < begin:
                continue  # its windows are those of an earlier partial
            newest = following if time < begin + slide else (time - offset) // slide
            oldest = following if time < begin + length else (time - offset - length) // slide + 1
            if newest >= k_high:
                count += max(0, k_high - oldest + 1)
                break
            count += max(0, newest - oldest + 1)
            following = newest + 1
            begin = offset + following * slide
        counts[g] = count
    return counts


@njit(cache=True, nogil=True, error_model="numpy")
def fill_windows(
    slices: NDArray[np.int64],
    offsets: NDArray[np.int64],
    length: int,
    slide: int,
    offset: int,
    k_low: int,
    k_high: int,
    starts: NDArray[np.int64],
    group_out: NDArray[np.int32],
    k_out: NDArray[np.int64],
    lo_out: NDArray[np.int64],
    hi_out: NDArray[np.int64],
) -> None:
    """Write group, k and partials `[lo, hi)` of each window that `count_windows` counted, by group, then by k.

    requires  as `count_windows`; the outputs of group g are `starts[g]:starts[g + 1]`
    cost      O(1) per partial and per answer, however long the gaps between them
    space     none
    """
    for g in range(len(offsets) - 1):
        at, until = starts[g], starts[g + 1]
        if at == until:
            continue
        last = offsets[g + 1]
        lo = hi = offsets[g]
        k = max(k_low, (slices[lo] - offset - length) // slide + 1)
        while at < until:
            begin = offset + k * slide
            end = begin + length
            while slices[lo] < begin:
                lo += 1
            if slices[lo] >= end:
                k = (slices[lo] - offset - length) // slide + 1  # greater than k: this window ends before the partial
                continue
            while hi < last and slices[hi] < end:
                hi += 1
            group_out[at] = g
            k_out[at] = k
            lo_out[at] = lo
            hi_out[at] = hi
            at += 1
            k += 1


@njit(cache=True, nogil=True, error_model="numpy")
def locate_windows(
    slices: NDArray[np.int64],
    offsets: NDArray[np.int64],
    groups: NDArray[np.int32],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The partials `[lo, hi)` of single windows, each given by its group, begin and end.

    requires  slices ascending within a group
    cost      O(log n) per window, n the partials of its group
    space     the result
    """
    lo = np.empty(len(groups), np.int64)
    hi = np.empty(len(groups), np.int64)
    for i in range(len(groups)):
        first, last = offsets[groups[i]], offsets[groups[i] + 1]
        group_slices = slices[first:last]
        lo[i] = first + np.searchsorted(group_slices, begins[i])
        hi[i] = first + np.searchsorted(group_slices, ends[i])
    return lo, hi
