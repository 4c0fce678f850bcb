"""Weave Share as paper 1 runs it; each of its three short cuts can be left out, as in its figure 14.

    cost_lookup     a table of what merging each pair would save; only pairs with the new tree are counted again
    edge_bitmap     a tree keeps its edges as marks: an edge is looked up once, not compared with every query
    smaller_probes  the tree with fewer edges in the composite slide looks its edges up in the other

weft plans with `weft.optimizer.merge.greedy`, which is compared with this planner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import gcd, lcm
from typing import TYPE_CHECKING

from weft.model import EdgeClass, Window
from weft.optimizer.edge_counting.bit_set import LONGEST_PERIOD, CompositeSlideTooLong

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MICROSECONDS_A_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class ShortCuts:
    cost_lookup: bool = True
    edge_bitmap: bool = True
    smaller_probes: bool = True


ALL = ShortCuts()


@dataclass(frozen=True, slots=True)
class Woven:
    """Trees as positions of windows, in the order of their first; pairs whose edges were counted; edges looked up."""

    trees: tuple[tuple[int, ...], ...]
    counted: int
    probes: int


@dataclass(frozen=True, slots=True, eq=False)
class Bitmap:
    """A tree: its classes, and the marks of one composite slide."""

    members: tuple[int, ...]
    classes: tuple[EdgeClass, ...]
    marks: NDArray[np.bool_]
    edges: int
    overlap: Fraction

    @property
    def density(self) -> Fraction:
        return Fraction(self.edges, len(self.marks))


def weave_by_probing(windows: Sequence[Window], saving: Fraction, short_cuts: ShortCuts = ALL) -> Woven:
    """Merge the pair that saves most, until no merge saves; `saving` is what one tree less saves per second."""
    unit = gcd(*(n for w in windows for n in (w.slide, w.length, w.offset)))
    a_unit = saving * unit / MICROSECONDS_A_SECOND
    trees: dict[int, Bitmap] = {i: _bitmap(i, w, unit) for i, w in enumerate(windows)}
    gains: dict[tuple[int, int], Fraction] = {}
    counted = probes = 0
    while True:
        for i, j in combinations(sorted(trees), 2):
            if (i, j) not in gains:
                left, right = trees[i], trees[j]
                common, looked = _common(left, right, short_cuts)
                counted, probes = counted + 1, probes + looked
                together = left.density + right.density - common
                before = left.density * left.overlap + right.density * right.overlap
                gains[i, j] = a_unit + before - together * (left.overlap + right.overlap)
        best = max(gains, key=lambda pair: (gains[pair], -pair[0], -pair[1]), default=None)
        if best is None or gains[best] <= 0:
            return Woven(tuple(tree.members for tree in trees.values()), counted, probes)
        i, j = best
        trees[i] = _merged(trees[i], trees.pop(j))
        kept = short_cuts.cost_lookup
        gains = {pair: gain for pair, gain in gains.items() if kept and not {i, j} & set(pair)}


def _bitmap(member: int, window: Window, unit: int) -> Bitmap:
    import numpy as np

    slide = window.slide // unit
    classes = tuple((slide, shift // unit) for _, shift in window.classes)
    marks = np.zeros(_checked(slide), np.bool_)
    for _, shift in classes:
        marks[shift] = True
    return Bitmap((member,), classes, marks, len(classes), Fraction(window.length, window.slide))


def _checked(period: int) -> int:
    if period > LONGEST_PERIOD:
        raise CompositeSlideTooLong(
            f"the composite slide is {period} units long, a bit set holds {LONGEST_PERIOD}; use the exact counter"
        )
    return period


def _common(left: Bitmap, right: Bitmap, short_cuts: ShortCuts) -> tuple[Fraction, int]:
    """The density of common edges, and how many comparisons that took."""
    import numpy as np

    if short_cuts.smaller_probes and right.density < left.density:
        left, right = right, left
    period = _checked(lcm(len(left.marks), len(right.marks)))
    edges = _edges(left, period)
    if short_cuts.edge_bitmap:
        common, probes = int(np.count_nonzero(right.marks[edges % len(right.marks)])), len(edges)
    else:
        hits = np.zeros(len(edges), np.bool_)
        for slide, shift in right.classes:
            hits |= edges % slide == shift
        common, probes = int(np.count_nonzero(hits)), len(edges) * len(right.classes)
    return Fraction(common, period), probes


def _edges(tree: Bitmap, period: int) -> NDArray[np.int64]:
    """The tree's edges in a multiple of its composite slide."""
    import numpy as np

    times = period // len(tree.marks)
    own = np.flatnonzero(tree.marks)
    every = np.arange(times, dtype=np.int64)[:, None] * len(tree.marks) + own[None, :]
    return every.reshape(-1)


def _merged(left: Bitmap, right: Bitmap) -> Bitmap:
    import numpy as np

    period = _checked(lcm(len(left.marks), len(right.marks)))
    marks = np.tile(left.marks, period // len(left.marks))
    marks |= np.tile(right.marks, period // len(right.marks))
    classes = tuple(dict.fromkeys(left.classes + right.classes))
    members = tuple(sorted(left.members + right.members))
    return Bitmap(members, classes, marks, int(np.count_nonzero(marks)), left.overlap + right.overlap)
