"""Weights of classes of edges, as residues: what remains of them after one prime is eliminated.

A class has a weight, and a point `x` has the product of the weights of the classes that contain it: 0 for edges that
count. The mean of that product over all `x` is the share of time without an edge. Numbers are residues modulo several
primes below 2**31, so they are exact: the caller joins the residues.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from weft.kernels.edge_counting.literals import Bits, is_within, popcount

Residues = NDArray[np.uint64]

_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def inverse_powers(primes: NDArray[np.int64], count: int, moduli: Residues) -> Residues:
    """`1 / prime**k` as residues, for k below `count`, one row per prime.

    requires  moduli primes below 2**31 that divide no prime
    cost      O(primes * moduli * (log(modulus) + count))
    """
    powers = np.ones((len(primes), count, len(moduli)), np.uint64)
    for i in range(len(primes)):
        for m in range(len(moduli)):
            q = moduli[m]
            inverse = _inverse(np.int64(np.uint64(primes[i]) % q), np.int64(q))
            for k in range(1, count):
                powers[i, k, m] = powers[i, k - 1, m] * inverse % q
    return powers


@njit(cache=True, nogil=True)
def _inverse(number: np.int64, modulus: np.int64) -> np.uint64:
    """By Euclid's algorithm, which takes fewer steps than a power."""
    rest, last, x, y = number, modulus, np.int64(1), np.int64(0)
    while rest > 1:
        times = last // rest
        last, rest = rest, last - times * rest
        y, x = x, y - times * x
    return np.uint64(x % modulus)


@njit(cache=True, nogil=True)
def _power(base: np.uint64, exponent: np.uint64, modulus: np.uint64) -> np.uint64:
    result = _ONE
    while exponent:
        if exponent & _ONE:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= _ONE
    return result


@njit(cache=True, nogil=True)
def weigh_meets(
    meeting: Bits,
    size: int,
    items: NDArray[np.int64],
    masks: Bits,
    weights: Residues,
    hard: NDArray[np.bool_],
    own: Bits,
    words: int,
    prime: np.int64,
    powers: Residues,
    moduli: Residues,
    out: Residues,
    out_hard: NDArray[np.bool_],
) -> bool:
    """Write weights for the meets: their product at any `x` is the mean of the items' product over the prime.

    The mean at a meet is divided by the weights of the classes that contain it, which the product has already. Returns
    False where a modulus divides a divisor.

    requires  `meeting[:size]` by number of literals, ascending
    cost      O(size * (items ** 2 + size))
    """
    count = len(items)
    literals, depths = _literals_of(items, masks, own, words)
    order = np.argsort(-depths)
    item_weights, item_hard = np.empty((count, len(moduli)), np.uint64), np.empty(count, np.bool_)
    for a in range(count):
        item_weights[a], item_hard[a] = weights[items[a]], hard[items[a]]
    inverse = np.empty((size, len(moduli)), np.uint64)
    for k in range(size):
        active = _items_around(meeting[k], items, order, masks, own)
        out_hard[k] = _mean(literals, depths, item_weights, item_hard, active, prime, powers, moduli, out[k])
        for j in range(k):
            if not is_within(meeting[k], meeting[j]):
                continue
            if out_hard[j]:  # every point here is an edge, so any weight will do
                out[k, :], out_hard[k] = _ONE, False
                break
            for m in range(len(moduli)):
                out[k, m] = out[k, m] * inverse[j, m] % moduli[m]
        if out_hard[k]:
            out[k, :] = np.uint64(0)
            continue
        for m in range(len(moduli)):
            if out[k, m] == 0:
                return False
            inverse[k, m] = _power(out[k, m], moduli[m] - np.uint64(2), moduli[m])
    return True


@njit(cache=True, nogil=True)
def _literals_of(items: NDArray[np.int64], masks: Bits, own: Bits, words: int) -> tuple[Bits, NDArray[np.int64]]:
    """The literals of one prime that the items have, and how many: the depth of each item."""
    literals = np.zeros((len(items), masks.shape[1]), np.uint64)
    depths = np.zeros(len(items), np.int64)
    for a in range(len(items)):
        for w in range(masks.shape[1]):
            literals[a, w] = masks[items[a], w] & own[w]
            if w >= words:
                depths[a] += popcount(literals[a, w])
    return literals, depths


@njit(cache=True, nogil=True)
def _items_around(
    meet: Bits, items: NDArray[np.int64], order: NDArray[np.int64], masks: Bits, own: Bits
) -> NDArray[np.int64]:
    """Positions of the items that contain the meet for some residue of the prime, in the given order."""
    around = np.empty(len(items), np.int64)
    size = 0
    for a in order:
        inside = True
        for w in range(len(meet)):
            if masks[items[a], w] & ~own[w] & ~meet[w]:
                inside = False
                break
        if inside:
            around[size] = a
            size += 1
    return around[:size]


@njit(cache=True, nogil=True)
def _mean(
    literals: Bits,
    depths: NDArray[np.int64],
    weights: Residues,
    hard: NDArray[np.bool_],
    active: NDArray[np.int64],
    prime: np.int64,
    powers: Residues,
    moduli: Residues,
    out: Residues,
) -> bool:
    """Write the mean of the product of the active weights over the residues of one prime; return whether it is 0.

    requires  `active` by depth, deepest first; `powers[d]` the inverse of prime**d
    cost      O(active ** 2)
    """
    count = len(active)
    parent = _parents(literals, active)
    # Integers decide whether weights of 0 cover every residue: a residue modulo q can be 0 by chance.
    deepest = depths[active[0]]
    covered = np.zeros(count + 1, np.int64)
    lost = np.zeros((count + 1, len(moduli)), np.uint64)
    for a in range(count):
        item = active[a]
        size = np.int64(1)
        for _ in range(deepest - depths[item]):
            size *= prime
        up = parent[a]
        covered[up] += size if hard[item] else covered[a]
        measure = powers[depths[item]]
        for k in range(len(moduli)):
            q = moduli[k]
            left = (measure[k] + q - lost[a, k]) % q
            lost[up, k] = (lost[up, k] + measure[k] + q - weights[item, k] * left % q) % q
    residues = np.int64(1)
    for _ in range(deepest):
        residues *= prime
    for k in range(len(moduli)):
        out[k] = (_ONE + moduli[k] - lost[count, k]) % moduli[k]
    return bool(covered[count] == residues)


@njit(cache=True, nogil=True)
def _parents(literals: Bits, active: NDArray[np.int64]) -> NDArray[np.int64]:
    """The position of the next shallower active literal that contains each one; without any, the number of literals."""
    parent = np.full(len(active), len(active), np.int64)
    for a in range(len(active)):
        for b in range(a + 1, len(active)):
            if is_within(literals[active[a]], literals[active[b]]):
                parent[a] = b
                break
    return parent
