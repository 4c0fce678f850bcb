"""What a plan costs, in aggregate operations per second, exactly.

Trees that pass over the rows themselves:   m * rate + sum(E_i * omega_i)
Trees fed from one composite slicing:       rate + m * E_all + sum(E_i * omega_i)

Queries of different groupings have different rows or groups, so each grouping is priced alone and the costs add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from weft.model import ACQ, Edges, Window
from weft.optimizer.cost.omega import TECHNIQUES, RangeCounts, TechniqueCost, WindowLoad
from weft.optimizer.edge_counting import edge_rate, edge_rate_between
from weft.plan.logical import Feed, Tree


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of the stream: `rate` is rows per second."""

    rate: Fraction


@dataclass(frozen=True, slots=True)
class Cost:
    """Prices trees and feeds for one technique of final aggregation."""

    technique: TechniqueCost = field(default_factory=lambda: TECHNIQUES["panes"])

    def tree(self, queries: Sequence[ACQ]) -> Tree:
        """The tree of these queries, which must be of one grouping."""
        windows = [q.window for q in queries]
        edges, load = Edges.of(windows), load_of(windows, self.technique)
        rate, high, omega = self.rates(edges, load)
        names, most = tuple(q.name for q in queries), None if high == rate else high
        return Tree(names, edges, rate, omega, self.technique.name, edge_rate_high=most)

    def rates(self, edges: Edges, load: WindowLoad) -> tuple[Fraction, Fraction, Fraction]:
        """Slices per second, at least and at most, and omega.

        If omega depends on the exact edge rate, bounds are not enough: then edges are counted.
        """
        rate, high = edge_rate_between(edges)
        omega = self.technique.omega(load, high)
        if rate != high and omega != self.technique.omega(load, rate):
            rate = high = edge_rate(edges)
            omega = self.technique.omega(load, rate)
        return rate, high, omega

    def alone(self, query: ACQ, statistics: Statistics) -> Fraction:
        """A tree with a pass of its own for a single query."""
        return statistics.rate + self.tree([query]).final_cost

    def unshared(self, queries: Iterable[ACQ], statistics: Statistics) -> Fraction:
        """A tree with a pass of its own for each query."""
        alike: dict[tuple[int, int], list[int]] = {}
        for query in queries:
            window = query.window
            slide, length = window.slide, window.length
            key = (slide, 2 if length % slide else 1)
            lengths = alike.get(key)
            if lengths is None:
                alike[key] = [length]
            else:
                lengths.append(length)
        passes = statistics.rate * sum(map(len, alike.values()))
        return passes + exact_sum(self.final_alone(*key, lengths) for key, lengths in alike.items())

    def final_alone(self, slide: int, edges: int, lengths: Sequence[int]) -> Fraction:
        """Final operations of windows with one slide and `edges` edges in it, with one tree per window."""
        rate = Fraction(edges * 1_000_000, slide)
        if self.technique.additive:  # omegas of one edge rate add up
            return rate * self.technique.omega(load_of_one_slide(slide, lengths, self.technique), rate)
        omegas = (
            count * self.technique.omega(load_of_one_slide(slide, [length], self.technique), rate)
            for length, count in Counter(lengths).items()
        )
        return rate * sum(omegas, Fraction(0))

    def plan(self, trees: Sequence[Tree], feeds: Sequence[Feed], statistics: Statistics) -> Fraction:
        final = exact_sum_of_products((tree.edge_rate, tree.omega) for tree in trees)
        folds = exact_sum(feed.fold_cost for feed in feeds if feed.fold_cost.numerator)
        return final + statistics.rate * len(feeds) + folds


def load_of(windows: Sequence[Window], technique: TechniqueCost) -> WindowLoad:
    """What the cost of the technique depends on."""
    return WindowLoad.of(windows, technique.ranged)


def load_of_one_slide(slide: int, lengths: Sequence[int], technique: TechniqueCost) -> WindowLoad:
    """`load_of` for windows that differ only in length: fast enough for a million queries."""
    ranges = RangeCounts(Counter(lengths)) if technique.ranged else None
    return WindowLoad(Fraction(sum(lengths), slide), len(lengths), max(lengths), ranges)


def exact_sum(amounts: Iterable[Fraction]) -> Fraction:
    """Numerators of equal denominators are added as integers: a common denominator of all would be long, and slow.

    >>> exact_sum([Fraction(1, 2), Fraction(1, 3), Fraction(1, 2)])
    Fraction(4, 3)
    """
    numerators: dict[int, int] = {}
    for amount in amounts:
        numerator, denominator = amount.as_integer_ratio()
        numerators[denominator] = numerators.get(denominator, 0) + numerator
    return _added_up(numerators)


def exact_sum_of_products(pairs: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """The same for products, without reducing each of them.

    >>> exact_sum_of_products([(Fraction(1, 2), Fraction(2, 3)), (Fraction(1), Fraction(2, 3))])
    Fraction(1, 1)
    """
    numerators: dict[int, int] = {}
    for one, other in pairs:
        (numerator, denominator), (times, parts) = one.as_integer_ratio(), other.as_integer_ratio()
        denominator *= parts
        numerators[denominator] = numerators.get(denominator, 0) + numerator * times
    return _added_up(numerators)


def _added_up(numerators: Mapping[int, int]) -> Fraction:
    sums = [Fraction(numerator, denominator) for denominator, numerator in sorted(numerators.items())]
    while len(sums) > 1:  # in pairs, so that few sums have long numbers
        sums = [sum(sums[i : i + 2], Fraction(0)) for i in range(0, len(sums), 2)]
    return sums[0] if sums else Fraction(0)
