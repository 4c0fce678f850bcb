"""Classes of edges that depend on each other: their pairs, and a bound for what three classes can add.

A slide is `inner * outer`: `inner` divides one base period, and time modulo the base is known. A class that is *active*
there has an edge with probability `1 / outer`. Classes whose outer parts share no factor are independent (Chinese
remainders); this module handles the others. Classes with the same outer part and the same residue there have the same
edges wherever both are active: they form a *group*, and share its number. `weft.optimizer.edge_counting.interval`
explains why these sums are bounds.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def _gcd(a: np.int64, b: np.int64) -> np.int64:
    while b:
        a, b = b, a % b
    return a


@njit(cache=True, nogil=True)
def dependent_pairs(shifts: Ints, inner: Ints, outer: Ints, groups: Ints) -> tuple[Ints, Ints]:
    """Pairs `(i, j)`, j < i, of different groups, with a common factor in `outer`, both active somewhere; i ascending.

    requires  slides below 2**31; groups ascending
    cost      O(classes ** 2)
    """
    room, size = 1024, 0
    left, right = np.empty(room, np.int64), np.empty(room, np.int64)
    for i in range(len(shifts)):
        for j in range(i):
            if groups[i] == groups[j] or _gcd(outer[i], outer[j]) == 1:
                continue
            if (shifts[i] - shifts[j]) % _gcd(inner[i], inner[j]):
                continue
            if size == room:
                room *= 2
                more_left, more_right = np.empty(room, np.int64), np.empty(room, np.int64)
                more_left[:size], more_right[:size] = left, right
                left, right = more_left, more_right
            left[size], right[size] = i, j
            size += 1
    return left[:size], right[:size]


@njit(cache=True, nogil=True)
def weigh_pairs(left: Ints, right: Ints, shifts: Ints, inner: Ints, outer: Ints) -> tuple[Ints, Ints, Floats, Floats]:
    """Per pair: where it is active, as period and shift; the probability of a common edge; the same if independent.

    requires  periods within int64
    """
    periods, at = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    both, independent = np.zeros(len(left)), np.empty(len(left))
    for k in range(len(left)):
        i, j = left[k], right[k]
        common = _gcd(inner[i], inner[j])
        periods[k] = inner[i] // common * inner[j]
        x, wanted = shifts[i] % inner[i], shifts[j] % inner[j]
        while x % inner[j] != wanted:
            x += inner[i]
        at[k] = x
        independent[k] = 1.0 / (float(outer[i]) * float(outer[j]))
        slides = _gcd(inner[i] * outer[i], inner[j] * outer[j])
        if (shifts[i] - shifts[j]) % slides == 0:
            both[k] = slides / common * independent[k]
    return periods, at, both, independent


@njit(cache=True, nogil=True)
def _inverse(number: np.int64, modulus: np.int64) -> np.int64:
    """The inverse of a number that shares no factor with the modulus; 0 where the modulus is 1."""
    rest, last, x, y = number % modulus, modulus, np.int64(1), np.int64(0)
    while rest > 1:
        times = last // rest
        last, rest = rest, last - times * rest
        y, x = x, y - times * x
    return x % modulus


@njit(cache=True, nogil=True)
def _meet_at(slide: np.int64, shift: np.int64, other_slide: np.int64, other_shift: np.int64) -> np.int64:
    """A common edge of two classes that have one, below the period of both together.

    requires  slides below 2**31
    """
    common = _gcd(slide, other_slide)
    steps = other_slide // common
    step: np.int64 = (other_shift - shift) // common % steps * _inverse(slide // common, steps) % steps
    edge: np.int64 = shift + slide * step
    return edge


@njit(cache=True, nogil=True)
def _any_of(slides: Ints, shifts: Ints, count: int) -> float:
    """At most the probability that one of the classes has an edge; a class within another one is not counted."""
    order = np.argsort(slides[:count])
    kept = np.empty(count, np.int64)
    size, likely = 0, 0.0
    for c in order:
        within = False
        for k in range(size):
            if slides[c] % slides[kept[k]] == 0 and shifts[c] % slides[kept[k]] == shifts[kept[k]]:
                within = True
                break
        if not within:
            kept[size] = c
            size += 1
            likely += 1.0 / slides[c]
    return min(1.0, likely)


@njit(cache=True, nogil=True)
def _neighbours(left: Ints, right: Ints, n: int) -> tuple[Ints, Ints]:
    """The classes that class i depends on, as `near[begins[i]:begins[i + 1]]`."""
    begins = np.zeros(n + 2, np.int64)
    for k in range(len(left)):
        begins[left[k] + 1] += 1
        begins[right[k] + 1] += 1
    for i in range(n):
        begins[i + 1] += begins[i]
    near = np.empty(2 * len(left), np.int64)
    filled = begins[: n + 1].copy()
    for k in range(len(left)):
        i, j = left[k], right[k]
        near[filled[i]] = j
        filled[i] += 1
        near[filled[j]] = i
        filled[j] += 1
    return begins, near


@njit(cache=True, nogil=True)
def bound_triples(
    left: Ints, right: Ints, excess: Floats, shifts: Ints, inner: Ints, outer: Ints, groups: Ints, first: int
) -> tuple[float, float]:
    """How far three classes with two dependent pairs can move the missed share down and up.

    Triples whose last class is before `first` are left out.

    requires  pairs from `dependent_pairs`; `excess` at least the size of what each pair adds by its dependence
    cost      O(sum over classes of dependent classes ** 2), and the square of the classes that meet a pair
    """
    n = len(shifts)
    begins, near = _neighbours(left, right, n)
    down, up = 0.0, 0.0
    most = 0
    for i in range(n):
        most = max(most, begins[i + 1] - begins[i])
    # The classes that meet a pair, as they are on the common edges of the two: slides and shifts, for each side.
    met_slides, met_shifts = np.empty((2, most), np.int64), np.empty((2, most), np.int64)
    met = np.zeros(2, np.int64)
    for k in range(len(left)):
        i, j = left[k], right[k]
        if i < first:
            continue
        both_inner = inner[i] // _gcd(inner[i], inner[j]) * inner[j]
        slide_i, slide_j = inner[i] * outer[i], inner[j] * outer[j]
        both_slides = slide_i // _gcd(slide_i, slide_j) * slide_j
        meet = (shifts[i] - shifts[j]) % _gcd(slide_i, slide_j) == 0
        at = _meet_at(slide_i, shifts[i], slide_j, shifts[j]) if meet else np.int64(0)
        met[:] = 0
        for side in range(2):
            of = i if side == 0 else j
            for position in range(begins[of], begins[of + 1]):
                c = near[position]
                if c >= i or c == j:
                    continue
                other = j if side == 0 else i
                if (shifts[c] - shifts[other]) % _gcd(inner[c], inner[other]):
                    continue
                alike = groups[c] == groups[other]
                if side == 1 and not alike and _gcd(outer[c], outer[i]) > 1:
                    continue  # the first side has it
                active = _gcd(both_inner, inner[c]) / (float(both_inner) * float(inner[c]))
                # Of two classes that both depend on the latest one, either is the second once: each counts half.
                share = 0.5 if side == 0 else 1.0
                if alike:  # two of a group have the same edge here, and both have added it
                    up += share * excess[k] * active
                    down += share * excess[k] * active
                    continue
                slide_c = inner[c] * outer[c]
                with_j = _gcd(slide_j, slide_c)
                if (shifts[c] - shifts[j]) % with_j == 0:
                    likely = with_j / float(_gcd(inner[j], inner[c])) / (float(outer[j]) * float(outer[c]))
                    up += share * likely / outer[i] * active
                    # An earlier class that depends on the latest one must have an edge; otherwise this one adds all.
                    if meet and (side == 1 or c < j) and (shifts[c] - shifts[i]) % _gcd(slide_i, slide_c) == 0:
                        shared = _gcd(both_slides, slide_c)
                        own = slide_c // shared
                        met_slides[side, met[side]] = own
                        met_shifts[side, met[side]] = (
                            (shifts[c] - at) // shared % own * _inverse(both_slides // shared, own) % own
                        )
                        met[side] += 1
                loose = excess[k] / outer[c] * active
                up += loose
                down += loose
        for side in range(2):
            if met[side]:
                down += _any_of(met_slides[side], met_shifts[side], met[side]) / float(both_slides)
    return down, up
