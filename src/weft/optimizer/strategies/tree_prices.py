"""Fast exact prices of trees, for searches that try many.

A tree is a set of atoms, as the bits of an integer. An atom is a set of queries that is never split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from weft.model import ACQ, Edges
from weft.optimizer.cost.omega import WindowLoad
from weft.optimizer.cost.operations import Cost, load_of
from weft.optimizer.edge_counting import edge_rate_between
from weft.optimizer.strategies.base import Positioned
from weft.plan.logical import Tree

LONGEST_MARKS = 1 << 15
"""Most granules of a composite slide for which edges are marked as bits: a union takes a microsecond."""

FEW_ATOMS = 32
"""Most atoms for which thousands of trees can be tried if edges are not marked but kept as classes."""

REMEMBERED = 1 << 14
"""Trees whose marks and loads are kept, at most 64 MiB; then all are dropped. Searches return to few of them."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Several atoms together: their edges, marked or as classes, and their load."""

    marks: int
    edges: Edges | None
    load: WindowLoad
    final: Fraction
    most: Fraction
    """An upper bound; above `final` where the edge rate is only enclosed."""


class Pricing:
    """Final costs of the trees of one grouping.

    `spent` is the effort so far: 1 per union of marks; if edges are classes, which take much longer to count, the
    square of their number.
    """

    def __init__(self, atoms: Sequence[Sequence[Positioned]], cost: Cost) -> None:
        self.atoms = [tuple(atom) for atom in atoms]
        self.all = (1 << len(self.atoms)) - 1
        self.spent = 0
        self._cost = cost
        windows = [q.window for atom in self.atoms for _, q in atom]
        self._granule, self._origin = Edges.of(windows).granule
        # Of all slides, not of the union of all edges: the edges of one window may have a longer period.
        period = lcm(*(window.slide for window in windows))
        self._period = period // self._granule
        self._seconds = Fraction(period, 1_000_000)
        self._sums = [self._atom(atom) for atom in self.atoms]
        self._remembered: dict[int, Sum] = {}

    @property
    def quick(self) -> bool:
        """Whether a search can afford to try many trees."""
        return self._period <= LONGEST_MARKS or len(self.atoms) <= FEW_ATOMS

    @property
    def edge_rate(self) -> Fraction:
        """Slices per second if all queries of the grouping share one slicing."""
        return edge_rate_between(Edges.of(q.window for atom in self.atoms for _, q in atom))[0]

    def final(self, tree: int) -> Fraction:
        """Final operations per second; a lower bound where the edge rate is only enclosed."""
        return self._sum(tree).final

    def joined(self, left: int, right: int) -> Fraction:
        """The same for the union of two disjoint trees, but an upper bound: so gains are guaranteed."""
        union = left | right
        if union not in self._remembered:
            self._remember(union, self._join(self._sum(left), self._sum(right)))
        return self._remembered[union].most

    def tree(self, tree: int) -> Tree:
        return self._cost.tree(self.queries(tree))

    def queries(self, tree: int) -> list[ACQ]:
        """In the order of the workload."""
        return [q for _, q in sorted((p for i in bits(tree) for p in self.atoms[i]), key=lambda p: p[0])]

    def trees_of(self, names: Iterable[Sequence[str]]) -> list[int]:
        """Trees by the names of their queries; no atom may be in two of them."""
        atom_of = {q.name: i for i, atom in enumerate(self.atoms) for _, q in atom}
        return [sum(1 << i for i in {atom_of[name] for name in tree}) for tree in names]

    def _sum(self, tree: int) -> Sum:
        if tree & (tree - 1) == 0:
            return self._sums[tree.bit_length() - 1]
        if tree not in self._remembered:
            total: Sum | None = None
            for i in bits(tree):
                total = self._sums[i] if total is None else self._join(total, self._sums[i])
            assert total is not None
            self._remember(tree, total)
        return self._remembered[tree]

    def _remember(self, tree: int, total: Sum) -> None:
        if len(self._remembered) >= REMEMBERED:
            self._remembered.clear()
        self._remembered[tree] = total

    def _atom(self, atom: Sequence[Positioned]) -> Sum:
        windows = [q.window for _, q in atom]
        edges, load = Edges.of(windows), load_of(windows, self._cost.technique)
        if self._period > LONGEST_MARKS:
            return self._priced(0, edges, load)
        marks = 0
        for slide, shift in edges.classes:
            first = (shift - self._origin) % slide // self._granule
            marks |= _comb(slide // self._granule, self._period) << first
        return self._priced(marks, None, load)

    def _join(self, left: Sum, right: Sum) -> Sum:
        if left.edges is None or right.edges is None:
            self.spent += 1
            return self._priced(left.marks | right.marks, None, left.load | right.load)
        edges = left.edges | right.edges
        self.spent += len(edges.classes) ** 2
        return self._priced(0, edges, left.load | right.load)

    def _priced(self, marks: int, edges: Edges | None, load: WindowLoad) -> Sum:
        if edges is None:
            rate = marks.bit_count() / self._seconds
            final = rate * self._cost.technique.omega(load, rate)
            return Sum(marks, None, load, final, final)
        rate, high, omega = self._cost.rates(edges, load)
        return Sum(marks, edges, load, rate * omega, high * omega)


def bits(tree: int) -> Iterator[int]:
    """
    >>> list(bits(0b10110))
    [1, 2, 4]
    """
    while tree:
        lowest = tree & -tree
        yield lowest.bit_length() - 1
        tree ^= lowest


def _comb(step: int, period: int) -> int:
    """A mark at every multiple of `step` below `period`, which is a multiple of it too.

    >>> f"{_comb(3, 12):b}"
    '1001001001'
    """
    comb, length = 1, step
    while length < period:
        comb |= comb << length
        length *= 2
    return comb & (1 << period) - 1


def singles(group: Sequence[Positioned]) -> list[list[Positioned]]:
    """Each query an atom."""
    return [[query] for query in group]


def inseparable(group: Sequence[Positioned], cost: Cost) -> list[list[Positioned]]:
    """Queries with equal edges are one atom, if some optimal plan keeps them in one tree."""
    if not cost.technique.together:
        return singles(group)
    by_edges: dict[Edges, list[Positioned]] = {}
    for position, query in group:
        by_edges.setdefault(Edges.of([query.window]), []).append((position, query))
    return list(by_edges.values())


def whole_numbers(amounts: Sequence[Fraction]) -> list[int]:
    """The amounts as integers over their common denominator: sums and comparisons stay exact, and are cheap.

    >>> whole_numbers([Fraction(1, 2), Fraction(2, 3)])
    [3, 4]
    """
    unit = lcm(*(amount.denominator for amount in amounts))
    return [amount.numerator * (unit // amount.denominator) for amount in amounts]
