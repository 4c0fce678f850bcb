"""Slides and shifts of bundles as arrays, and upper bounds of the edges that any two of them have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.merge.bundle import Bundle

MOST_MEETINGS = 64
"""Slides whose meetings with all bundles are kept."""


@dataclass(frozen=True, slots=True)
class SlideMeetings:
    """For windows of one slide: how often their edges meet those of each bundle."""

    divisors: NDArray[np.integer]
    """The greatest common divisor with each distinct slide."""
    firsts: NDArray[np.integer]
    """Of each bundle, its first shift modulo that divisor."""
    seconds: NDArray[np.integer]
    """The second shift; the largest integer, which is no residue, where there is none."""
    once: NDArray[np.float64]
    """The density of the common edges of two classes that meet."""


@dataclass(slots=True, eq=False)
class Geometry:
    """Slides and shifts of bundles in units of their greatest common divisor.

    Shifts are -1 where there is none, or where members have different ones.
    """

    unit: int
    slides: NDArray[np.integer]
    classes: NDArray[np.int64]
    shifts: NDArray[np.integer]
    """One row for the first classes, and one for the second."""
    different: NDArray[np.integer]
    """The distinct slides: hundreds of windows may have only a few."""
    which: NDArray[np.intp]
    """The index in `different` of the slide of each bundle."""
    meetings: dict[int, SlideMeetings] = field(default_factory=dict)
    """A cache, by slide: hundreds of rows may have the same one."""

    @classmethod
    def of(cls, bundles: Sequence[Bundle]) -> Geometry:
        slides = np.array([bundle.slide for bundle in bundles])
        classes = np.array([bundle.classes for bundle in bundles])
        shifts = np.full((2, len(bundles)), -1)
        for i, bundle in enumerate(bundles):
            if len(bundle.members) == 1 and bundle.slide:
                for k, (_, shift) in enumerate(bundle.members[0].edges.classes):
                    shifts[k, i] = shift
        unit = max(1, gcd(int(np.gcd.reduce(slides)), int(np.gcd.reduce(shifts[shifts >= 0]))))
        slides //= unit
        shifts[shifts >= 0] //= unit
        if slides.max(initial=0) < 1 << 30:
            slides, shifts = slides.astype(np.int32), shifts.astype(np.int32)  # remainders of those are faster
        return cls(unit, slides, classes, shifts, *np.unique(slides, return_inverse=True))

    @property
    def many(self) -> bool:
        """Whether there are bundles whose shifts are not known."""
        return bool((self.shifts[0] < 0).any())

    def common(self, row: int, until: int) -> NDArray[np.float64]:
        """Upper bounds of the density of common edges with each bundle before `until`; exact for two windows."""
        return self._common(row, slice(until))

    def common_of_two(self, row: int, column: int) -> float:
        return float(self._common(row, slice(column, column + 1))[0])

    def _common(self, row: int, columns: slice) -> NDArray[np.float64]:
        slide, own = int(self.slides[row]), int(self.classes[row])
        if not slide:
            return np.full(len(self.which[columns]), np.inf)
        meeting, which, once = self._meeting(slide), self.which[columns], self.meetings[slide].once[columns]
        if self.shifts[0, row] < 0:
            return self._of_many(slide, own, columns) * once
        met = np.zeros(len(which), np.uint8)
        for shift in self.shifts[:own, row]:
            residues = (meeting.divisors.dtype.type(shift) % meeting.divisors)[which]
            met += meeting.firsts[columns] == residues
            met += meeting.seconds[columns] == residues
        with np.errstate(invalid="ignore"):
            common: NDArray[np.float64] = met * once
        if self.many:
            rest = np.flatnonzero(self.shifts[0, columns] < 0)
            common[rest] = (self._of_many(slide, own, columns) * once)[rest]
        return common

    def _of_many(self, slide: int, own: int, columns: slice) -> NDArray[np.int64]:
        """Upper bounds of the number of classes that meet, where bundles have several members."""
        classes = self.classes[columns]
        meetings = classes * own
        # Different parts of one slide have at most one class in common, and none if each has only one class.
        alike = self.slides[columns] == slide
        meetings[alike] = np.maximum(classes[alike], own) > 1
        return meetings

    def _meeting(self, slide: int) -> SlideMeetings:
        if slide not in self.meetings:
            divisors = np.gcd(self.different, self.different.dtype.type(slide))
            divisors = divisors.view(np.uint32 if divisors.dtype == np.int32 else np.uint64)  # faster remainders
            modulo = divisors[self.which]
            firsts, seconds = (shifts.view(modulo.dtype) % modulo for shifts in self.shifts)
            seconds[self.shifts[1] < 0] = np.iinfo(modulo.dtype).max
            with np.errstate(divide="ignore"):  # bundles of parts with several slides may meet anything
                once = divisors / (self.different.astype(float) * slide * self.unit)
            if len(self.meetings) >= MOST_MEETINGS:
                self.meetings.clear()
            self.meetings[slide] = SlideMeetings(divisors, firsts, seconds, once[self.which])
        return self.meetings[slide]
