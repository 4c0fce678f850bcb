"""Trees in the making, and two of them as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from weft.model import ACQ, Edges, Window
from weft.optimizer.cost import Cost, load_of
from weft.optimizer.edge_counting import edge_rate
from weft.optimizer.techniques import Load, Technique
from weft.plan.values import Tree


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
