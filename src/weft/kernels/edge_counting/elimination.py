"""Elimination: the exact share of time without an edge, by taking one prime after the other out of weighted classes."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from weft.kernels.edge_counting.literals import Bits, are_equal, by_literals, is_empty, is_within, meets, tally
from weft.kernels.edge_counting.weights import Residues, weigh_meets

DONE, STUCK, BAD_MODULUS = 0, 1, 2

_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def eliminate(
    masks: Bits,
    weights: Residues,
    hard: NDArray[np.bool_],
    words: int,
    owned: Bits,
    conflicts: Bits,
    primes: NDArray[np.int64],
    powers: Residues,
    moduli: Residues,
    slack: int,
) -> tuple[Bits, Residues, NDArray[np.bool_], Residues, int]:
    """Eliminate primes from the classes, the rarest first; return the classes left, a factor for them, and an outcome.

    DONE: the factor is the result. STUCK: the classes of the next prime have more meets than `slack` and two per class.
    BAD_MODULUS: repeat with other moduli.

    requires  `words` words of primes in each mask; `owned[i]` the bits of prime i; distinct classes
    cost      O(primes * classes), and per prime the cost of its classes and their meets
    space     the classes, and at most as many again per prime
    """
    n, width, k_count = masks.shape[0], masks.shape[1], len(moduli)
    room = 2 * n + 64
    own, own_weights, own_hard = _grown(masks, n, room), _grown(weights, n, room), _grown_flags(hard, n, room)
    counts = np.zeros(words * 64, np.int64)
    for c in range(n):
        tally(own[c], words, counts, 1)
    factor = np.ones(k_count, np.uint64)
    while True:
        rarest = _rarest(counts, len(primes))
        if rarest < 0:
            return own[:0], own_weights[:0], own_hard[:0], factor, DONE
        word, bit = rarest // 64, _ONE << np.uint64(rarest % 64)
        items = np.flatnonzero(own[:n, word] & bit)
        limit = slack + 2 * len(items)
        meeting = np.empty((limit + 1, width), np.uint64)
        size = meets(items, own, owned[rarest], words, conflicts, limit, meeting)
        if size < 0:
            return own[:n], own_weights[:n], own_hard[:n], factor, STUCK
        meeting = by_literals(meeting[:size])
        new, new_hard = np.empty((size, k_count), np.uint64), np.zeros(size, np.bool_)
        if not weigh_meets(
            meeting, size, items, own, own_weights, own_hard, owned[rarest], words,
            primes[rarest], powers[rarest], moduli, new, new_hard,
        ):  # fmt: skip
            return own[:n], own_weights[:n], own_hard[:n], factor, BAD_MODULUS
        for item in items:
            tally(own[item], words, counts, -1)
        n = _drop_prime(own, own_weights, own_hard, n, word, bit)
        if n + size > room:
            room = 2 * (n + size)
            own, own_weights, own_hard = (
                _grown(own, n, room),
                _grown(own_weights, n, room),
                _grown_flags(own_hard, n, room),
            )
        for k in range(size):
            n, over = _put(
                meeting[k], new[k], new_hard[k], own, own_weights, own_hard, n, words, counts, moduli, factor
            )
            if over:
                return own[:0], own_weights[:0], own_hard[:0], factor, DONE


@njit(cache=True, nogil=True)
def _rarest(counts: NDArray[np.int64], primes: int) -> int:
    """The prime that the fewest classes have; -1: no class has a prime."""
    rarest = -1
    for i in range(primes):
        if counts[i] and (rarest < 0 or counts[i] <= counts[rarest]):
            rarest = i
    return rarest


@njit(cache=True, nogil=True)
def _drop_prime(own: Bits, weights: Residues, hard: NDArray[np.bool_], n: int, word: int, bit: np.uint64) -> int:
    """Remove the classes that have the prime; return how many are left."""
    kept = 0
    for c in range(n):
        if not own[c, word] & bit:
            own[kept], weights[kept], hard[kept] = own[c], weights[c], hard[c]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def _put(
    mask: Bits,
    weight: Residues,
    is_hard: bool,
    own: Bits,
    weights: Residues,
    hard: NDArray[np.bool_],
    n: int,
    words: int,
    counts: NDArray[np.int64],
    moduli: Residues,
    factor: Residues,
) -> tuple[int, bool]:
    """Add a class; return the number of classes, and whether every point is an edge, so that nothing is left."""
    if is_empty(mask):
        for m in range(len(moduli)):
            factor[m] = factor[m] * weight[m] % moduli[m]
        return n, is_hard
    for c in range(n):
        if hard[c] and is_within(mask, own[c]):
            return n, False
    if is_hard:
        kept = 0
        for c in range(n):
            if is_within(own[c], mask):
                tally(own[c], words, counts, -1)
            else:
                own[kept], weights[kept], hard[kept] = own[c], weights[c], hard[c]
                kept += 1
        n = kept
    else:
        for c in range(n):
            if are_equal(own[c], mask):
                for m in range(len(moduli)):
                    weights[c, m] = weights[c, m] * weight[m] % moduli[m]
                return n, False
    own[n], weights[n], hard[n] = mask, weight, is_hard
    tally(mask, words, counts, 1)
    return n + 1, False


@njit(cache=True, nogil=True)
def _grown(rows: Bits, n: int, room: int) -> Bits:
    more = np.empty((room, rows.shape[1]), np.uint64)
    more[:n] = rows[:n]
    return more


@njit(cache=True, nogil=True)
def _grown_flags(flags: NDArray[np.bool_], n: int, room: int) -> NDArray[np.bool_]:
    more = np.zeros(room, np.bool_)
    more[:n] = flags[:n]
    return more
