"""Trees under construction, and the merge of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from weft.model import ACQ, Edges
from weft.optimizer.cost.omega import WindowLoad
from weft.optimizer.cost.operations import Cost, load_of, load_of_one_slide
from weft.optimizer.edge_counting import edge_rate
from weft.plan.logical import Tree


@dataclass(slots=True, eq=False)
class Part:
    """A tree under construction: what a merge needs, as exact numbers and again as floats for bounds.

    Immutable, but not a frozen dataclass: a million queries make half a million parts, and frozen ones take twice as
    long to create.
    """

    position: int
    """Of its first query: identifies the part, and decides between equal gains."""
    queries: tuple[tuple[int, str], ...]
    """Positions in the workload, ascending, with names."""
    pieces: tuple[Edges, ...]
    """Their union are the edges of the part. It is computed on demand: most merged parts are merged again."""
    rate: Fraction
    high: Fraction
    """The edge rate is between `rate` and `high`; they are equal where edges were counted."""
    load: WindowLoad
    """Without its ranges, where the technique does not use them."""
    omega: Fraction
    near_rate: float
    near_high: float
    near_final: float
    near_floor: float

    @classmethod
    def of_class(
        cls, slide: int, begin: int, end: int, queries: Sequence[tuple[int, str]], lengths: Sequence[int], cost: Cost
    ) -> Part:
        """Queries that all begin and end at these shifts of one slide, in ascending order."""
        edges = Edges(((slide, begin),) if begin == end else ((slide, begin), (slide, end)))
        rate = edge_rate(edges)
        load = load_of_one_slide(slide, lengths, cost.technique)
        return cls.priced(tuple(queries), (edges,), (rate, rate), load, cost)

    @classmethod
    def of_tree(cls, queries: Sequence[tuple[int, ACQ]], tree: Tree, cost: Cost) -> Part:
        """The part of queries that have a tree already."""
        rates = (tree.edge_rate, tree.edge_rate if tree.edge_rate_high is None else tree.edge_rate_high)
        load = load_of([q.window for _, q in queries], cost.technique)
        return cls.priced(tuple((i, q.name) for i, q in queries), (tree.edges,), rates, load, cost)

    @classmethod
    def priced(
        cls,
        queries: tuple[tuple[int, str], ...],
        pieces: tuple[Edges, ...],
        rates: tuple[Fraction, Fraction],
        load: WindowLoad,
        cost: Cost,
    ) -> Part:
        rate, high = rates
        omega = cost.technique.omega(load, rate)
        floor = omega if cost.technique.floor is cost.technique.omega else cost.technique.floor(load, rate)
        near_rate, near_omega = float(rate), float(omega)
        near_floor = near_omega if floor is omega else float(floor)
        near_high, near_final = near_rate if high is rate else float(high), near_rate * near_omega
        position = queries[0][0]
        return cls(position, queries, pieces, rate, high, load, omega, near_rate, near_high, near_final, near_floor)

    @property
    def edges(self) -> Edges:
        pieces = self.pieces
        return pieces[0] if len(pieces) == 1 else union(pieces)

    def tree(self, cost: Cost) -> Tree:
        high = None if self.high is self.rate or self.high == self.rate else self.high
        names = tuple([name for _, name in self.queries])
        return Tree(names, self.edges, self.rate, self.omega, cost.technique.name, edge_rate_high=high)


def union(pieces: Sequence[Edges]) -> Edges:
    return pieces[0] if len(pieces) == 1 else Edges.of_classes(c for piece in pieces for c in piece.classes)


@dataclass(frozen=True, slots=True)
class Merge:
    """The merge of two parts: `gain` is how much cheaper the plan gets, negative where it gets more expensive.

    Where the edge rate is only enclosed, `gain` is a lower bound.
    """

    gain: Fraction
    left: Part
    right: Part
    pieces: tuple[Edges, ...]
    rates: tuple[Fraction, Fraction]

    def part(self, cost: Cost) -> Part:
        queries = tuple(sorted(self.left.queries + self.right.queries))
        return Part.priced(queries, self.pieces, self.rates, self.left.load | self.right.load, cost)


def equal_edges(queries: Sequence[tuple[int, ACQ]], cost: Cost) -> list[Part]:
    """Queries with equal edges share a tree at no cost, so they are one part before anything is counted."""
    classes: dict[tuple[int, int, int], tuple[list[tuple[int, str]], list[int]]] = {}
    for position, query in queries:
        window = query.window
        slide, length = window.slide, window.length
        begin = window.offset % slide
        end = (begin + length) % slide
        key = (slide, begin, end) if begin < end else (slide, end, begin)
        members = classes.get(key)
        if members is None:
            classes[key] = [(position, query.name)], [length]
        else:
            members[0].append((position, query.name))
            members[1].append(length)
    return [Part.of_class(*key, *members, cost) for key, members in classes.items()]
