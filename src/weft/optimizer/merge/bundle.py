"""Bundles of parts with equal slides: where there are too many parts, bounds are computed per bundle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.merge.part import Part

MOST_ROWS = 6000
"""Up to this number of parts, each part is a bundle of its own, which has tighter bounds."""

LONGEST_SLIDE = 1 << 62
"""Longer slides exceed 64-bit arithmetic: their bounds are looser."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Parts with equal slides and equally many classes, so with equal edge rates; the lowest floor first.

    `slide` is 0 where the part has several slides.
    """

    members: tuple[Part, ...]
    slide: int
    classes: int


def bundles(parts: Iterable[Part], adds: bool) -> list[Bundle]:
    """Each part alone; if there are too many, parts with equal slides and equally many classes are put together.

    Of a bundle's members the one with the lowest floor has the highest bound with any partner: where
    floors add up and final costs are the rate times the floor, a part loses `(merged rate - rate) * floor`.
    """
    parts = sorted(parts, key=lambda part: part.position)
    if len(parts) <= MOST_ROWS or not adds or any(p.near_final != p.near_rate * p.near_floor for p in parts):
        return [Bundle((part,), *_slide_and_classes(part)) for part in parts]
    alike: dict[tuple[int, int], list[Part]] = {}
    for part in parts:
        alike.setdefault(_slide_and_classes(part), []).append(part)
    bundled = []
    for (slide, classes), members in alike.items():
        if slide:
            bundled.append(Bundle(tuple(sorted(members, key=lambda part: part.near_floor)), slide, classes))
        else:
            bundled += [Bundle((part,), 0, classes) for part in members]
    return bundled


def _slide_and_classes(part: Part) -> tuple[int, int]:
    classes = part.edges.classes
    slide = classes[0][0]
    return (slide if slide == classes[-1][0] < LONGEST_SLIDE and len(classes) <= 2 else 0), len(classes)


@dataclass(frozen=True, slots=True)
class Members:
    """The parts of a bundle as arrays: floors, final costs, and shifts per slide, -1 where a part has no such shift."""

    floors: NDArray[np.float64]
    finals: NDArray[np.float64]
    shifts: tuple[tuple[int, NDArray[np.int64]], ...] | None
    """None where a slide is too long for 64-bit arithmetic."""

    @classmethod
    def of(cls, bundle: Bundle) -> Members:
        floors = np.array([part.near_floor for part in bundle.members])
        finals = np.array([part.near_final for part in bundle.members])
        if not bundle.slide:
            (part,) = bundle.members
            classes = part.edges.classes
            if max(slide for slide, _ in classes) >= LONGEST_SLIDE:
                return cls(floors, finals, None)
            return cls(floors, finals, tuple((slide, np.array([shift])) for slide, shift in classes))
        every = [part.edges.classes for part in bundle.members]
        firsts = np.array([of_part[0][1] for of_part in every])
        seconds = np.array([of_part[1][1] if len(of_part) > 1 else -1 for of_part in every])
        return cls(floors, finals, ((bundle.slide, firsts), (bundle.slide, seconds)))

    def common(self, other: Members, rows: int, columns: int) -> NDArray[np.float64]:
        """Upper bounds of the density of common edges, for the first `rows` and `columns`; exact for two windows."""
        if self.shifts is None or other.shifts is None:
            return np.full((rows, columns), np.inf)
        density = np.zeros((rows, columns))
        for slide, shifts in self.shifts:
            for other_slide, others in other.shifts:
                divisor = gcd(slide, other_slide)
                one, two = shifts[:rows, None], others[None, :columns]
                meet = ((one - two) % divisor == 0) & (one >= 0) & (two >= 0)
                density += meet * (divisor / (slide * other_slide))
        return density
