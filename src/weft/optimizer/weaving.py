"""Greedy merging of trees, the papers' way, without counting the edges of most pairs.

The papers try all pairs in each round. Here a pair waits under an upper bound of its gain; only a pair whose bound
reaches the best gain known is looked at closer. The merges are the same: bounds are never too low, gains are exact,
and of equal gains the pair that comes first in the workload wins.

    bundles of parts   each part alone; where there are too many, those of equal slides together
    rows of bounds     from the edges that two bundles have in common at most: exact for two windows, sums for trees
    cells              the parts of two bundles, the cheapest first, only while their bound leads
    pairs              what still leads is counted
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from math import inf, nextafter

import numpy as np
from numpy.typing import NDArray

from weft.model import ACQ
from weft.optimizer.bounds import SLACK, Table, bundles, most_common_edges
from weft.optimizer.cost import Cost
from weft.optimizer.edge_counting import Board, edge_rate
from weft.optimizer.parts import Merge, Part, equal_edges, joint_load

AT_ONCE = 24
"""Pairs of a row that are looked up together."""


class Weaving:
    """The parts of one grouping and their merges, the best first.

    `saving` is what one tree less saves apart from final aggregation: a pass over the rows, or a fold of the
    composite slices. Merges that cannot gain more than `above` are not even remembered. `counted` tells how many
    pairs were counted.
    """

    def __init__(self, parts: Iterable[Part], saving: Fraction, cost: Cost, above: float = -inf) -> None:
        self.parts = {part.position: part for part in parts}
        self.counted = 0
        self._saving, self._near_saving, self._cost, self._above = saving, float(saving), cost, above
        self._board = Board.of({part: part.edges for part in self.parts.values()})
        self._serial = count()  # keeps heaps from comparing parts where a merged part stands in an old one's place
        self._evaluated: list[tuple[Fraction, int, int, int, Merge]] = []  # heap by negative gain
        self._waiting: list[tuple[float, int, Part, Part]] = []  # heap by negative bound
        self._cells: list[tuple[float, int, int, int, int]] = []  # heap by negative bound: bundles, members
        self._table = Table(bundles(self.parts.values(), cost.technique.additive))
        self._slot = {b.members[0].position: i for i, b in enumerate(self._table.bundles) if len(b.members) == 1}
        self._tops: list[tuple[float, int, int]] = []  # heap by negative bound: the best of a row, when it was made
        for row in range(len(self._table.bundles)):
            self._push_row(row, self._bounds(row))

    def best(self) -> Merge | None:
        """The merge with the greatest gain; None where there is none above the threshold."""
        while True:
            while self._evaluated and not self._alive(self._evaluated[0][4].left, self._evaluated[0][4].right):
                heappop(self._evaluated)
            # A bound that falls short even of the float below the gain falls short of the gain.
            reach = nextafter(float(self._evaluated[0][0]), inf) if self._evaluated else inf
            row = self._tops[0][0] if self._tops else inf
            cell = self._cells[0][0] if self._cells else inf
            pair = self._waiting[0][0] if self._waiting else inf
            leading = min(row, cell, pair)
            if leading > reach or leading == inf:
                return self._evaluated[0][4] if self._evaluated else None
            if pair == leading:
                *_, left, right = heappop(self._waiting)
                if self._alive(left, right):
                    self._count(left, right)
            elif cell == leading:
                self._open_cell(*heappop(self._cells)[1:])
            else:
                self._open_row(*heappop(self._tops))

    def merge(self, merge: Merge) -> None:
        """Put the merged part in the place of the two."""
        new = merge.part(self._cost)
        if self._board is not None:
            self._board.merge(new, merge.left, merge.right)
        left, right = (self._slot.pop(old.position, None) for old in (merge.left, merge.right))
        del self.parts[merge.left.position], self.parts[merge.right.position]
        self.parts[new.position] = new
        slot = self._table.merge(new, merge.left, left, merge.right, right)
        self._slot[new.position] = slot
        self._push_row(slot, self._bounds(slot))

    def _alive(self, left: Part, right: Part) -> bool:
        return self.parts.get(left.position) is left and self.parts.get(right.position) is right

    def _bounds(self, row: int) -> NDArray[np.float64]:
        bounds = self._table.bounds(row, self._near_saving, self._cost.technique.additive)
        bounds[bounds <= self._above] = -inf
        return bounds

    def _push_row(self, row: int, bounds: NDArray[np.float64]) -> None:
        top = float(bounds.max())
        if top > -inf:
            heappush(self._tops, (-top, row, int(self._table.made[row])))

    def _open_row(self, top: float, row: int, made: int) -> None:
        """Take the best pair of bundles out of a row, and see what is in it."""
        if made != self._table.made[row]:
            return
        bounds = self._bounds(row)
        column = int(bounds.argmax())
        if bounds[column] >= -top and self._board is not None and not self._table.known[row, column]:
            self._look_up(self._board, row, bounds)
            bounds = self._bounds(row)
        elif bounds[column] >= -top:
            self._table.done[row].append(column)
            bounds[column] = -inf
            one, other = self._table.bundles[row], self._table.bundles[column]
            if len(one.members) == len(other.members) == 1:
                self._look_closer(one.members[0], other.members[0], self._table.least_rate(row, column))
            else:
                self._push_cell(row, column, 0, int(row == column))
        # Else somebody in it was merged away since, and the row waits under a lower bound.
        self._push_row(row, bounds)

    def _look_up(self, board: Board, row: int, bounds: NDArray[np.float64]) -> None:
        """Common edges of this row with all that would lead before anything else does, and with the next best.

        An operation on bits is cheaper than another look at the row.
        """
        others = [-heap[0][0] for heap in (self._tops, self._cells, self._waiting, self._evaluated) if heap]
        reach = min(float(max(others, default=-inf)), float(bounds.max()))
        unknown = np.where(self._table.known[row], -inf, bounds)
        if len(unknown) > AT_ONCE:
            reach = min(reach, float(np.partition(unknown, -AT_ONCE)[-AT_ONCE]))
        leading = (unknown >= reach) & (unknown > -inf)
        one = self._table.bundles[row].members
        for column in np.flatnonzero(leading).tolist():
            other = self._table.bundles[column].members
            if len(one) == len(other) == 1:
                self._table.know(row, column, board.common(one[0], other[0]))
            else:
                self._table.known[row, column] = True

    def _push_cell(self, row: int, column: int, i: int, j: int) -> None:
        one, other = self._table.bundles[row].members, self._table.bundles[column].members
        if i < len(one) and j < len(other):
            bound = self._bound(one[i], other[j], self._table.least_rate(row, column))
            if bound > self._above:
                heappush(self._cells, (-bound, row, column, i, j))

    def _open_cell(self, row: int, column: int, i: int, j: int) -> None:
        """Bounds fall along both bundles: what follows a pair has one member in common with it."""
        one, other = self._table.bundles[row].members[i], self._table.bundles[column].members[j]
        self._push_cell(row, column, i, j + 1)
        if row == column and j == i + 1:
            self._push_cell(row, column, i + 1, j + 1)
        elif row != column and j == 0:
            self._push_cell(row, column, i + 1, 0)
        if self._alive(one, other):
            common = most_common_edges(one.edges.classes, other.edges.classes) * 1e6
            rate = (one.near_rate + other.near_rate) * (1 - SLACK) - common
            self._look_closer(one, other, max(rate, one.near_rate, other.near_rate))

    def _look_closer(self, one: Part, other: Part, rate: float) -> None:
        """Floors of rows are rough: what the technique knows of two loads may lower the bound."""
        bound = self._bound(one, other, rate)
        if bound > self._above:
            left, right = (one, other) if one.position < other.position else (other, one)
            heappush(self._waiting, (-bound, next(self._serial), left, right))

    def _count(self, left: Part, right: Part) -> None:
        merge = self._evaluate(left, right)
        one, other = self._slot.get(left.position), self._slot.get(right.position)
        if one is not None and other is not None:
            self._table.know(one, other, float(left.rate + right.rate - merge.rate))
        if merge.gain > self._above:
            heappush(self._evaluated, (-merge.gain, left.position, right.position, next(self._serial), merge))

    def _bound(self, left: Part, right: Part, rate: float) -> float:
        """No less than the gain, if the merged edge rate is at least `rate`."""
        omega = self._cost.technique.joint_floor(left.near_floor, left.load, right.near_floor, right.load)
        before, after = self._near_saving + left.near_final + right.near_final, rate * omega
        return before - after + SLACK * (before + after)

    def _evaluate(self, left: Part, right: Part) -> Merge:
        self.counted += 1
        rate = self._board.edge_rate(left, right) if self._board else edge_rate(left.edges | right.edges)
        load = joint_load(left.load, right.load, self._cost.technique)
        before = left.rate * left.omega + right.rate * right.omega
        return Merge(self._saving + before - rate * self._cost.technique.omega(load, rate), left, right, rate, load)


def weave(queries: Sequence[tuple[int, ACQ]], saving: Fraction, cost: Cost) -> list[Part]:
    """Merge the queries of one grouping while that makes the plan cheaper; parts in the order of the workload."""
    weaving = Weaving(equal_edges(queries, cost), saving, cost, above=0)
    while (merge := weaving.best()) is not None:
        weaving.merge(merge)
    return sorted(weaving.parts.values(), key=lambda part: part.position)
