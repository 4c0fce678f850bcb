"""Classes of edges as sets of literals, which are bits.

Time is a point `x` with one residue per prime power, all independent (Chinese remainders). A *literal* states what `x`
is modulo one prime power; a class is a set of literals. The first words of its bits say which primes it has; each
literal comes with the literals of lower powers that it implies. So, of two classes as bits:

    one contains the other      its literals are a subset of the other's
    they never meet             one has a literal that conflicts with one of the other's
    where they meet             the union of their literals
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bits = NDArray[np.uint64]

_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def popcount(word: np.uint64) -> np.int64:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def is_within(inner: Bits, outer: Bits) -> bool:
    """Whether each edge of `inner` is an edge of `outer`: `inner` has all literals of `outer`."""
    for w in range(len(inner)):  # noqa: SIM110 (Numba compiles no generator)
        if outer[w] & ~inner[w]:
            return False
    return True


@njit(cache=True, nogil=True)
def are_equal(left: Bits, right: Bits) -> bool:
    for w in range(len(left)):  # noqa: SIM110
        if left[w] != right[w]:
            return False
    return True


@njit(cache=True, nogil=True)
def is_empty(mask: Bits) -> bool:
    """Whether the class has no literals: every point is in it."""
    for w in range(len(mask)):  # noqa: SIM110
        if mask[w]:
            return False
    return True


@njit(cache=True, nogil=True)
def tally(mask: Bits, words: int, counts: NDArray[np.int64], by: int) -> None:
    """Add `by` to the count of each prime of the class."""
    for w in range(words):
        rest = mask[w]
        while rest:
            lowest = rest & (~rest + _ONE)
            counts[w * 64 + popcount(lowest - _ONE)] += by
            rest ^= lowest


@njit(cache=True, nogil=True)
def by_literals(classes: Bits) -> Bits:
    """The classes by number of literals, ascending."""
    literals = np.zeros(len(classes), np.int64)
    for k in range(len(classes)):
        for w in range(classes.shape[1]):
            literals[k] += popcount(classes[k, w])
    return classes[np.argsort(literals)]


@njit(cache=True, nogil=True)
def meets(items: NDArray[np.int64], masks: Bits, own: Bits, words: int, conflicts: Bits, limit: int, out: Bits) -> int:
    """Write the items without one prime, and all their meets, to `out`; return how many, or -1 for more than `limit`.

    requires  `own` the bits of the prime; room for `limit` + 1 in `out`
    cost      O(items * meets), and a search per meet
    """
    width = masks.shape[1]
    conflict = np.empty((len(items), width), np.uint64)
    size = 0
    for item in items:
        for w in range(width):
            out[size, w] = masks[item, w] & ~own[w]
        if not _is_repeated(out, size):
            _conflicts_of(out[size], words, conflicts, conflict[size])
            size += 1
    base = size
    at = 0
    while at < size:
        for b in range(base):
            if _conflict(out[at], conflict[b], words):
                continue
            if size >= limit:
                return -1
            for w in range(width):
                out[size, w] = out[at, w] | out[b, w]
            if not _is_repeated(out, size):
                size += 1
        at += 1
    return size


@njit(cache=True, nogil=True)
def _is_repeated(rows: Bits, size: int) -> bool:
    """Whether row `size` equals an earlier row."""
    for k in range(size):  # noqa: SIM110
        if are_equal(rows[k], rows[size]):
            return True
    return False


@njit(cache=True, nogil=True)
def _conflict(mask: Bits, conflicts: Bits, words: int) -> bool:
    for w in range(words, len(mask)):  # noqa: SIM110
        if mask[w] & conflicts[w]:
            return True
    return False


@njit(cache=True, nogil=True)
def _conflicts_of(mask: Bits, words: int, conflicts: Bits, out: Bits) -> None:
    """Write the literals that conflict with one of the class."""
    out[:] = 0
    for w in range(words, len(mask)):
        rest = mask[w]
        while rest:
            lowest = rest & (~rest + _ONE)
            bit = (w - words) * 64 + popcount(lowest - _ONE)
            for v in range(len(out)):
                out[v] |= conflicts[bit, v]
            rest ^= lowest
