"""Greedy merging of trees, the papers' way, without counting the edges of most pairs.

The papers try all pairs in each round. Here a pair waits under an upper bound of its gain; only a pair whose bound
reaches the best gain known is looked at closer. The merges are the same: bounds are never too low, gains are exact,
and of equal gains the pair that comes first in the workload wins.

    bundles of parts  ->  rows of bounds, one for each pair of bundles     numpy, no part is touched
    a row's best      ->  its parts two by two, the cheapest first         only while their bound leads
    two parts         ->  the edges they may have in common                bounds the merged edge rate from below
    what still leads  ->  counted
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
from weft.optimizer.cost import Cost
from weft.optimizer.edge_counting import Board, edge_rate
from weft.optimizer.techniques import Load, Technique
from weft.plan.values import Tree

FEW_PAIRS = 400
"""Pairs of classes up to which bounding their common edges is cheaper than counting them."""

SLACK = 1e-9
"""Bounds are floats, rounded up by far more than a few float operations can lose."""

MOST_ROWS = 6000
"""Parts up to which each is a bundle of its own: tighter bounds, and 150 MB of them."""

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
        edges = Edges.of(dict.fromkeys(windows))
        return cls.priced(
            tuple((i, q.name) for i, q in queries), edges, edge_rate(edges), load_of(windows, cost.technique), cost
        )

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


def load_of(windows: Sequence[Window], technique: Technique) -> Load:
    """What the technique has to know of the windows."""
    if not technique.together:
        return Load.of(windows)
    # Omega is a sum over the windows, or hangs on the longest range: the other ranges need no list.
    lengths: dict[int, int] = {}  # windows of one slide add up without a fraction
    for window in windows:
        lengths[window.slide] = lengths.get(window.slide, 0) + window.length
    overlap = sum((Fraction(length, slide) for slide, length in lengths.items()), Fraction(0))
    longest = Fraction(max(window.length for window in windows), 1_000_000)
    return Load(overlap, ((longest, len(windows)),), len(windows))


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
        self._adds = cost.technique.additive
        self._board = Board.of({part: part.edges for part in self.parts.values()})
        self._at_least: dict[Part, dict[Part, float]] = {}  # edge rates that merged pairs reach
        self._serial = count()  # keeps heaps from comparing parts where a merged part stands in an old one's place
        self._evaluated: list[tuple[Fraction, int, int, int, Merge]] = []  # heap by negative gain
        self._waiting: list[tuple[float, int, bool, Part, Part]] = []  # heap by negative bound; True: refined
        self._cells: list[tuple[float, int, int, int, int]] = []  # heap by negative bound: bundles, members
        self._rows: list[NDArray[np.float64] | None] = []  # for each bundle, bounds with it and the bundles before it
        self._tops: list[tuple[float, int]] = []  # heap of rows by their negative greatest bound
        self._bundles: list[Bundle] = bundles(self.parts.values(), self._adds)
        self._place = {b.members[0].position: i for i, b in enumerate(self._bundles) if len(b.members) == 1}
        self._table = Table(self._bundles)
        for row in range(len(self._bundles)):
            self._add_row(row)

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
            if min(row, cell, pair) > reach or min(row, cell, pair) == inf:
                return self._evaluated[0][4] if self._evaluated else None
            if pair <= row and pair <= cell:
                *_, refined, left, right = heappop(self._waiting)
                if self._alive(left, right):
                    self._look_closer(left, right, refined)
            elif cell <= row:
                self._open_cell(*heappop(self._cells)[1:])
            else:
                self._open_row(heappop(self._tops)[1])

    def merge(self, merge: Merge) -> None:
        """Put the merged part in the place of the two."""
        new = merge.part(self._cost)
        if self._board is not None:
            self._board.merge(new, merge.left, merge.right)
        for old in (merge.left, merge.right):
            del self.parts[old.position]
            if old.position in self._place:
                place = self._place.pop(old.position)
                self._table.alive[place] = False
                self._rows[place] = None
        # Edges are never lost by merging: what half of a pair reached, the whole reaches.
        reached = self._at_least.pop(merge.left, {})
        for other, rate in self._at_least.pop(merge.right, {}).items():
            reached[other] = max(rate, reached.get(other, 0.0))
        for other, rate in reached.items():
            if self.parts.get(other.position) is other:
                self._at_most_known(new, other, rate)
        self.parts[new.position] = new
        self._place[new.position] = len(self._bundles)
        self._bundles.append(Bundle((new,), 0, 0))
        self._table.add(self._bundles[-1])
        self._add_row(len(self._bundles) - 1)

    def _alive(self, left: Part, right: Part) -> bool:
        return self.parts.get(left.position) is left and self.parts.get(right.position) is right

    def _add_row(self, row: int) -> None:
        bundle = self._bundles[row]
        rates = self._table.least_rates(row)
        if len(bundle.members) == 1:
            for other, rate in self._at_least.get(bundle.members[0], {}).items():
                place = self._place.get(other.position)
                if place is not None and place < row:
                    rates[place] = max(rates[place], rate)
        bounds = self._table.bounds(row, rates, self._near_saving, self._adds)
        if len(bundle.members) == 1:
            bounds[row] = -inf
        bounds[bounds <= self._above] = -inf
        self._rows.append(bounds)
        self._push_row(row, bounds)

    def _push_row(self, row: int, bounds: NDArray[np.float64]) -> None:
        top = float(bounds.max())
        if top > -inf:
            heappush(self._tops, (-top, row))

    def _open_row(self, row: int) -> None:
        """Take the best pair of bundles out of a row, and see what is in it."""
        bounds = self._rows[row]
        if bounds is None:
            return
        column = int(bounds.argmax())
        if not self._table.alive[column]:
            bounds[~self._table.alive[: row + 1]] = -inf
        else:
            bounds[column] = -inf
            one, other = self._bundles[row], self._bundles[column]
            if len(one.members) == len(other.members) == 1:
                self._look_closer(*_pair(one.members[0], other.members[0]), refined=False)
            else:
                self._push_cell(row, column, 0, int(row == column))
        self._push_row(row, bounds)

    def _push_cell(self, row: int, column: int, i: int, j: int) -> None:
        one, other = self._bundles[row].members, self._bundles[column].members
        if i < len(one) and j < len(other):
            rate = self._table.least_rate(row, column)
            bound = self._bound(one[i], other[j], rate)
            if bound > self._above:
                heappush(self._cells, (-bound, row, column, i, j))

    def _open_cell(self, row: int, column: int, i: int, j: int) -> None:
        """Bounds fall along both bundles: what follows a pair has one member in common with it."""
        one, other = self._bundles[row].members[i], self._bundles[column].members[j]
        self._push_cell(row, column, i, j + 1)
        first = i + 1 if row == column else 0
        if j == first:
            self._push_cell(row, column, i + 1, first + 1 if row == column else 0)
        if self._alive(one, other):
            self._look_closer(*_pair(one, other), refined=False)

    def _look_closer(self, left: Part, right: Part, refined: bool) -> None:
        few = len(left.edges.classes) * len(right.edges.classes) <= FEW_PAIRS
        if not refined and (few or not self._adds):
            rate = max(left.near_rate, right.near_rate, self._at_least.get(left, {}).get(right, 0.0))
            if few:
                common = _most_common_edges(left.edges.classes, right.edges.classes) * 1e6
                rate = max(rate, (left.near_rate + right.near_rate) * (1 - SLACK) - common)
            self._at_most_known(left, right, rate)
            bound = self._bound(left, right, rate)
            if bound > self._above:
                heappush(self._waiting, (-bound, next(self._serial), True, left, right))
            return
        merge = self._evaluate(left, right)
        self._at_most_known(left, right, float(merge.rate))
        if merge.gain > self._above:
            heappush(self._evaluated, (-merge.gain, left.position, right.position, next(self._serial), merge))

    def _at_most_known(self, left: Part, right: Part, rate: float) -> None:
        self._at_least.setdefault(left, {})[right] = rate
        self._at_least.setdefault(right, {})[left] = rate

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
    """What bounds need to know of bundles, as columns."""

    def __init__(self, bundles: Sequence[Bundle]) -> None:
        self._size = 0
        room = 2 * len(bundles) + 1  # each merge adds a bundle and there are fewer merges than parts
        self._slides = np.zeros(room, np.int64)
        self._classes = np.zeros(room, np.int64)
        self._rates, self._finals, self._floors = np.zeros(room), np.zeros(room), np.zeros(room)
        self.alive = np.zeros(room, np.bool_)
        for bundle in bundles:
            self.add(bundle)

    def add(self, bundle: Bundle) -> None:
        if self._size == len(self.alive):
            for name in ("_slides", "_classes", "_rates", "_finals", "_floors", "alive"):
                column = getattr(self, name)
                setattr(self, name, np.concatenate([column, np.zeros_like(column)]))
        first, i = bundle.members[0], self._size
        self._slides[i], self._classes[i] = bundle.slide, bundle.classes
        self._rates[i], self._finals[i], self._floors[i] = first.near_rate, first.near_final, first.near_floor
        self.alive[i] = True
        self._size += 1

    def least_rates(self, row: int) -> NDArray[np.float64]:
        """For this bundle with itself and each before it, an edge rate that no merged pair of theirs is below."""
        upto = slice(0, row + 1)
        rates: NDArray[np.float64] = np.maximum(self._rates[upto], self._rates[row])
        if self._slides[row]:
            slides, classes = self._slides[upto], self._classes[upto]
            slide, own = int(self._slides[row]), int(self._classes[row])
            with np.errstate(divide="ignore", invalid="ignore"):
                # Two classes meet once in the least common multiple of their slides, or never.
                meet = np.gcd(slides, slide) * (classes * own) / (slides.astype(float) * slide)
            # Different parts of one slide have at most one class in common, and none if they have but one.
            meet[slides == slide] = (np.maximum(classes[slides == slide], own) > 1) / slide
            apart = (self._rates[upto] + self._rates[row]) * (1 - SLACK) - meet * 1e6
            np.maximum(rates, apart, out=rates, where=slides > 0)
        return rates

    def least_rate(self, row: int, column: int) -> float:
        return float(self.least_rates(max(row, column))[min(row, column)])

    def bounds(self, row: int, rates: NDArray[np.float64], saving: float, adds: bool) -> NDArray[np.float64]:
        """No less than the gain of any pair of parts from the two bundles."""
        upto = slice(0, row + 1)
        floors = self._floors[upto] + self._floors[row] if adds else np.maximum(self._floors[upto], self._floors[row])
        before, after = saving + self._finals[upto] + self._finals[row], rates * floors
        bounds: NDArray[np.float64] = before - after + SLACK * (before + after)
        bounds[~self.alive[upto]] = -inf
        return bounds


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


def _pair(one: Part, other: Part) -> tuple[Part, Part]:
    """In the order of the workload."""
    return (one, other) if one.position < other.position else (other, one)


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
