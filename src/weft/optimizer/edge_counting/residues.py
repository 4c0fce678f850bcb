"""Counting by primes, with shares of time as residues modulo large primes: the last resort of `exact`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import count
from math import prod
from typing import TYPE_CHECKING

from weft.optimizer.edge_counting.literals import Literals
from weft.optimizer.edge_counting.primes import primes_below

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SLACK = 16
"""Extra classes, beyond twice their number, that cost less than deciding a prime: 16 mostly beats 64 to 600."""


class TooManySteps(Exception):
    """More steps than the caller allows."""


class BadModulus(Exception):
    """A modulus divides a divisor, so that this has no inverse: try other moduli."""


Weighted = dict[int, "NDArray[np.uint64] | None"]
"""Classes with their weights as residues; None for 0, an edge that counts."""


class Residues:
    """Shares of time as residues modulo primes, enough of them to tell any count of edges in a composite slide."""

    def __init__(self, literals: Literals, period: int, skip: int, steps: int | None = None) -> None:
        # Numba takes a while to load, and most plans never need it.
        import numpy as np

        from weft.kernels.edge_counting.weights import inverse_powers

        self._literals, self._period, self._steps = literals, period, steps
        self._which = (1 << 64 * literals.words) - 1  # the bits that tell the primes of a class
        self._moduli = moduli_above(period, skip * 64)
        self._q = np.array(self._moduli, np.uint64)
        self._one = np.ones_like(self._q)
        self._primes = np.array(literals.primes, np.int64)
        self._powers = inverse_powers(self._primes, literals.deepest + 1, self._q)
        self._owned, self._conflicts = self._rows(literals.owned), self._rows(literals.conflicts)

    def missed(self) -> Fraction:
        share = self._eliminate(dict.fromkeys(self._literals.masks))
        residues = [int(r) * self._period % q for r, q in zip(share.tolist(), self._moduli, strict=True)]
        return Fraction(joined(residues, self._moduli), self._period)

    def _rows(self, masks: Sequence[int]) -> NDArray[np.uint64]:
        import numpy as np

        size = 8 * self._literals.width
        rows = np.frombuffer(b"".join(mask.to_bytes(size, "little") for mask in masks), np.uint64)
        return rows.reshape(len(masks), -1).copy()

    def _eliminate(self, classes: Weighted) -> NDArray[np.uint64]:
        import numpy as np

        from weft.kernels.edge_counting.elimination import BAD_MODULUS, DONE, eliminate

        if not classes:
            return self._one
        if self._steps is not None:
            self._steps -= len(classes)
            if self._steps < 0:
                raise TooManySteps
        weights = np.zeros((len(classes), len(self._q)), np.uint64)
        hard = np.ones(len(classes), np.bool_)
        for row, weight in enumerate(classes.values()):
            if weight is not None:
                weights[row], hard[row] = weight, False
        share: NDArray[np.uint64]
        masks, weights, hard, share, outcome = eliminate(
            self._rows(list(classes)), weights, hard, self._literals.words,
            self._owned, self._conflicts, self._primes, self._powers, self._q, SLACK,
        )  # fmt: skip
        if outcome == BAD_MODULUS:
            raise BadModulus
        if outcome != DONE:
            left: Weighted = {
                int.from_bytes(mask.tobytes(), "little"): None if zero else weight
                for mask, weight, zero in zip(masks, weights, hard, strict=True)
            }
            for part in self._independent(left):
                share = share * self._decide(part) % self._q
        return share

    def _independent(self, classes: Weighted) -> list[Weighted]:
        """Split into parts that share no prime."""
        parts: list[tuple[int, Weighted]] = []
        for mask, weight in classes.items():
            primes, part = mask & self._which, {mask: weight}
            unrelated = []
            for theirs, other in parts:
                if theirs & primes:
                    primes |= theirs
                    part.update(other)
                else:
                    unrelated.append((theirs, other))
            parts = [*unrelated, (primes, part)]
        return [part for _, part in parts]

    def _decide(self, classes: Weighted) -> NDArray[np.uint64]:
        """Count each residue of the most frequent prime separately."""
        import numpy as np

        literals = self._literals
        frequency = Counter(bit for mask in classes for bit in bits(mask & self._which))
        place = max(frequency, key=lambda bit: (frequency[bit], -bit))
        own, prime = literals.owned[place], literals.primes[place]
        others: Weighted = {mask: weight for mask, weight in classes.items() if not mask & own}
        met: dict[int, Weighted] = defaultdict(dict)
        for mask, weight in classes.items():
            its = mask & own & ~self._which
            if its:
                # The literal of the lowest power: it was numbered before those that imply it.
                met[its & -its][mask] = weight
        share: NDArray[np.uint64] = 0 * self._q
        if len(met) < prime:
            share = self._eliminate(others) * np.array([(prime - len(met)) % q for q in self._moduli], np.uint64)
        for first, having in met.items():
            share = share + self._eliminate_at(first, own, place, having, others)
        inverse: NDArray[np.uint64] = self._powers[place, 1]
        return share % self._q * inverse % self._q

    def _eliminate_at(self, first: int, own: int, place: int, having: Weighted, others: Weighted) -> NDArray[np.uint64]:
        """The share that is missed where the literal `first` holds."""
        at: Weighted = dict(others)
        for mask, weight in having.items():
            mask ^= first
            if mask & own == 1 << place:
                mask ^= 1 << place
            other = at.get(mask, self._one)
            at[mask] = None if weight is None or other is None else weight * other % self._q
        everywhere = at.pop(0, self._one)
        if everywhere is None:
            return 0 * self._q
        edges = [mask for mask, weight in at.items() if weight is None]
        kept = {m: w for m, w in at.items() if not any(e != m and not e & ~m for e in edges)}
        return everywhere * self._eliminate(kept) % self._q


def bits(mask: int) -> Iterator[int]:
    """
    >>> list(bits(0b1010))
    [1, 3]
    """
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def moduli_above(period: int, skip: int) -> tuple[int, ...]:
    """Primes below 2**31 whose product is greater than `period`, none of which divides it, after `skip` others."""
    moduli: list[int] = []
    product = 1
    for place in count(skip):
        q = modulus(place)
        if period % q:
            moduli.append(q)
            product *= q
            if product > period:
                break
    return tuple(moduli)


@cache
def modulus(place: int) -> int:
    """The greatest prime below 2**31, the next one, and so on."""
    return next(primes_below(modulus(place - 1) if place else 1 << 31))


def joined(residues: Sequence[int], moduli: Sequence[int]) -> int:
    """The number below the product of the moduli that has these residues."""
    product = prod(moduli)
    return sum(r * (product // q) * pow(product // q, -1, q) for r, q in zip(residues, moduli, strict=True)) % product
