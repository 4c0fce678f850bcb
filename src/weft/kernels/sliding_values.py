"""Values with weights, many to a partial: put in order, and counted over windows that slide.

The points of partial p are `bounds[p]:bounds[p + 1]`, and those of a run of partials lie side by side. `keys` are
integers in the order of the values. Over windows a weight is added when its partial comes in and taken away when it
leaves: weights are whole numbers, so what has left leaves no trace (SlickDeque, invertible).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Longs = NDArray[np.int64]

BLOCK = 64
"""Ranks that are also counted together: a place in the order is found by blocks first."""

SHORT = 24
"""Lists up to this length are sorted by insertion, without memory of their own."""

BEGIN, END, TOTAL, DIFFERENT = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def _order(keys: Longs, begin: int, end: int, order: Longs) -> None:
    """Write to `order[begin:end]` the places of `keys[begin:end]` in ascending order."""
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
def tidy(keys: Longs, weights: Longs, begins: Longs, ends: Longs) -> tuple[Longs, Longs, Longs]:
    """For each run `begins[i]:ends[i]` of points: a place of each different key, ascending, and what it weighs in all.

    returns   places, weights, and the bounds of each run in both
    requires  runs ascending that do not overlap
    cost      O(n log n) in the points of a run, O(n) where they ascend
    space     one copy of the points
    """
    places, sums = np.empty(len(keys), np.int64), np.empty(len(keys), weights.dtype)
    bounds, order = np.zeros(len(begins) + 1, np.int64), np.empty(len(keys), np.int64)
    found = 0
    for run in range(len(begins)):
        begin, end = begins[run], ends[run]
        _order(keys, begin, end, order)
        for i in range(begin, end):
            place = order[i]
            if i > begin and keys[place] == keys[order[i - 1]]:
                sums[found - 1] += weights[place]
            else:
                places[found], sums[found] = place, weights[place]
                found += 1
        bounds[run + 1] = found
    return places[:found], sums[:found], bounds


@njit(cache=True, nogil=True)
def rank(keys: Longs, bounds: Longs, groups: Longs) -> tuple[NDArray[np.int32], Longs, Longs]:
    """The rank of each point among the different keys of its group; partials of group g are `groups[g]:groups[g + 1]`.

    returns   ranks, then for each group and rank the place of a point that has it, and the bounds of each group there
    cost      O(n log n) in the points of a group
    """
    ranks, order = np.empty(len(keys), np.int32), np.empty(len(keys), np.int64)
    places, firsts = np.empty(len(keys), np.int64), np.zeros(len(groups), np.int64)
    found = 0
    for g in range(len(groups) - 1):
        begin, end = bounds[groups[g]], bounds[groups[g + 1]]
        _order(keys, begin, end, order)
        for i in range(begin, end):
            place = order[i]
            if i == begin or keys[place] != keys[order[i - 1]]:
                places[found] = place
                found += 1
            ranks[place] = found - 1 - firsts[g]
        firsts[g + 1] = found
    return ranks, places[:found], firsts


@njit(cache=True, nogil=True)
def shift(
    held: Longs, lo: int, hi: int, ranks: NDArray[np.int32], weights: Longs, bounds: Longs, counts: Longs, blocks: Longs
) -> None:
    """Make `counts` those of the partials `lo:hi`, from those of `held[BEGIN]:held[END]`; neither end ever falls."""
    for i in range(bounds[held[BEGIN]], bounds[min(lo, held[END])]):
        r = ranks[i]
        counts[r] -= weights[i]
        blocks[r // BLOCK] -= weights[i]
        held[TOTAL] -= weights[i]
        if counts[r] == 0:
            held[DIFFERENT] -= 1
    for i in range(bounds[max(lo, held[END])], bounds[max(hi, held[END])]):
        r = ranks[i]
        if counts[r] == 0:
            held[DIFFERENT] += 1
        counts[r] += weights[i]
        blocks[r // BLOCK] += weights[i]
        held[TOTAL] += weights[i]
    held[BEGIN], held[END] = lo, max(hi, held[END])


@njit(cache=True, nogil=True)
def _find(number: int, counts: Longs, blocks: Longs) -> int:
    """The rank of the value that stands at this number, from 0, in the order of all."""
    block = 0
    while number >= blocks[block]:
        number -= blocks[block]
        block += 1
    r = block * BLOCK
    while number >= counts[r]:
        number -= counts[r]
        r += 1
    return r


@njit(cache=True, nogil=True)
def room(firsts: Longs) -> tuple[Longs, Longs, Longs]:
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
    totals: Longs,
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
) -> None:
    """Write, for each window and fraction, which different values stand at and after its place in the order.

    With `between` the place is `(n - 1) * fraction`; else it is that of the least value that so large a fraction of all
    is not above, and both are the same. A window without a value has a total of 0.

    requires  lo and hi never fall, over all groups; windows lie within their group
    cost      O(1) a point that comes or leaves, O(ranks / 64) a fraction
    """
    counts, blocks, held = room(firsts)
    for w in range(len(lo)):
        shift(held, lo[w], hi[w], ranks, weights, bounds, counts, blocks)
        total = totals[w] = held[TOTAL]
        if total == 0:
            continue
        first = firsts[groups[w]]
        for f in range(len(fractions)):
            if between:
                position = (total - 1) * fractions[f]
                below, above = int(np.floor(position)), int(np.ceil(position))
            else:
                below = above = min(total, max(1, int(np.ceil(total * fractions[f])))) - 1
            lower[w, f] = first + _find(below, counts, blocks)
            upper[w, f] = lower[w, f] if above == below else first + _find(above, counts, blocks)


@njit(cache=True, nogil=True)
def slide_different(
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
    """Write how many different values each window holds; where there are `limits`, of those below the window's.

    `ordered` are the different keys of each group. Requires as `slide_quantiles`; O(1) a point, O(ranks) where a limit
    cuts.
    """
    counts, blocks, held = room(firsts)
    for w in range(len(lo)):
        shift(held, lo[w], hi[w], ranks, weights, bounds, counts, blocks)
        out[w] = held[DIFFERENT]
        if len(limits) == 0:
            continue
        first, last = firsts[groups[w]], firsts[groups[w] + 1]
        within = np.searchsorted(ordered[first:last], limits[w])
        for r in range(within, last - first):
            if counts[r] > 0:
                out[w] -= 1


@njit(cache=True, nogil=True)
def slide_common(
    ranks: NDArray[np.int32],
    weights: Longs,
    bounds: Longs,
    firsts: Longs,
    groups: NDArray[np.int32],
    lo: Longs,
    hi: Longs,
    filled: Longs,
    places: NDArray[np.int64],
    counted: NDArray[np.int64],
) -> None:
    """Write the most common values of each window and how often they came, `places.shape[1]` of them at most.

    Of values that are as common the lesser stands first. Requires as `slide_quantiles`; O(ranks) a window.
    """
    counts, blocks, held = room(firsts)
    most = places.shape[1]
    for w in range(len(lo)):
        shift(held, lo[w], hi[w], ranks, weights, bounds, counts, blocks)
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
                    places[w, j], counted[w, j] = places[w, j - 1], counted[w, j - 1]
                    j -= 1
                places[w, j], counted[w, j] = first + r, counts[r]
                n = min(n + 1, most)
        filled[w] = n


@njit(cache=True, nogil=True)
def slide_members(
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
    """Write the different values of each window to `out[starts[w]:starts[w + 1]]`, ascending.

    Requires as `slide_quantiles`; O(ranks) a window.
    """
    counts, blocks, held = room(firsts)
    for w in range(len(lo)):
        shift(held, lo[w], hi[w], ranks, weights, bounds, counts, blocks)
        first, last = firsts[groups[w]], firsts[groups[w] + 1]
        at = starts[w]
        for r in range(last - first):
            if counts[r] > 0:
                out[at] = first + r
                at += 1
