"""How many slices a union of edge classes cuts: exactly if that is fast enough, otherwise between two bounds.

Time modulo one base period is known, say `y`; `base` is `lcm(1..16)`. A class of slide s and shift h is active where y
fits h modulo `m = gcd(s, base)`; there it has an edge with probability `1 / q`, `q = s / m`. Given y, classes whose q
share no factor are independent. So what is missed at y is nearly the product of `1 - 1/q` over the active classes. A
pair (i, j) of them that depends adds, with P for probabilities given y,

    c(i, j) = P(i and j) - P(i) * P(j)        times the product over all others

and nothing else is added but by threes. How much that is at most follows from adding one class i after the
other. Let N be those before it that depend on it, U an edge of N, and V an edge of the rest:

    missed(with i) = (1 - P(i)) * missed(without) + P(i, U, not V) - P(i) * P(U, not V)

`P(i, U, not V)` lies between the sum over j in N of `P(i, j, not V)`, and that less what is counted again: for each j
`P(i, j, some k in N before j)`. `P(i, j, not V)` is `P(i, j)` times what the classes miss that depend on neither i nor
j, less at most `P(i, j, some k that depends on j)`. On the common edges of i and j each k is a class of its own, with
the slide `lcm(i, j, k) / lcm(i, j)`; some k has an edge there no more often than those of them have together that do
not lie within another, and never more often than always. All that is left over are such threes with two dependent
pairs, and c(i, j) times what any other dependent pair weighs: sums that
`weft.kernels.edge_counting.bounds` and the arrays below hold.

Classes with equal q and equal residues there have the same edges wherever both are active. Such a group is one event:
its share of the product is taken once. The densest classes are counted; how far the sums are off for them is known
then, and the others only scale it. Pairs are summed over members, so two active members of one group count a pair
twice; that is bounded with the threes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import gcd, lcm
from typing import TYPE_CHECKING

from weft.model import EdgeClass, Edges
from weft.optimizer.edge_counting import exact
from weft.optimizer.edge_counting.literals import Classes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BASE = lcm(*range(1, 17))
"""720,720: arrays of this length take milliseconds, and only primes from 17 on and high powers remain."""

LONGEST_SLIDE = 1 << 31
"""Composite slides of two classes are 64-bit integers."""

STEPS = 20_000
"""Classes that the exact counter may visit, over all residues that it decides: about a second."""

COUNTED_FIRST = (400, 240)
"""How many of the densest classes are counted exactly, so that their error is known: the first number that works."""

STEPS_FIRST = 160_000
"""Classes that the exact counter may visit for these: some seconds."""

ROUNDING = 1e-9
"""Far more than the rounding errors of a few thousand float operations."""

Between = tuple[Fraction, Fraction]


def density_between(edges: Edges) -> Between:
    """Lower and upper bound of the edges per unit of time; equal where edges were counted."""
    low, high = missed_between(edges.classes)
    return 1 - high, 1 - low


def missed_between(classes: Sequence[EdgeClass]) -> Between:
    if len(classes) <= exact.FEW:
        counted = exact.missed(classes)
        return counted, counted
    factor, worlds = exact.worlds(classes)
    low = high = Fraction(factor - sum(worlds.values()))
    for world, times in worlds.items():
        least, most = _missed_between(world) if factor == 1 else missed_between(world)
        low, high = low + times * least, high + times * most
    return low / factor, high / factor


@lru_cache(maxsize=1 << 10)
def _missed_between(classes: Classes) -> Between:
    counted = exact.missed_within(classes, STEPS)
    if counted is None and max(slide for slide, _ in classes) >= LONGEST_SLIDE:
        counted = exact.missed(classes)
    return (counted, counted) if counted is not None else enclose(classes)


def forget() -> None:
    """Results are cached; another number of steps needs new ones."""
    _missed_between.cache_clear()


def enclose(classes: Sequence[EdgeClass]) -> Between:
    """Lower and upper bound of the share of time without an edge, without counting all classes."""
    ordered, borders = _densest_first(classes)
    pairs = DependentPairs.of(ordered)
    product, likely = pairs.likely(len(ordered))
    down, up = pairs.triples(0)
    first, counted = _count_first(ordered, borders)
    if counted is not None:
        # At any instant, the other classes scale the error of the first ones by a factor between `thin` and `thick`.
        product_first, likely_first = pairs.likely(first)
        rest = product[product_first > 0] / product_first[product_first > 0]
        thin, thick = float(rest.min()), float(rest.max())
        down_rest, up_rest = pairs.triples(first)
        inside = pairs.left < first
        spread = (thick - thin) / 2 * (down - down_rest + up - up_rest + pairs.together(inside, inside))
        likely += (thick + thin) / 2 * (float(counted) - likely_first)
        down, up = down_rest + spread, up_rest + spread
    loose = pairs.together(pairs.left >= first, pairs.left >= 0) + ROUNDING
    least = max(0.0, likely - down * (1 + ROUNDING) - loose)
    shortest = min(slide for slide, _ in ordered)
    most = min(1 - 1 / float(shortest) + ROUNDING, likely + up * (1 + ROUNDING) + loose)
    return Fraction(least), Fraction(most)


@dataclass(frozen=True, slots=True)
class DependentPairs:
    """Classes as arrays, and the pairs `left[i]`, `right[i]` of them that are not independent of each other."""

    shifts: NDArray[np.int64]
    inner: NDArray[np.int64]
    """The part of each slide that divides the base."""
    outer: NDArray[np.int64]
    groups: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    periods: NDArray[np.int64]
    """Both classes of a pair may have an edge at the instants `at + k * period` of the base."""
    at: NDArray[np.int64]
    both: NDArray[np.float64]
    """The share of those instants at which both have one."""
    independent: NDArray[np.float64]
    """The same if they were independent."""

    @classmethod
    def of(cls, ordered: Sequence[EdgeClass]) -> DependentPairs:
        import numpy as np

        from weft.kernels.edge_counting.bounds import dependent_pairs, weigh_pairs

        slides, shifts = (np.array(column, np.int64) for column in zip(*ordered, strict=True))
        inner = np.gcd(slides, BASE)
        outer = slides // inner
        numbers = {key: number for number, key in enumerate(dict.fromkeys(map(_group, ordered)))}
        groups = np.array([numbers[_group(edge_class)] for edge_class in ordered])
        left, right = dependent_pairs(shifts, inner, outer, groups)
        return cls(shifts, inner, outer, groups, left, right, *weigh_pairs(left, right, shifts, inner, outer))

    def likely(self, until: int) -> tuple[NDArray[np.float64], float]:
        """The product over the first `until` classes, and its mean corrected for dependent pairs."""
        import numpy as np

        first = slice(until)
        product = _product(self.groups[first], self.shifts[first], self.inner[first], self.outer[first])
        alone = (1 - 1 / self.outer[self.left]) * (1 - 1 / self.outer[self.right])
        added = self._over_time((self.both - self.independent) / alone, self.left < until)
        return product, float(np.mean(product * (1 + added)))

    def triples(self, first: int) -> tuple[float, float]:
        """Bounds of what three or more classes together subtract or add, beyond the first classes."""
        import numpy as np

        from weft.kernels.edge_counting.bounds import bound_triples

        excess = np.abs(self.both - self.independent)
        bounds = bound_triples(self.left, self.right, excess, self.shifts, self.inner, self.outer, self.groups, first)
        return float(bounds[0]), float(bounds[1])

    def together(self, some: NDArray[np.bool_], others: NDArray[np.bool_]) -> float:
        """An upper bound of what some pairs add where other, earlier pairs have common edges."""
        import numpy as np

        excess = self._over_time(np.abs(self.both - self.independent), some)
        return float(np.mean(excess * self._over_time(np.maximum(self.both, self.independent), others)))

    def _over_time(self, amounts: NDArray[np.float64], some: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What these pairs amount to at each instant of the base."""
        import numpy as np

        total = np.zeros(BASE)
        for period, sums in _by_period(self.periods[some], self.at[some], amounts[some]).items():
            _across(total, period)[:] += sums
        return total


def _count_first(ordered: Sequence[EdgeClass], borders: Sequence[int]) -> tuple[int, Fraction | None]:
    """How many classes were counted, and the share of time without their edges; 0 and None if that takes too long."""
    for first in borders:
        if 0 < first < len(ordered):
            counted = exact.missed_within(tuple(sorted(ordered[:first])), STEPS_FIRST)
            if counted is not None:
                return first, counted
    return 0, None


def _densest_first(classes: Sequence[EdgeClass]) -> tuple[list[EdgeClass], list[int]]:
    """Classes by groups, those with the shortest slides first; how many of them to count exactly, in this order."""
    members: dict[tuple[int, int], list[EdgeClass]] = {}
    for edge_class in sorted(classes):
        members.setdefault(_group(edge_class), []).append(edge_class)
    # A slide that divides the base comes first: where it has an edge, no other class matters.
    by_density = [group for _, group in sorted(members.items(), key=lambda entry: entry[0][0] > 1)]
    ends = [0, *accumulate(map(len, by_density))]
    borders = [max(end for end in ends if end <= most) for most in COUNTED_FIRST]
    return [edge_class for group in by_density for edge_class in group], borders


def _group(edge_class: EdgeClass) -> tuple[int, int]:
    """The outer part, and the residue modulo all powers of its primes: classes that agree in both are a group."""
    slide, shift = edge_class
    outer = rest = slide // gcd(slide, BASE)
    modulus, inside = outer, slide // outer
    while (rest := gcd(inside, rest)) > 1:
        modulus, inside = modulus * rest, inside // rest
    return outer, shift % modulus


def _product(
    groups: NDArray[np.int64], shifts: NDArray[np.int64], inner: NDArray[np.int64], outer: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The probability of no edge at each instant of the base, if groups were independent."""
    import numpy as np

    product, sizes = np.ones(BASE), np.bincount(groups)
    alone = (sizes[groups] == 1) & (outer > 1)
    for period, misses in _by_period(inner[alone], shifts[alone] % inner[alone], np.log1p(-1 / outer[alone])).items():
        _across(product, period)[:] *= np.exp(misses)
    for group in np.unique(groups[~alone]):
        members = np.flatnonzero(groups == group)
        period = lcm(*inner[members].tolist())
        active = np.zeros(period, np.bool_)
        for member in members:
            active[shifts[member] % inner[member] :: inner[member]] = True
        _across(product, period)[:, active] *= 1 - 1 / outer[members[0]]
    return product


def _by_period(
    periods: NDArray[np.int64], at: NDArray[np.int64], amounts: NDArray[np.float64]
) -> dict[int, NDArray[np.float64]]:
    """For each period the sums of the amounts at each of its shifts."""
    import numpy as np

    sums: dict[int, NDArray[np.float64]] = {}
    for period in np.unique(periods).tolist():
        here = periods == period
        sums[period] = np.bincount(at[here], amounts[here], period).astype(np.float64)
    return sums


def _across(array: NDArray[np.float64], period: int) -> NDArray[np.float64]:
    """The same array with one row per period."""
    return array.reshape(-1, period)
