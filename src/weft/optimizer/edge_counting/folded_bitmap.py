"""Marks of one composite slide, folded to shorter slides: how many edges a union has at each residue of each slide.

Then its common edges with a window are read instead of counted, for any number of windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Folds:
    """Each slide is folded from the shortest multiple that was folded before it."""

    period: int
    source: Mapping[int, int]
    """For each slide, the longest first, the one that it is folded from; all divide the period."""
    begins: Mapping[int, int]
    """Where the residues of a slide begin in the array that `of` returns; its first entry is 0."""

    @classmethod
    def to(cls, slides: Iterable[int], period: int) -> Folds:
        source: dict[int, int] = {}
        begins: dict[int, int] = {}
        size = 1
        for slide in sorted(set(slides), reverse=True):
            source[slide] = min((longer for longer in source if longer % slide == 0), default=period)
            begins[slide] = size
            size += slide
        return cls(period, source, begins)

    @property
    def work(self) -> int:
        """Marks that are added up for one union."""
        return sum(self.source.values())

    def of(self, marks: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
        """The edges at each residue of each slide; `marks` has a 0 or a 1 for each unit of the period."""
        folded = {self.period: marks}
        for slide, longer in self.source.items():
            # A residue has at most `period / slide` edges.
            counts = np.uint8 if self.period <= 255 * slide else np.uint32
            source = folded[longer]
            if longer == 2 * slide:
                folded[slide] = np.add(source[:slide], source[slide:], dtype=counts)
            else:
                folded[slide] = np.add.reduce(source.reshape(-1, slide), axis=0, dtype=counts)
        return np.concatenate([np.zeros(1, np.uint8), *(folded[slide] for slide in self.source)])
