"""Counting edges: weighted classes, one prime after the other taken out of them.

Time is a point `x` with a residue for each prime power, all independent (Chinese remainders). A *literal* says what
`x` is modulo one prime power; a class is a set of literals, as bits. The lowest words of a class tell which primes it
has; each literal comes with those of the lower powers that it implies. So, of two classes as bits:

    one contains the other      its literals are among the other's
    they never meet             one has a literal that conflicts with one of the other's
    where they meet             the union of their literals

A class has a weight, and `x` has the product of the weights of the classes that it lies in: 0 for edges that count. The
mean of that product over all `x` is the share of time without an edge. Numbers are residues modulo several primes below
2**31, so that they are exact: the caller puts them together.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

DONE, STUCK, BAD_MODULUS = 0, 1, 2

Bits = NDArray[np.uint64]
Residues = NDArray[np.uint64]

_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def _popcount(word: np.uint64) -> np.int64:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def _within(inner: Bits, outer: Bits) -> bool:
    """Whether each edge of `inner` is one of `outer`: it has all its literals."""
    for w in range(len(inner)):  # noqa: SIM110 (Numba compiles no generator)
        if outer[w] & ~inner[w]:
            return False
    return True


@njit(cache=True, nogil=True)
def _equal(left: Bits, right: Bits) -> bool:
    for w in range(len(left)):  # noqa: SIM110
        if left[w] != right[w]:
            return False
    return True


@njit(cache=True, nogil=True)
def _tally(mask: Bits, words: int, counts: NDArray[np.int64], by: int) -> None:
    for w in range(words):
        rest = mask[w]
        while rest:
            lowest = rest & (~rest + _ONE)
            counts[w * 64 + _popcount(lowest - _ONE)] += by
            rest ^= lowest


@njit(cache=True, nogil=True)
def _conflicts_of(mask: Bits, words: int, conflicts: Bits, out: Bits) -> None:
    out[:] = 0
    for w in range(words, len(mask)):
        rest = mask[w]
        while rest:
            lowest = rest & (~rest + _ONE)
            bit = (w - words) * 64 + _popcount(lowest - _ONE)
            for v in range(len(out)):
                out[v] |= conflicts[bit, v]
            rest ^= lowest


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
def _meets(
    items: NDArray[np.int64], masks: Bits, own: Bits, words: int, conflicts: Bits, limit: int, found: Bits
) -> int:
    """Write the items without one prime, and wherever several of these meet, to `found`; their number, or -1.

    requires  `own` the bits of the prime; room for `limit` in `found`
    cost      O(items * found), and a search for each meeting; -1 as soon as there are more than `limit`
    """
    width = masks.shape[1]
    conflict = np.empty((len(items), width), np.uint64)
    size = 0
    for item in items:
        for w in range(width):
            found[size, w] = masks[item, w] & ~own[w]
        if not _known(found, size):
            _conflicts_of(found[size], words, conflicts, conflict[size])
            size += 1
    base = size
    place = 0
    while place < size:
        for b in range(base):
            apart = False
            for w in range(words, width):
                if found[place, w] & conflict[b, w]:
                    apart = True
                    break
            if apart:
                continue
            if size >= limit:
                return -1
            for w in range(width):
                found[size, w] = found[place, w] | found[b, w]
            if not _known(found, size):
                size += 1
        place += 1
    return size


@njit(cache=True, nogil=True)
def _known(found: Bits, size: int) -> bool:
    for k in range(size):  # noqa: SIM110
        if _equal(found[k], found[size]):
            return True
    return False


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
    """Write the mean, over the residues of one prime, of the product of the active weights; whether it is 0.

    requires  `active` by depth, deepest first; `powers[d]` the inverse of prime**d
    cost      O(active ** 2)
    """
    count = len(active)
    parent = np.full(count, -1, np.int64)  # the next shallower active literal that contains this one
    for a in range(count):
        for b in range(a + 1, count):
            if _within(literals[active[a]], literals[active[b]]):
                parent[a] = b
                break
    # Whether weights of 0 cover every residue is asked of integers: a residue modulo q can be 0 by chance.
    deepest = depths[active[0]]
    covered = np.zeros(count + 1, np.int64)
    lost = np.zeros((count + 1, len(moduli)), np.uint64)
    for a in range(count):
        item = active[a]
        size = np.int64(1)
        for _ in range(deepest - depths[item]):
            size *= prime
        up = parent[a] if parent[a] >= 0 else count
        covered[up] += size if hard[item] else covered[a]
        measure = powers[depths[item]]
        for k in range(len(moduli)):
            q = moduli[k]
            left = (measure[k] + q - lost[a, k]) % q
            lost[up, k] = (lost[up, k] + measure[k] + q - weights[item, k] * left % q) % q
    whole = np.int64(1)
    for _ in range(deepest):
        whole *= prime
    for k in range(len(moduli)):
        out[k] = (_ONE + moduli[k] - lost[count, k]) % moduli[k]
    return bool(covered[count] == whole)


@njit(cache=True, nogil=True)
def _factors(
    found: Bits,
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
    """Weights for `found`, so that their product at any `x` is the mean of the items' product over the prime.

    The mean where certain classes meet is divided by the weights of the classes around: they have their say there
    already. False where a modulus divides something that must be divided by.

    requires  `found[:size]` by number of literals, ascending
    cost      O(size * (items ** 2 + size))
    """
    width, count = masks.shape[1], len(items)
    literals = np.zeros((count, width), np.uint64)
    depths = np.empty(count, np.int64)
    for a in range(count):
        depth = 0
        for w in range(width):
            literals[a, w] = masks[items[a], w] & own[w]
            if w >= words:
                depth += _popcount(literals[a, w])
        depths[a] = depth
    order = np.argsort(-depths)
    item_weights, item_hard = np.empty((count, len(moduli)), np.uint64), np.empty(count, np.bool_)
    for a in range(count):
        item_weights[a], item_hard[a] = weights[items[a]], hard[items[a]]
    inverse = np.empty((size, len(moduli)), np.uint64)
    active = np.empty(count, np.int64)
    for k in range(size):
        among = 0
        for a in order:
            inside = True
            for w in range(width):
                if masks[items[a], w] & ~own[w] & ~found[k, w]:
                    inside = False
                    break
            if inside:
                active[among] = a
                among += 1
        out_hard[k] = _mean(literals, depths, item_weights, item_hard, active[:among], prime, powers, moduli, out[k])
        for j in range(k):
            if not _within(found[k], found[j]):
                continue
            if out_hard[j]:  # nothing that lies in an edge matters: a weight of 1 is as good as any
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
def _inverse(number: np.int64, modulus: np.int64) -> np.uint64:
    """By Euclid's algorithm: far fewer steps than a power takes."""
    rest, last, x, y = number, modulus, np.int64(1), np.int64(0)
    while rest > 1:
        times = last // rest
        last, rest = rest, last - times * rest
        y, x = x, y - times * x
    return np.uint64(x % modulus)


@njit(cache=True, nogil=True)
def inverse_powers(primes: NDArray[np.int64], count: int, moduli: Residues) -> Residues:
    """`1 / prime**k` as residues, for k below `count`, a row for each prime.

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
    """Take primes out of the classes, the rarest first: the classes that are left, a factor for them, and an outcome.

    DONE: the factor is the answer. STUCK: the next prime's classes meet in more than `slack` and twice their number of
    ways. BAD_MODULUS: begin again with other moduli.

    requires  `words` words of primes in each mask; `owned[i]` the bits of prime i; classes different
    cost      O(primes * classes), and for each prime what its classes and their meetings cost
    space     the classes, as many again for each prime at most
    """
    n, width, k_count = masks.shape[0], masks.shape[1], len(moduli)
    room = 2 * n + 64
    own, own_weights, own_hard = _grown(masks, n, room), _grown(weights, n, room), np.zeros(room, np.bool_)
    own_hard[:n] = hard
    counts = np.zeros(words * 64, np.int64)
    for c in range(n):
        _tally(own[c], words, counts, 1)
    factor = np.ones(k_count, np.uint64)
    while True:
        rarest = -1
        for i in range(len(primes)):
            if counts[i] and (rarest < 0 or counts[i] <= counts[rarest]):
                rarest = i
        if rarest < 0:
            return own[:0], own_weights[:0], own_hard[:0], factor, DONE
        word, bit = rarest // 64, _ONE << np.uint64(rarest % 64)
        items = np.empty(counts[rarest], np.int64)
        at = 0
        for c in range(n):
            if own[c, word] & bit:
                items[at] = c
                at += 1
        limit = slack + 2 * len(items)
        found = np.empty((limit + 1, width), np.uint64)
        size = _meets(items, own, owned[rarest], words, conflicts, limit, found)
        if size < 0:
            return own[:n], own_weights[:n], own_hard[:n], factor, STUCK
        found = _by_literals(found[:size])
        new, new_hard = np.empty((size, k_count), np.uint64), np.zeros(size, np.bool_)
        if not _factors(
            found, size, items, own, own_weights, own_hard, owned[rarest], words,
            primes[rarest], powers[rarest], moduli, new, new_hard,
        ):  # fmt: skip
            return own[:n], own_weights[:n], own_hard[:n], factor, BAD_MODULUS
        for c in items:
            _tally(own[c], words, counts, -1)
        kept = 0
        for c in range(n):
            if not own[c, word] & bit:
                own[kept], own_weights[kept], own_hard[kept] = own[c], own_weights[c], own_hard[c]
                kept += 1
        n = kept
        if n + size > room:
            room = 2 * (n + size)
            own, own_weights = _grown(own, n, room), _grown(own_weights, n, room)
            more = np.zeros(room, np.bool_)
            more[:n] = own_hard[:n]
            own_hard = more
        for k in range(size):
            n, over = _put(found[k], new[k], new_hard[k], own, own_weights, own_hard, n, words, counts, moduli, factor)
            if over:
                return own[:0], own_weights[:0], own_hard[:0], factor, DONE


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
    """Add a class: the number of classes, and whether nothing is left because every instant is an edge."""
    whole = True
    for w in range(len(mask)):
        if mask[w]:
            whole = False
            break
    if whole:
        for m in range(len(moduli)):
            factor[m] = factor[m] * weight[m] % moduli[m]
        return n, is_hard
    for c in range(n):
        if hard[c] and _within(mask, own[c]):
            return n, False
    if is_hard:
        kept = 0
        for c in range(n):
            if _within(own[c], mask):
                _tally(own[c], words, counts, -1)
            else:
                own[kept], weights[kept], hard[kept] = own[c], weights[c], hard[c]
                kept += 1
        n = kept
    else:
        for c in range(n):
            if _equal(own[c], mask):
                for m in range(len(moduli)):
                    weights[c, m] = weights[c, m] * weight[m] % moduli[m]
                return n, False
    own[n], weights[n], hard[n] = mask, weight, is_hard
    _tally(mask, words, counts, 1)
    return n + 1, False


@njit(cache=True, nogil=True)
def _by_literals(found: Bits) -> Bits:
    literals = np.zeros(len(found), np.int64)
    for k in range(len(found)):
        for w in range(found.shape[1]):
            literals[k] += _popcount(found[k, w])
    return found[np.argsort(literals)]


@njit(cache=True, nogil=True)
def _grown(rows: Bits, n: int, room: int) -> Bits:
    more = np.empty((room, rows.shape[1]), np.uint64)
    more[:n] = rows[:n]
    return more
