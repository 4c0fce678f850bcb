"""Upper bounds of the gains of merges, row by row, from upper bounds of the edges that two bundles have in common."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import inf

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.cost.omega import TechniqueCost
from weft.optimizer.merge.bundle import Bundle
from weft.optimizer.merge.geometry import Geometry
from weft.optimizer.merge.part import Part

SLACK = 1e-12
"""Bounds are floats, rounded up by far more than a few float operations can lose."""

MOST_KEPT = 1 << 25
"""Numbers of common edges that are kept for merged parts: 256 MB."""

GONE = 1 << 62
"""The time at which a part that no longer exists was made: after all others."""


class PairBounds:
    """Bundles as columns, and upper bounds of the edges that any two of them have in common.

    The bounds are computed on demand, row by row. Only what cannot be computed again is kept: the rows of merged parts,
    and numbers that were counted.
    """

    def __init__(self, bundles: Sequence[Bundle], technique: TechniqueCost) -> None:
        self.bundles = list(bundles)
        size = len(self.bundles)
        self.made = list(range(size))  # when; a row has the pairs with bundles made before it
        self.opened: list[list[int]] = [[] for _ in range(size)]  # columns whose pair was taken out of the row
        self._clock = count(size)
        self._open = np.arange(size)  # when it was made; GONE where it no longer exists
        first = [bundle.members[0] for bundle in self.bundles]
        self._rates = np.array([part.near_rate for part in first])
        self._finals = np.array([part.near_final for part in first])
        self._floors = np.array([part.near_floor for part in first])
        self._additive = technique.additive
        # The share of a floor that adds up when two share a tree; of the other shares, the larger counts.
        self._alone = self._floors.copy()
        if not self._additive:
            self._alone = np.array(technique.alone([part.load for part in first]))
        self._geometry = Geometry.of(self.bundles)
        self._counted_with: list[set[int]] = [set() for _ in range(size)]  # columns with exact common edges
        self._counted: list[dict[int, float]] = [{} for _ in range(size)]  # how many, where neither has a kept row
        self._kept = np.empty((0, size))  # rows of merged parts
        self._place = np.full(size, -1)  # the row of a merged part in `_kept`
        self._free: list[int] = []
        self._merged = np.zeros(size, np.bool_)
        self._window = (self._geometry.shifts[0] >= 0).tolist()  # a single window, not merged
        self._read = [False] * size  # merged, with exact common edges with windows

    @property
    def kept_bounds(self) -> int:
        """How many numbers about merged parts are in memory: up to `MOST_KEPT`."""
        return self._kept.size

    def bounds(self, row: int, saving: float) -> NDArray[np.float64]:
        """Upper bounds of the gain of any two parts, one from this bundle and one from each bundle made before it."""
        until = len(self.bundles) if self._merged[row] else row + 1
        bounds = self._bounds(row, slice(until), self._common(row, until), saving)
        bounds[self._open[:until] > self.made[row]] = -inf
        if len(self.bundles[row].members) == 1:
            bounds[row] = -inf
        bounds[self.opened[row]] = -inf
        return bounds

    def bounds_from_common(
        self, row: int, columns: NDArray[np.integer], common: NDArray[np.float64], saving: float
    ) -> NDArray[np.float64]:
        """The same for some columns whose common edges with the row are exact."""
        return self._bounds(row, columns, common, saving)

    def _bounds(
        self, row: int, columns: slice | NDArray[np.integer], common: NDArray[np.float64], saving: float
    ) -> NDArray[np.float64]:
        """Computed in place: a row is short, and allocating an array takes as long as the arithmetic."""
        others, own = self._rates[columns], self._rates[row]
        rates = others + own
        rates *= 1 - SLACK
        rates -= common
        np.maximum(rates, own, out=rates)
        np.maximum(rates, others, out=rates)
        # Each floor plus the other's additive share; the larger of the two sums is the tighter bound.
        after = self._floors[columns] + self._alone[row]
        if not self._additive:
            np.maximum(after, self._alone[columns] + self._floors[row], out=after)
        after *= rates
        after *= 1 - SLACK
        bounds: NDArray[np.float64] = self._finals[columns] + (saving + self._finals[row])
        bounds *= 1 + SLACK
        bounds -= after
        return bounds

    def is_open(self, row: int, column: int) -> bool:
        """Whether both exist, and the pair belongs to this row."""
        return GONE > self.made[column] <= self.made[row]

    def are_open(self, row: int, columns: NDArray[np.integer]) -> NDArray[np.bool_]:
        are: NDArray[np.bool_] = self._open[columns] <= self.made[row]
        return are

    def common_is_exact(self, row: int, column: int) -> bool:
        """Whether the common edges of the pair are exact, not just an upper bound."""
        return column in self._counted_with[row] or (self._window[column] and (self._window[row] or self._read[row]))

    def least_rate(self, row: int, column: int) -> float:
        one, other = float(self._rates[row]), float(self._rates[column])
        return max(one, other, (one + other) * (1 - SLACK) - self._common_of_two(row, column))

    def record_common(self, row: int, columns: Sequence[int], common: NDArray[np.float64]) -> None:
        """Store the counted common edges of a row and some columns."""
        common = common + SLACK * self._rates[row]
        place, other_places = int(self._place[row]), self._place[columns]
        if place >= 0:
            self._kept[place, columns] = common
        else:
            for column, has, number in zip(columns, other_places.tolist(), common.tolist(), strict=True):
                if has < 0:
                    self._counted[row][column] = self._counted[column][row] = number
        self._kept[other_places[other_places >= 0], row] = common[other_places >= 0]
        self._counted_with[row].update(columns)
        for column in columns:
            self._counted_with[column].add(row)

    def merge(
        self,
        new: Part,
        left: Part,
        left_slot: int | None,
        right: Part,
        right_slot: int | None,
        read: NDArray[np.float64] | None = None,
    ) -> int:
        """Give the merged part a slot: that of one of its halves, if they have any.

        `read` are its common edges with each window, if they are exact; other slots of the array have no meaning.
        """
        slot = left_slot if left_slot is not None else right_slot
        # Parts of a bundle with several members have no slot; their floors add up entirely.
        alone = new.near_floor if self._additive else float(self._alone[left_slot] + self._alone[right_slot])
        common = self._common_with_merged(new, ((left, left_slot), (right, right_slot)), read)
        for old in (left_slot, right_slot):
            if old is not None:
                self._forget(old)
        if right_slot is not None:
            self.made[right_slot] = self._open[right_slot] = GONE
            self._window[right_slot] = False
        if slot is None:
            slot = len(self.bundles)
            self._grow()
            common = np.append(common, np.inf)
        self.bundles[slot] = Bundle((new,), 0, 0)
        self.made[slot] = self._open[slot] = next(self._clock)
        self.opened[slot], self._window[slot] = [], False
        self._rates[slot], self._finals[slot], self._floors[slot] = new.near_rate, new.near_final, new.near_floor
        self._alone[slot] = alone
        self._merged[slot] = True
        self._keep(slot, common)
        self._read[slot] = read is not None and self._place[slot] >= 0
        return slot

    def _common_with_merged(
        self, new: Part, halves: Sequence[tuple[Part, int | None]], read: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Upper bounds of the edges per second that each bundle has in common with a merged part."""
        columns = slice(None) if read is None else np.flatnonzero(self._merged)
        (left, left_slot), (right, right_slot) = halves
        one, other = self._of(left, left_slot, columns), self._of(right, right_slot, columns)
        # The second half adds no more common edges than it has edges that the first half lacks.
        more, other_more = new.near_high - left.near_rate, new.near_high - right.near_rate
        common = np.minimum(one + np.minimum(other, more), other + np.minimum(one, other_more))
        if read is not None:
            merged, common = common, read
            common[columns] = merged
        common += SLACK * new.near_rate
        return common

    def _of(self, part: Part, slot: int | None, columns: slice | NDArray[np.intp]) -> NDArray[np.float64]:
        """Upper bounds of the common edges of a part and these columns: all columns, or all merged ones.

        For a part of a bundle with several members, the bound is the edge rate of the part.
        """
        if slot is None:
            return np.full(len(self._merged[columns]), part.near_rate)
        if isinstance(columns, slice):
            return self._common(slot, len(self.bundles))
        place, other_places = int(self._place[slot]), self._place[columns]
        common = self._kept[place, columns] if place >= 0 else np.full(len(columns), np.inf)
        common = np.where(other_places >= 0, np.minimum(common, self._kept[other_places, slot]), common)
        for column, counted in self._counted[slot].items():
            common[columns == column] = counted
        return common

    def _common(self, row: int, until: int) -> NDArray[np.float64]:
        """Upper bounds of the edges per second that this bundle has in common with each one before `until`."""
        place = int(self._place[row])
        if place >= 0:
            common = self._kept[place, :until].copy()
        elif self._merged[row]:
            common = np.full(until, np.inf)
        else:
            common = self._geometry.common(row, until)
            common *= 1e6 * (1 + SLACK)
            if len(common) < until:  # parts merged later
                common = np.append(common, np.full(until - len(common), np.inf))
            common[self._merged[:until]] = np.inf
        others = np.flatnonzero(self._place[:until] >= 0)
        if len(others):
            common[others] = np.minimum(common[others], self._kept[self._place[others], row])
        for column, counted in self._counted[row].items():
            if column < until:
                common[column] = counted
        return common

    def _common_of_two(self, row: int, column: int) -> float:
        least = self._counted[row].get(column, inf)
        for one, other in ((row, column), (column, row)):
            place = int(self._place[one])
            if place >= 0:
                least = min(least, float(self._kept[place, other]))
        if not self._merged[row] and not self._merged[column]:
            least = min(least, self._geometry.common_of_two(row, column) * 1e6 * (1 + SLACK))
        return least

    def _keep(self, slot: int, common: NDArray[np.float64]) -> None:
        """Keep the row of a merged part if there is memory left; otherwise its bounds are looser."""
        if not self._free:
            rows, width = self._kept.shape
            more = min(max(64, rows), MOST_KEPT // width - rows)
            if more <= 0:
                return
            self._free = list(range(rows + more - 1, rows - 1, -1))
            self._kept = np.concatenate([self._kept, np.empty((more, width))])
        place = self._free.pop()
        self._kept[place, : len(common)] = common
        self._kept[place, len(common) :] = np.inf
        self._place[slot] = place
        others = np.flatnonzero(self._place >= 0)
        self._kept[self._place[others], slot] = common[others]

    def _forget(self, slot: int) -> None:
        for other in self._counted_with[slot]:
            self._counted_with[other].discard(slot)
            self._counted[other].pop(slot, None)
        self._counted_with[slot], self._counted[slot] = set(), {}
        if self._place[slot] >= 0:
            self._free.append(int(self._place[slot]))
            self._place[slot] = -1
        self._kept[:, slot] = np.inf

    def _grow(self) -> None:
        self.bundles.append(self.bundles[-1])
        self.opened.append([])
        self._counted_with.append(set())
        self._counted.append({})
        self.made.append(0)
        self._window.append(False)
        self._read.append(False)
        self._open = np.append(self._open, 0)
        self._rates, self._finals = np.append(self._rates, 0.0), np.append(self._finals, 0.0)
        self._floors, self._alone = np.append(self._floors, 0.0), np.append(self._alone, 0.0)
        self._place = np.append(self._place, -1)
        self._merged = np.append(self._merged, True)
        rows, width = self._kept.shape
        if len(self.bundles) > width:
            self._kept = np.concatenate([self._kept, np.full((rows, width // 4 + 64), np.inf)], axis=1)
