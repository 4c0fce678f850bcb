"""Upper bounds of what merging gains, row by row: from the edges that two bundles have in common at most."""

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
"""Kept numbers of edges in common with merged parts: 256 MB."""

GONE = 1 << 62
"""The time at which a part that no longer exists was made: after all others."""


class PairBounds:
    """Bundles as columns, and the edges that any two of them have in common at most.

    Those are computed on demand, row by row. Only what cannot be computed again is kept: the rows of merged parts, and
    numbers that were counted.
    """

    def __init__(self, bundles: Sequence[Bundle], technique: TechniqueCost) -> None:
        self.bundles = list(bundles)
        size = len(self.bundles)
        self.made = list(range(size))  # a row has the pairs with what was made before it
        self.done: list[list[int]] = [[] for _ in range(size)]  # pairs that have left the row
        self._clock = count(size)
        self._open = np.arange(size)  # when it was made; GONE where it no longer exists
        first = [bundle.members[0] for bundle in self.bundles]
        self._rates = np.array([part.near_rate for part in first])
        self._finals = np.array([part.near_final for part in first])
        self._floors = np.array([part.near_floor for part in first])
        self._additive = technique.additive
        # Of the floors, what adds up when two share a tree; of the rest the larger counts.
        self._alone = self._floors.copy()
        if not self._additive:
            self._alone = np.array(technique.alone([part.load for part in first]))
        self._geometry = Geometry.of(self.bundles)
        self._known: list[set[int]] = [set() for _ in range(size)]  # the others with which edges in common were counted
        self._counted: list[dict[int, float]] = [{} for _ in range(size)]  # how many, where no row is kept of either
        self._kept = np.empty((0, size))  # rows of merged parts
        self._place = np.full(size, -1)  # where a merged part has its row there
        self._free: list[int] = []
        self._merged = np.zeros(size, np.bool_)
        self._window = (self._geometry.shifts[0] >= 0).tolist()  # a single one, not merged
        self._read = [False] * size  # merged, and its edges in common with windows are known

    @property
    def kept_bounds(self) -> int:
        """How many numbers about merged parts are in memory: up to `MOST_KEPT`."""
        return self._kept.size

    def bounds(self, row: int, saving: float) -> NDArray[np.float64]:
        """No less than the gain of any two parts from this bundle and each one up to the last that was made before."""
        until = len(self.bundles) if self._merged[row] else row + 1
        bounds = self._bounds(row, slice(until), self._common(row, until), saving)
        bounds[self._open[:until] > self.made[row]] = -inf
        if len(self.bundles[row].members) == 1:
            bounds[row] = -inf
        bounds[self.done[row]] = -inf
        return bounds

    def bounds_known(
        self, row: int, columns: NDArray[np.integer], common: NDArray[np.float64], saving: float
    ) -> NDArray[np.float64]:
        """The same for some columns with which the edges in common are known."""
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
        # Both alone, and the larger of the rests: no less than either floor with what is alone of the other.
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

    def is_known(self, row: int, column: int) -> bool:
        """Whether the edges in common are as many as the bound of the pair says."""
        return column in self._known[row] or (self._window[column] and (self._window[row] or self._read[row]))

    def least_rate(self, row: int, column: int) -> float:
        one, other = float(self._rates[row]), float(self._rates[column])
        return max(one, other, (one + other) * (1 - SLACK) - self._common_of_two(row, column))

    def know(self, row: int, columns: Sequence[int], common: NDArray[np.float64]) -> None:
        """The edges in common with some columns are counted."""
        common = common + SLACK * self._rates[row]
        place, places = int(self._place[row]), self._place[columns]
        if place >= 0:
            self._kept[place, columns] = common
        else:
            for column, has, number in zip(columns, places.tolist(), common.tolist(), strict=True):
                if has < 0:
                    self._counted[row][column] = self._counted[column][row] = number
        self._kept[places[places >= 0], row] = common[places >= 0]
        self._known[row].update(columns)
        for column in columns:
            self._known[column].add(row)

    def merge(
        self,
        new: Part,
        left: Part,
        left_slot: int | None,
        right: Part,
        right_slot: int | None,
        read: NDArray[np.float64] | None = None,
    ) -> int:
        """Give the merged part a slot, one of the old ones where there is one.

        `read` are its edges in common with each window, where they are known; of other slots they say nothing.
        """
        slot = left_slot if left_slot is not None else right_slot
        # Parts out of a bundle have no slot; there all of a floor adds up.
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
        self.done[slot], self._window[slot] = [], False
        self._rates[slot], self._finals[slot], self._floors[slot] = new.near_rate, new.near_final, new.near_floor
        self._alone[slot] = alone
        self._merged[slot] = True
        self._keep(slot, common)
        self._read[slot] = read is not None and self._place[slot] >= 0
        return slot

    def _common_with_merged(
        self, new: Part, halves: Sequence[tuple[Part, int | None]], read: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Edges per second that each bundle has in common with a part merged from two, at most."""
        columns = slice(None) if read is None else np.flatnonzero(self._merged)
        (left, left_slot), (right, right_slot) = halves
        one, other = self._of(left, left_slot, columns), self._of(right, right_slot, columns)
        # Of what another tree has in common with the two, the second adds no more than it has that the first has not.
        more, other_more = new.near_high - left.near_rate, new.near_high - right.near_rate
        common = np.minimum(one + np.minimum(other, more), other + np.minimum(one, other_more))
        if read is not None:
            merged, common = common, read
            common[columns] = merged
        common += SLACK * new.near_rate
        return common

    def _of(self, part: Part, slot: int | None, columns: slice | NDArray[np.intp]) -> NDArray[np.float64]:
        """What columns, either all or all that are merged, have in common with a part at most.

        For a part that was in a bundle nothing is known but that it has no more edges than it has.
        """
        if slot is None:
            return np.full(len(self._merged[columns]), part.near_rate)
        if isinstance(columns, slice):
            return self._common(slot, len(self.bundles))
        place, places = int(self._place[slot]), self._place[columns]
        common = self._kept[place, columns] if place >= 0 else np.full(len(columns), np.inf)
        common = np.where(places >= 0, np.minimum(common, self._kept[places, slot]), common)
        for column, counted in self._counted[slot].items():
            common[columns == column] = counted
        return common

    def _common(self, row: int, until: int) -> NDArray[np.float64]:
        """Edges per second that each other bundle up to there has in common with this one at most."""
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
        """A row for which there is no memory is not kept: its bounds are looser then."""
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
        for other in self._known[slot]:
            self._known[other].discard(slot)
            self._counted[other].pop(slot, None)
        self._known[slot], self._counted[slot] = set(), {}
        if self._place[slot] >= 0:
            self._free.append(int(self._place[slot]))
            self._place[slot] = -1
        self._kept[:, slot] = np.inf

    def _grow(self) -> None:
        self.bundles.append(self.bundles[-1])
        self.done.append([])
        self._known.append(set())
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
