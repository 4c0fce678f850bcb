"""Formula F1 (dissertation, chapter 5): edges in a composite slide by inclusion and exclusion, without marking any.

    LCM_n * sum over group sizes i of (-1)**(i + 1) * G(n, i)

where G sums 1 / LCM over the groups of i classes in which each pair overlaps. Fragments are classes of their own, with
a shift. Duplicates and multiples are removed before: `Edges` has no class that another contains.

At worst there are 2**n groups for n classes that all meet; only one number is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import gcd, lcm

from weft.model import EdgeClass, Edges, PlanError

MOST_GROUPS = 1 << 21
"""A group takes about a microsecond."""

TABLE_SIZE = 1024
"""The greatest number in the table of divisors: a million entries. The dissertation's took 4 GB."""

Gcd = Callable[[int, int], int]


class TooManyGroups(PlanError):
    """More terms than can be summed in a reasonable time."""


def density(edges: Edges, divisor: Gcd = gcd) -> Fraction:
    """Edges per unit of time; `divisor` finds greatest common divisors: Python's own, or a `GcdTable`."""
    period = 1
    for slide, _ in edges.classes:
        period = period // divisor(period, slide) * slide
    return Fraction(sum((-1) ** size * term for size, term in enumerate(terms(edges.classes, divisor))), period)


def terms(classes: tuple[EdgeClass, ...], divisor: Gcd = gcd) -> list[int]:
    """For each group size, from 1 on, the sum over groups of the edges per composite slide that all its classes share.

    >>> terms(tuple((slide, 0) for slide in (2, 3, 4, 5, 6)))
    [87, 70, 36, 10, 1]
    """
    period = lcm(*(slide for slide, _ in classes))
    # For each class, as bits, the later classes that overlap it. A group with a pair that never meets adds nothing.
    overlapping = [
        sum(1 << j for j in range(i + 1, len(classes)) if overlaps(classes[i], classes[j], divisor))
        for i in range(len(classes))
    ]
    signed_sizes: list[int] = []
    groups = 0
    waiting = [(1, (1 << len(classes)) - 1, 0)]  # a group's LCM, the later classes that overlap all of it, its size
    while waiting:
        multiple, candidates, size = waiting.pop()
        if len(signed_sizes) == size and candidates:
            signed_sizes.append(0)
        groups += candidates.bit_count()
        if groups > MOST_GROUPS:
            raise TooManyGroups(
                f"{len(classes)} classes overlap in more than {MOST_GROUPS} groups; use the exact counter"
            )
        while candidates:
            lowest = candidates & -candidates
            candidates ^= lowest
            i = lowest.bit_length() - 1
            slide = classes[i][0]
            larger = multiple // divisor(multiple, slide) * slide
            signed_sizes[size] += period // larger
            rest = candidates & overlapping[i]
            if rest:
                waiting.append((larger, rest, size + 1))
    return signed_sizes


def overlaps(left: EdgeClass, right: EdgeClass, divisor: Gcd = gcd) -> bool:
    """The overlap check (formula 5.6): two classes meet, or never do; for a group, each pair decides."""
    return abs(left[1] - right[1]) % divisor(left[0], right[0]) == 0


class GcdTable:
    """Divisors looked up instead of computed (section 5.2.4); greater numbers are first made smaller as Euclid does.

    >>> GcdTable(100)(84, 36), GcdTable(10)(84, 36)
    (12, 12)
    """

    def __init__(self, size: int = TABLE_SIZE) -> None:
        self._size = size
        self._rows = [[gcd(a, b) for b in range(size + 1)] for a in range(size + 1)]

    def __call__(self, a: int, b: int) -> int:
        size = self._size
        while a > size or b > size:
            if b == 0:
                return a
            a, b = b, a % b
        return self._rows[a][b]
