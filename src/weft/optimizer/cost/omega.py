"""Omega: final operations per slice, for each technique (dissertation, table 11, and weft's own)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate, chain
from math import factorial
from typing import NamedTuple

from weft.model import Window

SECOND = 1_000_000


@dataclass(slots=True, eq=False)
class RangeCounts:
    """How many windows have each range, in microseconds. Immutable; sums are computed on demand and cached."""

    windows: Mapping[int, int]
    _sums: tuple[list[int], list[int], list[int]] | None = None

    def __or__(self, other: RangeCounts) -> RangeCounts:
        more, fewer = (self, other) if len(self.windows) >= len(other.windows) else (other, self)
        windows = dict(more.windows)
        for length, number in fewer.windows.items():
            windows[length] = windows.get(length, 0) + number
        return RangeCounts(windows)

    @property
    def sums(self) -> tuple[list[int], list[int], list[int]]:
        """Ranges, ascending; and prefix sums, with one entry more, of the number of windows and of their ranges."""
        if self._sums is None:
            lengths = sorted(self.windows)
            numbers = list(accumulate((self.windows[length] for length in lengths), initial=0))
            totals = list(accumulate((length * self.windows[length] for length in lengths), initial=0))
            self._sums = lengths, numbers, totals
        return self._sums


@dataclass(frozen=True, slots=True)
class WindowLoad:
    """What the cost of a tree's windows depends on: `overlap` is the sum of range / slide."""

    overlap: Fraction
    windows: int
    """nQ in the papers."""
    longest: int
    """The longest range, in microseconds."""
    ranges: RangeCounts | None = None
    """None where the technique uses only the longest range, or no range."""

    @classmethod
    def of(cls, windows: Iterable[Window], ranged: bool = True) -> WindowLoad:
        lengths: dict[int, list[int]] = {}  # windows of one slide add up without a fraction
        for window in windows:
            lengths.setdefault(window.slide, []).append(window.length)
        overlap = sum((Fraction(sum(of_slide), slide) for slide, of_slide in lengths.items()), Fraction(0))
        number, longest = sum(map(len, lengths.values())), max(map(max, lengths.values()))
        return cls(overlap, number, longest, RangeCounts(Counter(chain(*lengths.values()))) if ranged else None)

    def __or__(self, other: WindowLoad) -> WindowLoad:
        ranges = None if self.ranges is None or other.ranges is None else self.ranges | other.ranges
        overlap, windows = self.overlap + other.overlap, self.windows + other.windows
        return WindowLoad(overlap, windows, max(self.longest, other.longest), ranges)


@dataclass(frozen=True, slots=True)
class TechniqueCost:
    """`omega(load, edge_rate)`, and a floor of it that never falls when the edge rate or the load grows.

    `joint_floor(floor, load, floor, load)` is at most the omega of two loads in one tree, at any edge rate not below
    those of the two floors. It lets a search skip merges without counting their edges.
    """

    name: str
    omega: Callable[[WindowLoad, Fraction], Fraction]
    floor: Callable[[WindowLoad, Fraction], Fraction]
    joint_floor: Callable[[float, WindowLoad, float, WindowLoad], float]
    alone: Callable[[Sequence[WindowLoad]], list[float]]
    """The share of the floor of each load that adds up with any other loads in the tree; of the other shares, at least
    the largest counts. Unused where `additive`."""
    additive: bool = False
    """Omega and floor of a tree are the sums of those of its loads: no tree costs less than its queries alone."""
    together: bool = False
    """Queries with equal edges lose nothing by sharing a tree, with any other queries in it.

    Where omega is a sum that no rate changes, the one in the tree with more slices goes to the other's. Where only the
    longest range counts, the one with the shorter range does. Its new tree stays as it was, and the old one loses.
    """
    ranged: bool = False
    """Omega depends on every range. If not, searches need not keep the ranges."""

    def joint_omega(self, one: WindowLoad, other: WindowLoad, edge_rate: Fraction) -> Fraction:
        """Omega of two loads in one tree; where it is additive, their ranges are not merged."""
        if self.additive:
            return self.omega(one, edge_rate) + self.omega(other, edge_rate)
        return self.omega(one | other, edge_rate)


def _panes(load: WindowLoad, edge_rate: Fraction) -> Fraction:
    return load.overlap


class StepInterval(NamedTuple):
    """Steps of a window of nP partials, if `2 * nP < until`: `(constant + slope * (nP - 1)) / 2**power`."""

    until: int
    constant: int
    slope: int
    power: int


FLAT_FAT = tuple(
    steps
    for power in range(64)
    for steps in (
        StepInterval(2 * (1 << power) + 2, max(0, power - 1) << power, 1, power),
        StepInterval(2 * (2 << power), power << power, 1, power),
    )
)
"""`floor(log2(nP - 1)) + (nP - 1) / 2**floor(log2 nP)`, an interval of nP after the other from 1 on; below two partials
the first logarithm counts as no step."""

FLAT_FAT_FLOOR = tuple(
    steps
    for power in range(64)
    for steps in (
        StepInterval(3 if power == 0 else 2 * (1 << power) + 2, max(0, power - 1) << power, 1, power),
        StepInterval(2 * (2 << power), ((power + 1) << (power + 1)) - 1, 0, power + 1),
    )
)
"""The least steps of any window at least as long. Steps fall only where nP reaches a power of two: the least is here or
there."""


def _flat_fat(load: WindowLoad, edge_rate: Fraction) -> Fraction:
    return _added_up(FLAT_FAT, load, edge_rate)


def _flat_fat_floor(load: WindowLoad, edge_rate: Fraction) -> Fraction:
    return _added_up(FLAT_FAT_FLOOR, load, edge_rate)


def _added_up(intervals: Sequence[StepInterval], load: WindowLoad, edge_rate: Fraction) -> Fraction:
    """The steps of all windows; those of one interval at once, from their number and the sum of their ranges."""
    assert load.ranges is not None, "this technique looks at every range"
    lengths, numbers, totals = load.ranges.sums
    partials, unit = edge_rate.numerator, edge_rate.denominator * SECOND  # partials per `unit` microseconds
    steps_so_far = begin = power = 0
    for steps in intervals:
        end = bisect_left(lengths, -(-steps.until * unit // (2 * partials)), begin)
        if end > begin:
            windows, total = numbers[end] - numbers[begin], totals[end] - totals[begin]
            steps_so_far <<= steps.power - power
            steps_so_far += windows * steps.constant * unit + steps.slope * (total * partials - windows * unit)
            begin, power = end, steps.power
        if begin == len(lengths):
            break
    return Fraction(steps_so_far, unit << power)


def _flat_fit(load: WindowLoad, edge_rate: Fraction) -> Fraction:
    return Fraction(3 * load.windows)


def _panes_inv(load: WindowLoad, edge_rate: Fraction) -> Fraction:
    """A running aggregate for each window: one in, one out."""
    return Fraction(2 * load.windows)


def _two_stacks(load: WindowLoad, edge_rate: Fraction) -> Fraction:
    """Stacks for each window. Table 11 has neither these nor DABA: the operations per slide are table 4's."""
    return Fraction(3 * load.windows)


def _daba(load: WindowLoad, edge_rate: Fraction) -> Fraction:
    return Fraction(5 * load.windows)


def _slick_deque_inv(load: WindowLoad, edge_rate: Fraction) -> Fraction:
    """One running aggregate per distinct number of partials; there are as many as distinct ranges."""
    return Fraction(2 * len(_ranges(load)))


def _slick_deque_non_inv(load: WindowLoad, edge_rate: Fraction) -> Fraction:
    longest = load.longest * edge_rate / SECOND
    return 2 - 2 / longest + load.windows + DEQUE_LENGTH[min(int(longest), len(DEQUE_LENGTH) - 1)]


KEPT = Fraction(1, 20)
"""Operations per kept slice and second: every batch merges its slices into those that are kept.
A guess, not a measurement: it keeps day-long ranges out of one-second slices."""


def _blocks(load: WindowLoad, edge_rate: Fraction) -> Fraction:
    """weft's own: a slice is combined twice for the tables and kept as long as the longest range.

    An answer costs three operations for any number of slices. They are the same in every plan, so they are left out.
    """
    return 2 + KEPT * load.longest / SECOND


DEQUE_LENGTH = tuple(sum((Fraction(1, factorial(i)) for i in range(1, n + 1)), Fraction(0)) for n in range(21))
"""The mean length of the deque over n partials. All terms after the twentieth together are below 1e-19."""


def _sum(floor: float, load: WindowLoad, other_floor: float, other_load: WindowLoad) -> float:
    return floor + other_floor


def _longer(floor: float, load: WindowLoad, other_floor: float, other_load: WindowLoad) -> float:
    return max(floor, other_floor)


def _different_ranges(floor: float, load: WindowLoad, other_floor: float, other_load: WindowLoad) -> float:
    common = len(_ranges(load) & _ranges(other_load))
    return floor + other_floor - 2.0 * common


def _longer_and_windows_of_the_other(
    floor: float, load: WindowLoad, other_floor: float, other_load: WindowLoad
) -> float:
    return max(floor + other_load.windows, other_floor + load.windows)


def _ranges(load: WindowLoad) -> KeysView[int]:
    assert load.ranges is not None, "this technique looks at every range"
    return load.ranges.windows.keys()


def _nothing(loads: Sequence[WindowLoad]) -> list[float]:
    return [0.0] * len(loads)


def _windows(loads: Sequence[WindowLoad]) -> list[float]:
    return [float(load.windows) for load in loads]


def _ranges_of_one(loads: Sequence[WindowLoad]) -> list[float]:
    """Two per range that no other load has."""
    having = Counter(length for load in loads for length in _ranges(load))
    return [2.0 * sum(having[length] == 1 for length in _ranges(load)) for load in loads]


_additive = partial(TechniqueCost, joint_floor=_sum, alone=_nothing, additive=True)

TECHNIQUES: Mapping[str, TechniqueCost] = {
    t.name: t
    for t in (
        TechniqueCost("blocks", _blocks, _blocks, _longer, _nothing, together=True),
        # Same cost as `blocks`, which serves every operator: another technique is chosen only if it is faster.
        TechniqueCost("auto", _blocks, _blocks, _longer, _nothing, together=True),
        _additive("panes", _panes, _panes, together=True),
        _additive("panes_inv", _panes_inv, _panes_inv, together=True),
        _additive("flat_fat", _flat_fat, _flat_fat_floor, ranged=True),
        _additive("b_int", _flat_fat, _flat_fat_floor, ranged=True),
        _additive("two_stacks", _two_stacks, _two_stacks, together=True),
        _additive("daba", _daba, _daba, together=True),
        _additive("flat_fit", _flat_fit, _flat_fit, together=True),
        TechniqueCost(
            "slick_deque_inv", _slick_deque_inv, _slick_deque_inv, _different_ranges, _ranges_of_one, ranged=True
        ),
        TechniqueCost(
            "slick_deque_non_inv",
            _slick_deque_non_inv,
            _slick_deque_non_inv,
            _longer_and_windows_of_the_other,
            _windows,
        ),
    )
}
