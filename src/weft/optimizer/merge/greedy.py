"""Greedy merging of trees, the papers' way, without counting the edges of most pairs.

The papers try all pairs in each round. Here a pair waits under an upper bound of its gain; only a pair whose bound
reaches the best gain so far is examined. The merges are the same: bounds are never too low, gains are exact, and of
equal gains the pair that comes first in the workload wins. Where counting the edges of a tree would take too long, its
edge rate is only enclosed between two bounds; then the merge with the greatest guaranteed gain is made.

    bundles of parts   each part alone; where there are too many, parts of equal slides together
    rows of bounds     from the edges that two bundles have in common at most: exact for two windows, sums for trees
    cells              the parts of two bundles, the best first, only while their bound leads
    pairs              the edges of a pair whose bound still leads are counted
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
from weft.optimizer.cost.operations import Cost
from weft.optimizer.edge_counting import EdgeBitmap
from weft.optimizer.merge.bounds import SLACK, PairBounds
from weft.optimizer.merge.bundle import Members, bundles
from weft.optimizer.merge.candidates import FoldedReading, Listed
from weft.optimizer.merge.part import Merge, Part, equal_edges, union

LISTED = 256
"""Pairs of a row that are listed together, the best ones."""

AT_ONCE = 16
"""Listed pairs whose common edges are looked up together."""

PAIRS_AT_ONCE = 1 << 12
"""Pairs of members of two bundles that are examined together."""


class Weaving:
    """The parts of one grouping and their merges, the best first.

    `saving` is what one tree less saves besides final aggregation: a pass over the rows, or a fold of the composite
    slices. Merges that cannot gain more than `above` are not kept. `counted` is the number of pairs whose edges were
    counted.
    """

    def __init__(self, parts: Iterable[Part], saving: Fraction, cost: Cost, above: float = -inf) -> None:
        self.parts = {part.position: part for part in parts}
        self.counted = 0
        self._saving, self._near_saving, self._cost, self._above = saving, float(saving), cost, above
        self._bitmap = EdgeBitmap.of({part: part.edges for part in self.parts.values()})
        self._serial = count()  # breaks ties, so that heaps never compare parts
        self._evaluated: list[tuple[Fraction, int, int, int, Merge]] = []  # heap by negative gain
        self._waiting: list[tuple[float, int, Part, Part]] = []  # heap by negative bound
        # Heap by negative bound: two bundles, and the least bound of the pairs of members examined so far.
        self._cells: list[tuple[float, int, int, float]] = []
        self._members: dict[int, Members] = {}
        self._table = PairBounds(bundles(self.parts.values(), cost.technique.additive), cost.technique)
        self._slot = {b.members[0].position: i for i, b in enumerate(self._table.bundles) if len(b.members) == 1}
        self._reading = FoldedReading.of(self._bitmap, self._table.bundles) if self._bitmap is not None else None
        self._tops: list[tuple[float, int, int]] = []  # heap by negative bound: the best of a row, when it was made
        self._lists: dict[int, Listed] = {}
        for row in range(len(self._table.bundles)):
            self._list_row(row)

    @property
    def kept_bounds(self) -> int:
        """How many numbers about pairs of parts are in memory."""
        return self._table.kept_bounds

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
        """Replace the two parts by the merged one."""
        new = merge.part(self._cost)
        if self._bitmap is not None:
            self._bitmap.merge(new, merge.left, merge.right)
        left, right = (self._slot.pop(old.position, None) for old in (merge.left, merge.right))
        del self.parts[merge.left.position], self.parts[merge.right.position]
        self.parts[new.position] = new
        read = self._reading.common(new) if self._reading is not None else None
        slot = self._table.merge(new, merge.left, left, merge.right, right, read)
        self._slot[new.position] = slot
        self._members.pop(slot, None)
        if right is not None:
            self._lists.pop(right, None)
        self._list_row(slot)

    def _alive(self, left: Part, right: Part) -> bool:
        return self.parts.get(left.position) is left and self.parts.get(right.position) is right

    def _list_row(self, row: int) -> None:
        """List the best pairs of a row that are still to be opened."""
        bounds = self._table.bounds(row, self._near_saving)
        best, rest = np.flatnonzero(bounds > self._above), -inf
        if len(best) > LISTED:
            best = np.argpartition(bounds, -LISTED)[-LISTED:]
            rest = float(bounds[best].min())
        self._lists[row] = Listed.of(bounds[best], best, rest)
        self._push_row(row)

    def _push_row(self, row: int) -> None:
        top = self._lists[row].top
        if top > -inf:
            heappush(self._tops, (-top, row, self._table.made[row]))

    def _open_row(self, top: float, row: int, made: int) -> None:
        """Take the best pair of bundles out of a row, and open it."""
        if made != self._table.made[row]:
            return
        listed = self._lists[row]
        if listed and not self._table.is_open(row, listed.column):
            listed.keep(self._table.are_open(row, listed.columns))  # merged away since
        if not listed:
            self._list_row(row)
            return
        column = listed.column
        if listed.top < -top:
            pass  # another row may have a better one
        elif self._bitmap is not None and not self._table.common_is_exact(row, column) and self._single(row, column):
            self._look_up(self._bitmap, row)
        else:
            listed.pop()
            self._table.opened[row].append(column)
            if self._single(row, column):
                one, other = self._table.bundles[row].members[0], self._table.bundles[column].members[0]
                self._look_closer(one, other, self._table.least_rate(row, column))
            else:
                self._open_cell(row, column, inf)
        self._push_row(row)

    def _single(self, row: int, column: int) -> bool:
        return len(self._table.bundles[row].members) == len(self._table.bundles[column].members) == 1

    def _look_up(self, bitmap: EdgeBitmap, row: int) -> None:
        """Count the common edges of a row and its best listed columns: bit operations cost less than opening pairs."""
        listed, table = self._lists[row], self._table
        listed.keep(table.are_open(row, listed.columns))
        unknown: list[int] = []
        kept: list[tuple[float, int]] = []
        tops, columns = listed.bounds.tolist(), listed.columns.tolist()
        while listed and len(unknown) < AT_ONCE:
            listed.pop()
            column = columns[listed.left]
            if table.common_is_exact(row, column) or not self._single(row, column):
                kept.append((tops[listed.left], column))
            else:
                unknown.append(column)
        common = bitmap.common(table.bundles[row].members[0], [table.bundles[c].members[0] for c in unknown])
        table.record_common(row, unknown, common)
        bounds = table.bounds_from_common(row, np.array(unknown), common, self._near_saving)
        kept += [(bound, column) for bound, column in zip(bounds.tolist(), unknown, strict=True) if bound > self._above]
        self._lists[row] = listed.joined(kept)

    def _open_cell(self, row: int, column: int, below: float) -> None:
        """Examine the best pairs of members of two bundles, or of one, whose bound is less than `below`."""
        one, other = self._columns(row), self._columns(column)
        rate = self._table.least_rate(row, column)
        bounds = self._pair_bounds(one, other, len(one.floors), 1, rate)[:, 0]
        rows = int(np.count_nonzero(bounds > self._above))  # bounds fall along both bundles
        columns = int(np.count_nonzero(self._pair_bounds(one, other, 1, len(other.floors), rate)[0] > self._above))
        bounds = self._pair_bounds(one, other, rows, columns, rate)
        bounds[(bounds >= below) | (bounds <= self._above)] = -inf
        if row == column:
            bounds[np.tril_indices(rows, 0, columns)] = -inf
        left = np.flatnonzero(bounds > -inf)
        if len(left) > PAIRS_AT_ONCE:
            least = float(np.partition(bounds.ravel()[left], -PAIRS_AT_ONCE)[-PAIRS_AT_ONCE])
            heappush(self._cells, (-least, row, column, least))
            left = left[bounds.ravel()[left] >= least]
        if not len(left):
            return
        common = one.common(other, rows, columns) * (1e6 * (1 + SLACK))
        members, others = self._table.bundles[row].members, self._table.bundles[column].members
        rates = (members[0].near_rate + others[0].near_rate) * (1 - SLACK) - common
        rates = np.maximum(rates, max(members[0].near_rate, others[0].near_rate))
        closer = self._pair_bounds(one, other, rows, columns, rates).ravel()[left]
        for pair in left[closer > self._above].tolist():
            left_part, right_part = members[pair // columns], others[pair % columns]
            if self._alive(left_part, right_part):
                self._look_closer(left_part, right_part, float(rates.flat[pair]))

    def _columns(self, row: int) -> Members:
        if row not in self._members:
            self._members[row] = Members.of(self._table.bundles[row])
        return self._members[row]

    def _pair_bounds(
        self, one: Members, other: Members, rows: int, columns: int, rate: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Upper bounds of the gain of each pair of the first members; floors of bundles add up."""
        before = self._near_saving + one.finals[:rows, None] + other.finals[None, :columns]
        after = rate * (one.floors[:rows, None] + other.floors[None, :columns])
        bounds: NDArray[np.float64] = before - after + SLACK * (before + after)
        return bounds

    def _look_closer(self, one: Part, other: Part, rate: float) -> None:
        """Floors of rows are rough: the joint floor of two loads may lower the bound."""
        bound = self._bound(one, other, rate)
        if bound > self._above:
            left, right = (one, other) if one.position < other.position else (other, one)
            heappush(self._waiting, (-bound, next(self._serial), left, right))

    def _count(self, left: Part, right: Part) -> None:
        merge = self._evaluate(left, right)
        one, other = self._slot.get(left.position), self._slot.get(right.position)
        if one is not None and other is not None:
            self._table.record_common(one, [other], np.array([float(left.rate + right.rate - merge.rates[0])]))
        if merge.gain > self._above:
            heappush(self._evaluated, (-merge.gain, left.position, right.position, next(self._serial), merge))

    def _bound(self, left: Part, right: Part, rate: float) -> float:
        """An upper bound of the gain, if the merged edge rate is at least `rate`."""
        omega = self._cost.technique.joint_floor(left.near_floor, left.load, right.near_floor, right.load)
        before, after = self._near_saving + left.near_final + right.near_final, rate * omega
        return before - after + SLACK * (before + after)

    def _evaluate(self, left: Part, right: Part) -> Merge:
        self.counted += 1
        pieces = left.pieces + right.pieces
        if self._bitmap is not None:
            rate = high = self._bitmap.edge_rate(left, right)
            omega = self._cost.technique.joint_omega(left.load, right.load, rate)
        else:
            pieces = (union(pieces),)
            rate, high, omega = self._cost.rates(pieces[0], left.load | right.load)
        before = left.rate * left.omega + right.rate * right.omega
        return Merge(self._saving + before - high * omega, left, right, pieces, (rate, high))


def weave(queries: Sequence[tuple[int, ACQ]], saving: Fraction, cost: Cost) -> list[Part]:
    """Merge the queries of one grouping while that makes the plan cheaper; parts in the order of the workload."""
    weaving = Weaving(equal_edges(queries, cost), saving, cost, above=0)
    while (merge := weaving.best()) is not None:
        weaving.merge(merge)
    return sorted(weaving.parts.values(), key=lambda part: part.position)
