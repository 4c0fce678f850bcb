"""Upper bounds of what merging gains, a row at a time: from the edges that two bundles have in common at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from math import gcd, inf

import numpy as np
from numpy.typing import NDArray

from weft.model import EdgeClass
from weft.optimizer.parts import Part

SLACK = 1e-12
"""Bounds are floats, rounded up by far more than a few float operations can lose."""

MOST_ROWS = 6000
"""Parts up to which each is a bundle of its own: tighter bounds, and 300 MB of them."""

LONGEST_SLIDE = 1 << 62
"""Longer ones are not for 64-bit arithmetic: their bounds are looser."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Parts with equal slides, as many classes, and so equal edge rates; the lowest floor first.

    `slide` is 0 where a part has several.
    """

    members: tuple[Part, ...]
    slide: int
    classes: int


class Table:
    """What bounds need to know of bundles, as columns, and of each two the edges that they have in common at most."""

    def __init__(self, bundles: Sequence[Bundle]) -> None:
        self.bundles = list(bundles)
        size = len(self.bundles)
        self.made = np.arange(size)  # a row has the pairs with what was made before it
        self.done: list[list[int]] = [[] for _ in range(size)]  # pairs that have left the row
        self._clock = count(size)
        self._alive = np.ones(size, np.bool_)
        first = [bundle.members[0] for bundle in self.bundles]
        self._rates = np.array([part.near_rate for part in first])
        self._finals = np.array([part.near_final for part in first])
        self._floors = np.array([part.near_floor for part in first])
        self._common = np.full((size, size), np.inf)
        self.known = np.zeros((size, size), np.bool_)  # where `_common` is no bound but the number, for all one knows
        geometry = Geometry.of(self.bundles)
        for row in range(size):
            common = geometry.common(row) * (1e6 * (1 + SLACK))
            self._common[row, : row + 1] = self._common[: row + 1, row] = common
            self.known[row, : row + 1] = self.known[: row + 1, row] = common < inf

    def bounds(self, row: int, saving: float, adds: bool) -> NDArray[np.float64]:
        """No less than the gain of any two parts from this bundle and each other one."""
        rates = self._least_rates(row)
        floors = self._floors + self._floors[row] if adds else np.maximum(self._floors, self._floors[row])
        before, after = saving + self._finals + self._finals[row], rates * floors
        bounds: NDArray[np.float64] = before - after + SLACK * (before + after)
        bounds[~self._alive | (self.made > self.made[row])] = -inf
        if len(self.bundles[row].members) == 1:
            bounds[row] = -inf
        bounds[self.done[row]] = -inf
        return bounds

    def _least_rates(self, row: int) -> NDArray[np.float64]:
        apart = (self._rates + self._rates[row]) * (1 - SLACK) - self._common[row]
        rates: NDArray[np.float64] = np.maximum(np.maximum(self._rates, self._rates[row]), apart)
        return rates

    def least_rate(self, row: int, column: int) -> float:
        one, other = self._rates[row], self._rates[column]
        return float(max(one, other, (one + other) * (1 - SLACK) - self._common[row, column]))

    def know(self, one: int, other: int, common: float) -> None:
        self._common[one, other] = self._common[other, one] = common + SLACK * self._rates[one]
        self.known[one, other] = self.known[other, one] = True

    def merge(self, new: Part, left: Part, left_slot: int | None, right: Part, right_slot: int | None) -> int:
        """Give the merged part a slot, one of the old ones where there is one."""
        slot = left_slot if left_slot is not None else right_slot
        one, other = self._of(left, left_slot), self._of(right, right_slot)
        # Of what another tree has in common with the two, the second adds no more than it has that the first has not.
        more, other_more = new.near_rate - left.near_rate, new.near_rate - right.near_rate
        common = np.minimum(one + np.minimum(other, more), other + np.minimum(one, other_more))
        common += SLACK * new.near_rate
        if right_slot is not None:
            self._alive[right_slot], self.made[right_slot] = False, -1
        if slot is None:
            slot = len(self.bundles)
            self._grow()
            common = np.append(common, np.inf)
        self.bundles[slot] = Bundle((new,), 0, 0)
        self.made[slot], self.done[slot], self._alive[slot] = next(self._clock), [], True
        self._rates[slot], self._finals[slot], self._floors[slot] = new.near_rate, new.near_final, new.near_floor
        self._common[slot], self._common[:, slot] = common, common
        self.known[slot], self.known[:, slot] = False, False
        return slot

    def _of(self, part: Part, slot: int | None) -> NDArray[np.float64]:
        """For a part that was in a bundle nothing is known but that it has no more edges than it has."""
        return self._common[slot] if slot is not None else np.full(len(self.bundles), part.near_rate)

    def _grow(self) -> None:
        size = len(self.bundles)
        self.bundles.append(self.bundles[-1])
        self.done.append([])
        self.made, self._alive = np.append(self.made, 0), np.append(self._alive, False)
        self._rates, self._finals = np.append(self._rates, 0.0), np.append(self._finals, 0.0)
        self._floors = np.append(self._floors, 0.0)
        larger = np.full((size + 1, size + 1), np.inf)
        larger[:size, :size] = self._common
        self._common = larger
        known = np.zeros((size + 1, size + 1), np.bool_)
        known[:size, :size] = self.known
        self.known = known


@dataclass(frozen=True, slots=True)
class Geometry:
    """Slides and shifts of bundles; shifts are -1 where there is none, or where members have different ones."""

    slides: NDArray[np.int64]
    classes: NDArray[np.int64]
    shifts: NDArray[np.int64]

    @classmethod
    def of(cls, bundles: Sequence[Bundle]) -> Geometry:
        slides = np.array([bundle.slide for bundle in bundles])
        classes = np.array([bundle.classes for bundle in bundles])
        shifts = np.full((len(bundles), 2), -1)
        for i, bundle in enumerate(bundles):
            if len(bundle.members) == 1 and bundle.slide:
                for k, (_, shift) in enumerate(bundle.members[0].edges.classes):
                    shifts[i, k] = shift
        return cls(slides, classes, shifts)

    def common(self, row: int) -> NDArray[np.float64]:
        """No less than the density of common edges, with each bundle up to this one; exact for two windows."""
        slide, own = int(self.slides[row]), int(self.classes[row])
        slides, classes, shifts = self.slides[: row + 1], self.classes[: row + 1], self.shifts[: row + 1]
        if not slide:
            return np.full(row + 1, np.inf)
        divisors = np.gcd(slides, slide)
        with np.errstate(divide="ignore"):
            once = divisors / (slides.astype(float) * slide)  # how often two classes meet that do
        if self.shifts[row, 0] >= 0:
            meetings = np.zeros(row + 1, np.int64)
            for shift in self.shifts[row, :own]:
                for k in range(2):
                    meetings += ((shifts[:, k] - shift) % divisors == 0) & (shifts[:, k] >= 0)
            known = shifts[:, 0] >= 0
        else:
            meetings, known = classes * own, np.zeros(row + 1, np.bool_)
        meetings = np.where(known, meetings, classes * own)
        # Different parts of one slide have at most one class in common, and none if each has but one.
        alike = (slides == slide) & ~known
        meetings[alike] = np.maximum(classes[alike], own) > 1
        common: NDArray[np.float64] = np.where(slides > 0, meetings * once, np.inf)
        return common


def bundles(parts: Iterable[Part], adds: bool) -> list[Bundle]:
    """Each part alone, or, where that are too many, those of equal slides and as many classes together.

    Of a bundle's members the one with the lowest floor has the highest bound, whatever it is paired with: where
    floors add up and final costs are the rate times the floor, a part loses `(merged rate - rate) * floor`.
    """
    parts = sorted(parts, key=lambda part: part.position)
    alone = [Bundle((part,), *_slide_and_classes(part)) for part in parts]
    if len(parts) <= MOST_ROWS or not adds or any(p.near_final != p.near_rate * p.near_floor for p in parts):
        return alone
    alike: dict[tuple[int, int], list[Part]] = {}
    for bundle in alone:
        alike.setdefault((bundle.slide, bundle.classes), []).append(bundle.members[0])
    found = []
    for (slide, classes), members in alike.items():
        if slide:
            found.append(Bundle(tuple(sorted(members, key=lambda part: part.near_floor)), slide, classes))
        else:
            found += [Bundle((part,), 0, classes) for part in members]
    return found


def _slide_and_classes(part: Part) -> tuple[int, int]:
    classes = part.edges.classes
    slide = classes[0][0]
    return (slide if slide == classes[-1][0] < LONGEST_SLIDE and len(classes) <= 2 else 0), len(classes)


def most_common_edges(left: tuple[EdgeClass, ...], right: tuple[EdgeClass, ...]) -> float:
    """No less than the density of common edges: exact for two windows, whose own classes never meet."""
    total = 0.0
    for slide, shift in left:
        for s, h in right:
            common = gcd(slide, s)
            if (shift - h) % common == 0:
                total += common / (slide * s)
    return total
