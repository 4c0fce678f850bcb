"""Edges: the instants where the windows of a tree begin or end, as (slide, shift) classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd, lcm

from weft.model.window import Window

EdgeClass = tuple[int, int]
"""An edge lies at every `shift + k * slide`."""


@dataclass(frozen=True, slots=True)
class Edges:
    """A union of edge classes, sorted, none of which contains another.

    >>> Edges.of([Window(12, 9), Window(10, 6)]).classes
    ((6, 0), (6, 4), (9, 0), (9, 3))
    """

    classes: tuple[EdgeClass, ...]

    @classmethod
    def of(cls, windows: Iterable[Window]) -> Edges:
        return cls.of_classes(c for w in windows for c in w.classes)

    @classmethod
    def of_classes(cls, classes: Iterable[EdgeClass]) -> Edges:
        """Drop each class that another contains: its slide is a multiple of the other's, with the same residue."""
        kept: set[EdgeClass] = set()
        slides: list[int] = []  # of the kept classes, ascending: there are fewer slides than classes
        looked, divisors = 0, list[int]()
        for slide, shift in sorted({(slide, shift % slide) for slide, shift in classes}):
            if slide != looked:
                looked, divisors = slide, [s for s in slides if slide % s == 0]
            if any((s, shift % s) in kept for s in divisors):
                continue
            kept.add((slide, shift))
            if not slides or slides[-1] != slide:
                slides.append(slide)
        return cls(tuple(sorted(kept)))

    @classmethod
    def of_begins(cls, windows: Iterable[Window]) -> Edges:
        """Only where windows begin.

        >>> Edges.of_begins([Window(12, 9), Window(10, 6, 1)]).classes
        ((6, 1), (9, 0))
        """
        return cls.of_classes((w.slide, w.offset) for w in windows)

    def __or__(self, other: Edges) -> Edges:
        return Edges.of_classes((*self.classes, *other.classes))

    @property
    def period(self) -> int:
        """The composite slide, after which the edges repeat."""
        return lcm(*(slide for slide, _ in self.classes))

    @property
    def granule(self) -> EdgeClass:
        """The sparsest single class that has all these edges."""
        slide, shift = self.classes[0]
        for s, h in self.classes[1:]:
            slide = gcd(slide, s, abs(h - shift))
        return slide, shift % slide

    def floor(self, time: int) -> int:
        """The greatest edge that is not after `time`."""
        return max(time - (time - shift) % slide for slide, shift in self.classes)

    def next(self, time: int) -> int:
        """The smallest edge after `time`: the end of the slice that holds it."""
        return min(time + slide - (time - shift) % slide for slide, shift in self.classes)

    def contains(self, other: Edges) -> bool:
        """Whether each class of `other` lies within one of these.

        Edges that only several classes cover together do not count: (2, 0) is not within (4, 0) and (4, 2).
        """
        return (self | other) == self
