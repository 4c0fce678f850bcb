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
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from math import gcd, inf, nextafter

import numpy as np
from numpy.typing import NDArray

from weft.model import ACQ, EdgeClass, Edges, Window
from weft.optimizer.cost import Cost, load_of
from weft.optimizer.edge_counting import Board, edge_rate
from weft.optimizer.techniques import Load, Technique
from weft.plan.values import Tree

SLACK = 1e-12
"""Bounds are floats, rounded up by far more than a few float operations can lose."""

MOST_ROWS = 6000
"""Parts up to which each is a bundle of its own: tighter bounds, and 300 MB of them."""

AT_ONCE = 24
"""Pairs of a row that are looked up together."""

LONGEST_SLIDE = 1 << 62
"""Longer ones are not for 64-bit arithmetic: their bounds are looser."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A tree in the making: what a merge needs to know, and the same once more as floats for bounds."""

    position: int
    """Of its first query: tells parts apart, and decides between equal gains."""
    queries: tuple[tuple[int, str], ...]
    """Positions in the workload, ascending, with names."""
    edges: Edges
    rate: Fraction
    load: Load
    """Without its shorter ranges, where the technique does not ask for them."""
    omega: Fraction
    near_rate: float
    near_final: float
    near_floor: float

    @classmethod
    def of(cls, queries: Sequence[tuple[int, ACQ]], cost: Cost) -> Part:
        windows = [q.window for _, q in queries]
        edges = Edges.of(dict.fromkeys(windows)) if len({w.slide for w in windows}) > 1 else _of_one_slide(windows)
        return cls.priced(
            tuple((i, q.name) for i, q in queries), edges, edge_rate(edges), load_of(windows, cost.technique), cost
        )

    @classmethod
    def of_tree(cls, queries: Sequence[tuple[int, ACQ]], tree: Tree, cost: Cost) -> Part:
        """The same for queries whose tree is known."""
        load = load_of([q.window for _, q in queries], cost.technique)
        return cls.priced(tuple((i, q.name) for i, q in queries), tree.edges, tree.edge_rate, load, cost)

    @classmethod
    def priced(
        cls, queries: tuple[tuple[int, str], ...], edges: Edges, rate: Fraction, load: Load, cost: Cost
    ) -> Part:
        omega = cost.technique.omega(load, rate)
        floor = omega if cost.technique.floor is cost.technique.omega else cost.technique.floor(load, rate)
        near_rate, near_omega = float(rate), float(omega)
        near_floor = near_omega if floor is omega else float(floor)
        return cls(queries[0][0], queries, edges, rate, load, omega, near_rate, near_rate * near_omega, near_floor)

    def tree(self, cost: Cost) -> Tree:
        return Tree(tuple(n for _, n in self.queries), self.edges, self.rate, self.omega, cost.technique.name)


def _of_one_slide(windows: Sequence[Window]) -> Edges:
    """Classes of one slide are equal or have no edge in common."""
    ends = dict.fromkeys((w.offset, w.length) for w in windows)
    slide = windows[0].slide
    shifts = {shift % slide for offset, length in ends for shift in (offset, offset + length)}
    return Edges(tuple((slide, shift) for shift in sorted(shifts)))


def joint_load(left: Load, right: Load, technique: Technique) -> Load:
    if not technique.together:
        return left | right
    windows = left.windows + right.windows
    longest = max(left.ranges[-1][0], right.ranges[-1][0])
    return Load(left.overlap + right.overlap, ((longest, windows),), windows)


@dataclass(frozen=True, slots=True)
class Merge:
    """Two parts as one: `gain` is by how much the plan gets cheaper, negative where it gets dearer."""

    gain: Fraction
    left: Part
    right: Part
    rate: Fraction
    load: Load

    def part(self, cost: Cost) -> Part:
        queries = tuple(sorted(self.left.queries + self.right.queries))
        return Part.priced(queries, self.left.edges | self.right.edges, self.rate, self.load, cost)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Parts with equal slides, as many classes, and so equal edge rates; the lowest floor first.

    `slide` is 0 where a part has several.
    """

    members: tuple[Part, ...]
    slide: int
    classes: int


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
            common = _most_common_edges(one.edges.classes, other.edges.classes) * 1e6
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


def _most_common_edges(left: tuple[EdgeClass, ...], right: tuple[EdgeClass, ...]) -> float:
    """No less than the density of common edges: exact for two windows, whose own classes never meet."""
    total = 0.0
    for slide, shift in left:
        for s, h in right:
            common = gcd(slide, s)
            if (shift - h) % common == 0:
                total += common / (slide * s)
    return total


def weave(queries: Sequence[tuple[int, ACQ]], saving: Fraction, cost: Cost) -> list[Part]:
    """Merge the queries of one grouping while that makes the plan cheaper; parts in the order of the workload."""
    weaving = Weaving(equal_edges(queries, cost), saving, cost, above=0)
    while (merge := weaving.best()) is not None:
        weaving.merge(merge)
    return sorted(weaving.parts.values(), key=lambda part: part.position)


def equal_edges(queries: Sequence[tuple[int, ACQ]], cost: Cost) -> list[Part]:
    """Queries whose edges are the same share a tree for nothing, so they are one part before anything is counted."""
    classes: dict[tuple[int, int, int], list[tuple[int, ACQ]]] = {}
    for positioned in queries:
        window = positioned[1].window
        slide = window.slide
        begin, end = window.offset % slide, (window.offset + window.length) % slide
        key = (slide, begin, end) if begin < end else (slide, end, begin)
        members = classes.get(key)
        if members is None:
            classes[key] = [positioned]
        else:
            members.append(positioned)
    return [Part.of(members, cost) for members in classes.values()]
