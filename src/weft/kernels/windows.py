"""Which windows of a query hold a partial, and where their partials lie.

The partials of group g are `offsets[g]:offsets[g + 1]`, by ascending slice; equal slices may repeat. Window k covers
`[offset + k * slide, offset + k * slide + length)`. A window without a partial of the group has no answer, and a gap of
years costs as much as a gap of one slide: the next partial says which window comes next.
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

    requires  slices ascending within a group; slide and length positive; times, and times a window apart, fit 64 bits
    cost      O(1) a partial, divisions only where a slide is skipped
    space     the result
    """
    groups = len(offsets) - 1
    counts = np.zeros(groups, np.int64)
    for g in range(groups):
        first, last = offsets[g], offsets[g + 1]
        if first == last:
            continue
        count = 0
        following = max(k_low, (slices[first] - offset - length) // slide + 1)  # every window before it is decided
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

    requires  as `count_windows`; starts[g]:starts[g + 1] are the places of group g in the outputs
    cost      O(1) a partial and an answer, whatever lies between them
    space     none
    """
    for g in range(len(offsets) - 1):
        place, until = starts[g], starts[g + 1]
        if place == until:
            continue
        last = offsets[g + 1]
        lo = hi = offsets[g]
        k = max(k_low, (slices[lo] - offset - length) // slide + 1)
        while place < until:
            begin = offset + k * slide
            end = begin + length
            while slices[lo] < begin:
                lo += 1
            if slices[lo] >= end:
                k = (slices[lo] - offset - length) // slide + 1  # greater than k: this window ends before the partial
                continue
            while hi < last and slices[hi] < end:
                hi += 1
            group_out[place] = g
            k_out[place] = k
            lo_out[place] = lo
            hi_out[place] = hi
            place += 1
            k += 1


@njit(cache=True, nogil=True, error_model="numpy")
def locate_windows(
    slices: NDArray[np.int64],
    offsets: NDArray[np.int64],
    groups: NDArray[np.int32],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the partials `[lo, hi)` of single windows lie, each named by its group, begin and end.

    requires  slices ascending within a group
    cost      O(log n) a window, n the partials of its group
    space     the result
    """
    lo = np.empty(len(groups), np.int64)
    hi = np.empty(len(groups), np.int64)
    for i in range(len(groups)):
        first, last = offsets[groups[i]], offsets[groups[i] + 1]
        mine = slices[first:last]
        lo[i] = first + np.searchsorted(mine, begins[i])
        hi[i] = first + np.searchsorted(mine, ends[i])
    return lo, hi
