"""Omega: how many final operations each slice costs, a technique at a time (dissertation, table 11, and weft's own)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import factorial

from weft.model import Window


@dataclass(frozen=True, slots=True)
class Load:
    """What a tree's windows ask of a technique.

    `overlap` is the sum of range / slide; `ranges` are seconds, ascending, each with how many windows have it.
    """

    overlap: Fraction
    ranges: tuple[tuple[Fraction, int], ...]
    windows: int
    """nQ in the papers."""

    @classmethod
    def of(cls, windows: Iterable[Window]) -> Load:
        overlap, ranges = Fraction(0), dict[Fraction, int]()
        for window in windows:
            overlap += Fraction(window.length, window.slide)
            seconds = Fraction(window.length, 1_000_000)
            ranges[seconds] = ranges.get(seconds, 0) + 1
        return cls(overlap, tuple(sorted(ranges.items())), sum(ranges.values()))

    def __or__(self, other: Load) -> Load:
        ranges = dict(self.ranges)
        for seconds, count in other.ranges:
            ranges[seconds] = ranges.get(seconds, 0) + count
        return Load(self.overlap + other.overlap, tuple(sorted(ranges.items())), self.windows + other.windows)


@dataclass(frozen=True, slots=True)
class Technique:
    """`omega(load, edge_rate)`, and a floor of it that never falls when the edge rate or the load grows.

    `joint_floor(floor, load, floor, load)` is at most the omega of two loads in one tree, at any edge rate not below
    those of the two floors: what lets a search skip merges without counting their edges.
    """

    name: str
    omega: Callable[[Load, Fraction], Fraction]
    floor: Callable[[Load, Fraction], Fraction]
    joint_floor: Callable[[float, Load, float, Load], float]
    additive: bool = False
    """The floor of several loads in one tree is the sum of theirs: no tree costs less than its queries do alone."""
    together: bool = False
    """Queries with equal edges lose nothing by sharing a tree, whatever else is in it.

    Where omega is a sum that no rate changes, the one in the tree with more slices goes to the other's. Where only the
    longest range counts, the one with the shorter range does. Its new tree stays as it was, and the old one loses.
    """
    ranged: bool = True
    """Omega looks at the ranges. Where it does not, searches need not carry them from tree to tree."""


def _panes(load: Load, edge_rate: Fraction) -> Fraction:
    return load.overlap


def _flat_fat(load: Load, edge_rate: Fraction) -> Fraction:
    return sum((count * _flat_fat_steps(seconds * edge_rate) for seconds, count in load.ranges), Fraction(0))


def _flat_fat_floor(load: Load, edge_rate: Fraction) -> Fraction:
    """The steps fall only where the partials reach a power of two: the lowest ahead is here or at the next one."""
    total = Fraction(0)
    for seconds, count in load.ranges:
        partials = seconds * edge_rate
        power = Fraction(1 << max(0, -(-partials.numerator // partials.denominator) - 1).bit_length())
        total += count * min(_flat_fat_steps(partials), _flat_fat_steps(power))
    return total


def _flat_fat_steps(partials: Fraction) -> Fraction:
    """`floor(log2(nP - 1)) + (nP - 1) / 2**floor(log2 nP)`; below two partials the logarithm counts as no step."""
    whole = max(0, int(partials - 1).bit_length() - 1)
    return whole + (partials - 1) / (1 << int(partials).bit_length() - 1)


def _flat_fit(load: Load, edge_rate: Fraction) -> Fraction:
    return Fraction(3 * load.windows)


def _panes_inv(load: Load, edge_rate: Fraction) -> Fraction:
    """A running aggregate for each window: one in, one out."""
    return Fraction(2 * load.windows)


def _two_stacks(load: Load, edge_rate: Fraction) -> Fraction:
    """Stacks for each window. Table 11 has neither these nor DABA: the operations a slide are table 4's."""
    return Fraction(3 * load.windows)


def _daba(load: Load, edge_rate: Fraction) -> Fraction:
    return Fraction(5 * load.windows)


def _slick_deque_inv(load: Load, edge_rate: Fraction) -> Fraction:
    """A running aggregate for each different number of partials, and numbers differ where ranges do."""
    return Fraction(2 * len(load.ranges))


def _slick_deque_non_inv(load: Load, edge_rate: Fraction) -> Fraction:
    longest = load.ranges[-1][0] * edge_rate
    return 2 - 2 / longest + load.windows + DEQUE_LENGTH[min(int(longest), len(DEQUE_LENGTH) - 1)]


KEPT = Fraction(1, 20)
"""Operations that a kept slice costs in each second: every batch merges what it brings into what is kept.
A guess, not a measurement: it keeps day-long ranges out of one-second slices."""


def _blocks(load: Load, edge_rate: Fraction) -> Fraction:
    """weft's own: a slice is combined twice for the tables and kept as long as the longest range.

    An answer costs three operations whatever the slices; they are the same in every plan and left out.
    """
    return 2 + KEPT * load.ranges[-1][0]


DEQUE_LENGTH = tuple(sum((Fraction(1, factorial(i)) for i in range(1, n + 1)), Fraction(0)) for n in range(21))
"""The mean length of the deque over n partials. All terms after the twentieth together are below 1e-19."""


def _sum(floor: float, load: Load, other_floor: float, other_load: Load) -> float:
    return floor + other_floor


def _longer(floor: float, load: Load, other_floor: float, other_load: Load) -> float:
    return max(floor, other_floor)


def _different_ranges(floor: float, load: Load, other_floor: float, other_load: Load) -> float:
    return 2.0 * len(dict(load.ranges).keys() | dict(other_load.ranges).keys())


def _longer_and_windows_of_the_other(floor: float, load: Load, other_floor: float, other_load: Load) -> float:
    return max(floor + other_load.windows, other_floor + load.windows)


TECHNIQUES: Mapping[str, Technique] = {
    t.name: t
    for t in (
        Technique("blocks", _blocks, _blocks, _longer, together=True),
        # Costs what `blocks` does: it serves everything, and another is chosen only where that is faster.
        Technique("auto", _blocks, _blocks, _longer, together=True),
        Technique("panes", _panes, _panes, _sum, additive=True, together=True, ranged=False),
        Technique("panes_inv", _panes_inv, _panes_inv, _sum, additive=True, together=True, ranged=False),
        Technique("flat_fat", _flat_fat, _flat_fat_floor, _sum, additive=True),
        Technique("b_int", _flat_fat, _flat_fat_floor, _sum, additive=True),
        Technique("two_stacks", _two_stacks, _two_stacks, _sum, additive=True, together=True, ranged=False),
        Technique("daba", _daba, _daba, _sum, additive=True, together=True, ranged=False),
        Technique("flat_fit", _flat_fit, _flat_fit, _sum, additive=True, together=True, ranged=False),
        Technique("slick_deque_inv", _slick_deque_inv, _slick_deque_inv, _different_ranges),
        Technique("slick_deque_non_inv", _slick_deque_non_inv, _slick_deque_non_inv, _longer_and_windows_of_the_other),
    )
}
