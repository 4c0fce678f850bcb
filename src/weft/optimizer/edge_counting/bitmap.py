"""Unions of edges as bits of one composite slide: if it is short, merging two unions is one bit operation."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING

from weft.model import EdgeClass, Edges
from weft.optimizer.edge_counting.bit_set import marks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weft.optimizer.edge_counting.folded_bitmap import Folds

LONGEST_PERIOD = 1 << 20
"""Most marks per union."""

MOST_MARKS = 1 << 31
"""Most marks of all unions: 256 MB."""


class EdgeBitmap:
    """One bit per granule of the composite slide; the granule is the sparsest class that has every edge."""

    def __init__(self, of: Mapping[Hashable, Edges], granule: tuple[int, int], period: int) -> None:
        import numpy as np

        self._unit, self._origin = granule
        self._period = period
        size = -(-period // 64) * 8
        # One row of words per union; a merged union takes the row of its first half.
        self._marks = np.empty((len(of), size // 8), np.uint64)
        self._row = {key: row for row, key in enumerate(of)}
        for row, edges in enumerate(of.values()):
            bits = marks(((s // self._unit, (h - self._origin) // self._unit) for s, h in edges.classes), period)
            self._marks[row] = np.frombuffer(bits.to_bytes(size, "little"), np.uint64)

    @classmethod
    def of(cls, unions: Mapping[Hashable, Edges]) -> EdgeBitmap | None:
        """None if the composite slide of all unions is too long."""
        period = 1
        for edges in unions.values():
            for slide, _ in edges.classes:
                period = lcm(period, slide)
                if period > LONGEST_PERIOD * slide:  # the granule divides each slide
                    return None
        every = {c for edges in unions.values() for c in edges.classes}
        if not every:
            return None
        origin = next(iter(every))[1]
        unit = gcd(*(slide for slide, _ in every), *(shift - origin for _, shift in every))
        if period // unit > LONGEST_PERIOD or period // unit * len(unions) > MOST_MARKS:
            return None
        return cls(unions, (unit, origin % unit), period // unit)

    def edge_rate(self, left: Hashable, right: Hashable) -> Fraction:
        """Slices per second of the union of two."""
        import numpy as np

        together = int(np.bitwise_count(self._marks[self._row[left]] | self._marks[self._row[right]]).sum())
        return Fraction(together * 1_000_000, self._period * self._unit)

    def common(self, one: Hashable, others: Sequence[Hashable]) -> NDArray[np.float64]:
        """Edges per second that it has in common with each of the others, rounded to floats."""
        import numpy as np

        both = self._marks[[self._row[other] for other in others]] & self._marks[self._row[one]]
        marked: NDArray[np.float64] = np.bitwise_count(both).sum(axis=1, dtype=np.int64).astype(np.float64)
        return marked * (1e6 / (self._period * self._unit))

    def folds(self, slides: Iterable[int]) -> Folds | None:
        """How to read common edges with windows of these slides; None if counting them is less work."""
        from weft.optimizer.edge_counting.folded_bitmap import Folds

        folds = Folds.to((slide // self._unit for slide in slides), self._period)
        return folds if folds.work < self._marks.size else None

    def residue(self, edge_class: EdgeClass, folds: Folds) -> int:
        """The index of a class in the array that `Folds.of` returns."""
        slide, shift = edge_class
        return folds.begins[slide // self._unit] + (shift - self._origin) % slide // self._unit

    def read(self, one: Hashable, folds: Folds, residues: NDArray[np.intp]) -> NDArray[np.float64]:
        """Edges per second that it has in common with each window (a column of residues), rounded to floats."""
        import numpy as np

        marks = np.unpackbits(self._marks[self._row[one]].view(np.uint8), count=self._period, bitorder="little")
        folded = folds.of(marks)
        both = np.add(folded[residues[0]], folded[residues[1]], dtype=np.float64)
        rates: NDArray[np.float64] = both * (1e6 / (self._period * self._unit))
        return rates

    def merge(self, new: Hashable, left: Hashable, right: Hashable) -> None:
        row = self._row.pop(left)
        self._marks[row] |= self._marks[self._row.pop(right)]
        self._row[new] = row
