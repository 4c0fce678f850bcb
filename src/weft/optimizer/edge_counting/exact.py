"""The default counter: exact for any slides, without walking through a composite slide.

It computes the share of time without an edge, in this order:

- if all slides share a factor g, residues modulo g are disjoint worlds: each is counted alone, g times coarser;
- a composite slide that is short is marked, as in `bit_set`; few classes are counted by `f1`;
- otherwise the primes of the slides are removed one by one, the rarest first. Residues modulo different primes are
  independent (Chinese remainders). Of a class with p, the share 1/p**k is left at each instant of its other residues:
  it becomes a class without p that *dampens* what is missed by `1 - 1/p**k` and is an edge no more. Where several such
  classes meet, one more class corrects the product. `weft.kernels.edge_counting` does this with residues modulo primes
  below 2**31, as many of them as the composite slide needs: a count is an integer below it, so the residues tell which;
- a prime whose classes meet in too many ways is not removed. Instead the most frequent prime is decided: for each
  residue that some class has, the other classes of that prime vanish; all residues that no class has are alike. This
  splits the classes into parts without a common prime, which are independent.

Counting a union of arithmetic progressions is hard in general. Rare primes are easy because few classes have them, and
frequent primes because they are small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

from weft.model import EdgeClass, Edges, PlanError
from weft.optimizer.edge_counting import f1
from weft.optimizer.edge_counting.bit_set import marked
from weft.optimizer.edge_counting.literals import Classes, Literals
from weft.optimizer.edge_counting.residues import BadModulus, Residues, TooManySteps

SHORT_PERIOD = 1 << 15
"""Up to this period, marking bits is faster than residues for any number of classes."""

FEW = 5
"""At most 31 groups: inclusion and exclusion takes less time than loading compiled code."""

LONGEST_SLIDE = 1 << 63
"""Residues modulo a power of a prime are 64-bit integers; composite slides may be of any length."""


class SlideTooLong(PlanError):
    """A slide that exceeds 64 bits."""


def density(edges: Edges) -> Fraction:
    """Edges per unit of time."""
    return 1 - missed(edges.classes)


def missed(classes: Sequence[EdgeClass]) -> Fraction:
    """The share of time without an edge of these classes; none of them may contain another."""
    if len(classes) <= 2:
        return _missed_by_two(classes)
    factor, alike = worlds(classes)
    if factor == 1:
        return _missed(tuple(classes))
    total = sum((times * missed(world) for world, times in alike.items()), Fraction(factor - sum(alike.values())))
    return total / factor


def worlds(classes: Sequence[EdgeClass]) -> tuple[int, dict[Classes, int]]:
    """The common factor of all slides, and the classes at each of its residues, with slides divided by it.

    Residues with the same classes are one entry, with their number.
    """
    factor = gcd(*(slide for slide, _ in classes))
    if factor == 1:
        return 1, {tuple(classes): 1}
    by_residue: dict[int, list[EdgeClass]] = defaultdict(list)
    for slide, shift in classes:
        by_residue[shift % factor].append((slide // factor, shift // factor))
    # Within a residue nothing new is contained: classes that differ by a multiple of the factor shrank alike.
    alike: dict[Classes, int] = defaultdict(int)
    for world in by_residue.values():
        alike[_begun_at_zero(world)] += 1
    return factor, alike


def missed_within(classes: Classes, steps: int) -> Fraction | None:
    """The same for classes without a common factor; None if it takes more than `steps`."""
    try:
        return _counted(classes, steps)
    except TooManySteps:
        return None


def forget() -> None:
    """Drop cached counts, for measurements."""
    _missed.cache_clear()


def _missed_by_two(classes: Sequence[EdgeClass]) -> Fraction:
    if len(classes) < 2:
        return Fraction(classes[0][0] - 1, classes[0][0]) if classes else Fraction(1)
    (s, h), (t, i) = classes
    common = gcd(s, t)
    return 1 - Fraction(s + t - (common if (h - i) % common == 0 else 0), s * t)


def _begun_at_zero(classes: Sequence[EdgeClass]) -> Classes:
    """Shift time so that the first class begins at 0: equivalent worlds become equal."""
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
