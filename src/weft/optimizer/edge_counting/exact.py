"""The counter that is used: exact for any slides, without walking through a composite slide.

What no class has is counted, in this order:

- where all slides share a factor g, residues modulo g are disjoint worlds: each is counted alone, g times coarser;
- a composite slide that is short is marked, as in `bit_set`; few classes are counted by `f1`;
- else the primes of the slides are taken out one by one, the rarest first. Residues modulo different primes are
  independent (Chinese remainders). Of a class with p, the share 1/p**k is left at each instant of its other residues:
  it becomes a class without p that *dampens* what is missed by `1 - 1/p**k` and is an edge no more. Where several such
  classes meet, one more class corrects the product. `weft.kernels.edge_counting` does this with residues modulo primes
  below 2**31, as many of them as the composite slide needs: a count is an integer below it, so the residues tell which;
- a prime whose classes meet in too many ways is not taken out. Instead the most frequent prime is decided: for each
  residue that some class has, the others vanish; all residues that no class has are alike. That tears the classes into
  parts without a common prime, which are independent.

Counting a union of arithmetic progressions is hard in general. Rare primes make it easy, for few classes have them,
and so do frequent ones, for those are small.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import count
from math import gcd, lcm, prod
from typing import TYPE_CHECKING

from weft.model import EdgeClass, Edges, PlanError
from weft.optimizer.edge_counting import f1
from weft.optimizer.edge_counting.bit_set import marked
from weft.optimizer.edge_counting.primes import factorise, primes_below

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Classes = tuple[EdgeClass, ...]

SHORT_PERIOD = 1 << 15
"""Up to here marking bits is faster than reasoning about residues, whatever the number of classes."""

FEW = 5
"""At most 31 groups: inclusion and exclusion is done before compiled code is loaded."""

SLACK = 16
"""Ways to meet, beyond twice their number, that are cheaper than deciding a prime: of 16, 64, 200, 600 mostly best."""


LONGEST_SLIDE = 1 << 63
"""Residues modulo a power of a prime are 64-bit integers; composite slides may be of any length."""


class SlideTooLong(PlanError):
    """A single slide that no 64-bit clock can tell."""


def density(edges: Edges) -> Fraction:
    """Edges a unit of time."""
    return 1 - missed(edges.classes)


def missed(classes: Sequence[EdgeClass]) -> Fraction:
    """The share of time that none of the classes has; none of them contains another."""
    if len(classes) <= 2:
        return _missed_by_two(classes)
    factor, alike = worlds(classes)
    if factor == 1:
        return _missed(tuple(classes))
    found = sum((times * missed(world) for world, times in alike.items()), Fraction(factor - sum(alike.values())))
    return found / factor


def worlds(classes: Sequence[EdgeClass]) -> tuple[int, dict[Classes, int]]:
    """The factor that all slides share, and the classes at its residues, so many times coarser; how many are alike."""
    factor = gcd(*(slide for slide, _ in classes))
    if factor == 1:
        return 1, {tuple(classes): 1}
    found: dict[int, list[EdgeClass]] = defaultdict(list)
    for slide, shift in classes:
        found[shift % factor].append((slide // factor, shift // factor))
    # Within a residue nothing new is contained: classes that differ by a multiple of the factor shrank alike.
    alike: dict[Classes, int] = defaultdict(int)
    for world in found.values():
        alike[_begun_at_zero(world)] += 1
    return factor, alike


def missed_within(classes: Classes, steps: int) -> Fraction | None:
    """The same for classes without a common factor, or None where it takes more than so many steps."""
    try:
        return _counted(classes, steps)
    except TooManySteps:
        return None


def forget() -> None:
    """Counts are remembered; a measurement wants them new."""
    _missed.cache_clear()


def _missed_by_two(classes: Sequence[EdgeClass]) -> Fraction:
    if len(classes) < 2:
        return Fraction(classes[0][0] - 1, classes[0][0]) if classes else Fraction(1)
    (s, h), (t, i) = classes
    common = gcd(s, t)
    return 1 - Fraction(s + t - (common if (h - i) % common == 0 else 0), s * t)


def _begun_at_zero(classes: Sequence[EdgeClass]) -> Classes:
    """Move time so that the first class begins at 0: worlds that are alike should look alike."""
    origin = classes[0][1]
    return tuple((slide, (shift - origin) % slide) for slide, shift in classes)


@lru_cache(maxsize=1 << 12)
def _missed(classes: Classes) -> Fraction:
    return _counted(classes, None)


def _counted(classes: Classes, steps: int | None) -> Fraction:
    period = lcm(*(slide for slide, _ in classes))
    if period <= SHORT_PERIOD:
        return 1 - Fraction(marked(classes, period), period)
    if len(classes) <= FEW:
        return 1 - f1.density(Edges(classes))
    longest = max(slide for slide, _ in classes)
    if longest >= LONGEST_SLIDE:
        raise SlideTooLong(
            f"a slide of {longest} units cannot be counted together with {len(classes) - 1} others; "
            "the longest is 2**63 - 1, and Spark's longest interval is no longer"
        )
    literals = Literals.of(classes)
    skip = 0
    while True:
        try:
            return Residues(literals, period, skip, steps).missed()
        except BadModulus:
            skip += 1


@dataclass(frozen=True, slots=True)
class Literals:
    """Classes as sets of literals, which are bits: see `weft.kernels.edge_counting`."""

    primes: tuple[int, ...]
    words: int
    """Of 64 bits: the primes of a class. Literals begin after them."""
    owned: tuple[int, ...]
    """For each prime its own bit and those of its literals."""
    conflicts: tuple[int, ...]
    """For each literal the others of the same power of the same prime."""
    masks: tuple[int, ...]
    """The classes."""
    deepest: int
    """The highest power of a prime that divides a slide."""

    @classmethod
    def of(cls, classes: Classes) -> Literals:
        powers = factorise(slide for slide, _ in classes)
        primes = tuple(sorted({p for of_slide in powers.values() for p in of_slide}))
        place = {p: i for i, p in enumerate(primes)}
        words = -(-len(primes) // 64)
        owned = [1 << i for i in range(len(primes))]
        bits: dict[tuple[int, int], int] = {}
        of_power: dict[int, int] = defaultdict(int)
        masks: list[int] = []
        for slide, shift in classes:
            mask = 0
            for p, powers_of_p in powers[slide].items():
                i = place[p]
                mask |= 1 << i
                for power in powers_of_p:
                    literal = (power, shift % power)
                    bit = bits.get(literal)
                    if bit is None:
                        bit = bits[literal] = 1 << (64 * words + len(bits))
                        owned[i] |= bit
                        of_power[power] |= bit
                    mask |= bit
            masks.append(mask)
        conflicts = tuple(of_power[power] & ~bit for (power, _), bit in bits.items())
        deepest = max(len(powers_of_p) for of_slide in powers.values() for powers_of_p in of_slide.values())
        return cls(primes, words, tuple(owned), conflicts, tuple(masks), deepest)

    @property
    def width(self) -> int:
        return self.words + -(-len(self.conflicts) // 64)


class TooManySteps(Exception):
    """More than the caller wants to wait for."""


class BadModulus(Exception):
    """A modulus divides what has to be divided by: other moduli will do."""


Weighted = dict[int, "NDArray[np.uint64] | None"]
"""Classes with their weights as residues; None for 0, an edge that counts."""


class Residues:
    """Shares of time as residues modulo primes, enough of them to tell any count of edges in a composite slide."""

    def __init__(self, literals: Literals, period: int, skip: int, steps: int | None = None) -> None:
        # Numba takes a while to load, and most plans never come here.
        import numpy as np

        from weft.kernels.edge_counting import inverse_powers

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

        from weft.kernels.edge_counting import BAD_MODULUS, DONE, eliminate

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
            apart = []
            for theirs, other in parts:
                if theirs & primes:
                    primes |= theirs
                    part.update(other)
                else:
                    apart.append((theirs, other))
            parts = [*apart, (primes, part)]
        return [part for _, part in parts]

    def _decide(self, classes: Weighted) -> NDArray[np.uint64]:
        """Look at each residue of the most frequent prime alone."""
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
    found: list[int] = []
    product = 1
    for place in count(skip):
        q = modulus(place)
        if period % q:
            found.append(q)
            product *= q
            if product > period:
                break
    return tuple(found)


@cache
def modulus(place: int) -> int:
    """The greatest prime below 2**31, the next one, and so on."""
    return next(primes_below(modulus(place - 1) if place else 1 << 31))


def joined(residues: Sequence[int], moduli: Sequence[int]) -> int:
    """The number below the product of the moduli that has these residues."""
    whole = prod(moduli)
    return sum(r * (whole // q) * pow(whole // q, -1, q) for r, q in zip(residues, moduli, strict=True)) % whole
