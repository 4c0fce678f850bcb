"""Many unions of edges marked on one composite slide: where that is short, merging two is one operation on bits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from math import gcd, lcm

from weft.model import Edges
from weft.optimizer.edge_counting.bit_set import marks

LONGEST_PERIOD = 1 << 20
"""Marks of one union."""

MOST_MARKS = 1 << 31
"""Marks of all unions: 256 MB."""


class Board:
    """Marks in units of the granule, the sparsest class that has every edge."""

    def __init__(self, of: Mapping[Hashable, Edges], granule: tuple[int, int], period: int) -> None:
        self._unit, origin = granule
        self._period = period
        self._marks = {
            key: marks(((s // self._unit, (h - origin) // self._unit) for s, h in edges.classes), period)
            for key, edges in of.items()
        }

    @classmethod
    def of(cls, unions: Mapping[Hashable, Edges]) -> Board | None:
        """None where the composite slide of all is too long."""
        every = {c for edges in unions.values() for c in edges.classes}
        if not every:
            return None
        period = 1
        for slide in {slide for slide, _ in every}:
            period = lcm(period, slide)
            if period > LONGEST_PERIOD * slide:  # the granule divides each slide
                return None
        origin = next(iter(every))[1]
        unit = gcd(*(slide for slide, _ in every), *(shift - origin for _, shift in every))
        if period // unit > LONGEST_PERIOD or period // unit * len(unions) > MOST_MARKS:
            return None
        return cls(unions, (unit, origin % unit), period // unit)

    def edge_rate(self, left: Hashable, right: Hashable) -> Fraction:
        """Slices a second of the two as one."""
        together = (self._marks[left] | self._marks[right]).bit_count()
        return Fraction(together * 1_000_000, self._period * self._unit)

    def common(self, left: Hashable, right: Hashable) -> float:
        """Edges a second that both have, as near as a float comes."""
        return (self._marks[left] & self._marks[right]).bit_count() * 1e6 / (self._period * self._unit)

    def merge(self, new: Hashable, left: Hashable, right: Hashable) -> None:
        self._marks[new] = self._marks.pop(left) | self._marks.pop(right)
