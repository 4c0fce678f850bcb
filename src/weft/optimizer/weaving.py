"""Greedy merging of trees, the papers' way, without counting the edges of most pairs.

The papers try all pairs in each round. Here a pair waits under an upper bound of its gain; only a pair whose bound
reaches the best gain known is looked at closer. The merges are the same: bounds are never too low, gains are exact,
and of equal gains the pair that comes first in the workload wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import combinations, count
from math import gcd, inf, nextafter

from weft.model import ACQ, EdgeClass, Edges
from weft.optimizer.cost import Cost
from weft.optimizer.edge_counting import edge_rate
from weft.optimizer.techniques import Load
from weft.plan.values import Tree

FEW_PAIRS = 400
"""Pairs of classes up to which bounding their common edges is cheaper than counting them."""

SLACK = 1e-9
"""Bounds are floats, rounded up by far more than a few float operations can lose."""


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
    omega: Fraction
    near_rate: float
    near_final: float
    near_floor: float

    @classmethod
    def of(cls, queries: Sequence[tuple[int, ACQ]], cost: Cost) -> Part:
        edges, load = Edges.of(q.window for _, q in queries), Load.of(q.window for _, q in queries)
        return cls.priced(tuple((i, q.name) for i, q in queries), edges, load, cost)

    @classmethod
    def priced(cls, queries: tuple[tuple[int, str], ...], edges: Edges, load: Load, cost: Cost) -> Part:
        rate = edge_rate(edges)
        omega, floor = cost.technique.omega(load, rate), cost.technique.floor(load, rate)
        near = float(rate), float(rate * omega), float(floor)
        return cls(queries[0][0], queries, edges, rate, load, omega, *near)

    def tree(self, cost: Cost) -> Tree:
        return Tree(tuple(n for _, n in self.queries), self.edges, self.rate, self.omega, cost.technique.name)


@dataclass(frozen=True, slots=True)
class Merge:
    """Two parts as one: `gain` is by how much the plan gets cheaper, negative where it gets dearer."""

    gain: Fraction
    left: Part
    right: Part
    merged: Part


class Weaving:
    """The parts of one grouping and their merges, the best first.

    `saving` is what one tree less saves apart from final aggregation: a pass over the rows, or a fold of the
    composite slices. Merges that cannot gain more than `above` are not even remembered.
    """

    def __init__(self, parts: Iterable[Part], saving: Fraction, cost: Cost, above: float = -inf) -> None:
        self.parts = {part.position: part for part in parts}
        self._saving, self._near_saving, self._cost, self._above = saving, float(saving), cost, above
        self._at_least: dict[tuple[Part, Part], float] = {}  # edge rates that merged pairs reach
        self._serial = count()  # keeps heaps from comparing parts where a merged part stands in an old one's place
        self._evaluated: list[tuple[Fraction, int, int, int, Merge]] = []  # heap by negative gain
        self._waiting: list[tuple[float, int, bool, Part, Part]] = []  # heap by negative bound; True: refined
        for left, right in combinations(sorted(self.parts.values(), key=lambda p: p.position), 2):
            rate = left.near_rate if left.near_rate > right.near_rate else right.near_rate
            bound = self._bound(left, right, rate)
            if bound > above:
                self._waiting.append((-bound, next(self._serial), False, left, right))
        heapify(self._waiting)

    def best(self) -> Merge | None:
        """The merge with the greatest gain; None where there is none above the threshold."""
        while True:
            while self._evaluated and not self._alive(self._evaluated[0][4].left, self._evaluated[0][4].right):
                heappop(self._evaluated)
            # A bound that falls short even of the float below the gain falls short of the gain.
            reach = nextafter(float(self._evaluated[0][0]), inf) if self._evaluated else inf
            while self._waiting and self._waiting[0][0] <= reach:
                *_, refined, left, right = heappop(self._waiting)
                if self._alive(left, right):
                    self._look_closer(left, right, refined)
                    break
            else:
                return self._evaluated[0][4] if self._evaluated else None

    def merge(self, merge: Merge) -> None:
        """Put the merged part in the place of the two."""
        new = merge.merged
        del self.parts[merge.left.position], self.parts[merge.right.position]
        for other in self.parts.values():
            left, right = _pair(new, other)
            # Edges are never lost by merging: what half of a pair reached, the whole reaches.
            rate = max(
                new.near_rate,
                other.near_rate,
                self._at_least.get(_pair(merge.left, other), 0.0),
                self._at_least.get(_pair(merge.right, other), 0.0),
            )
            self._wait(left, right, rate, refined=False)
        self.parts[new.position] = new
        if len(self._waiting) > 2 * len(self.parts) ** 2:
            self._waiting = [entry for entry in self._waiting if self._alive(entry[3], entry[4])]
            heapify(self._waiting)

    def _alive(self, left: Part, right: Part) -> bool:
        return self.parts.get(left.position) is left and self.parts.get(right.position) is right

    def _look_closer(self, left: Part, right: Part, refined: bool) -> None:
        if not refined and len(left.edges.classes) * len(right.edges.classes) <= FEW_PAIRS:
            common = _most_common_edges(left.edges.classes, right.edges.classes) * 1e6
            rate = (left.near_rate + right.near_rate) * (1 - SLACK) - common
            rate = max(rate, left.near_rate, right.near_rate, self._at_least.get(_pair(left, right), 0.0))
            self._wait(left, right, rate, refined=True)
            return
        merge = self._evaluate(left, right)
        self._at_least[_pair(left, right)] = merge.merged.near_rate
        if merge.gain > self._above:
            heappush(self._evaluated, (-merge.gain, left.position, right.position, next(self._serial), merge))

    def _wait(self, left: Part, right: Part, rate: float, refined: bool) -> None:
        self._at_least[_pair(left, right)] = rate
        bound = self._bound(left, right, rate)
        if bound > self._above:
            heappush(self._waiting, (-bound, next(self._serial), refined, left, right))

    def _bound(self, left: Part, right: Part, rate: float) -> float:
        """No less than the gain, if the merged edge rate is at least `rate`."""
        omega = self._cost.technique.joint_floor(left.near_floor, left.load, right.near_floor, right.load)
        before, after = self._near_saving + left.near_final + right.near_final, rate * omega
        return before - after + SLACK * (before + after)

    def _evaluate(self, left: Part, right: Part) -> Merge:
        edges = left.edges | right.edges
        queries = tuple(sorted(left.queries + right.queries))
        merged = Part.priced(queries, edges, left.load | right.load, self._cost)
        before = left.rate * left.omega + right.rate * right.omega
        return Merge(self._saving + before - merged.rate * merged.omega, left, right, merged)


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
    classes: dict[Edges, list[tuple[int, ACQ]]] = {}
    for position, query in queries:
        classes.setdefault(Edges.of([query.window]), []).append((position, query))
    return [Part.of(members, cost) for members in classes.values()]
