"""What a plan costs, in aggregate operations a second, exactly.

Trees that pass over the rows themselves:   m * rate + sum(E_i * omega_i)
Trees fed from one composite slicing:       rate + m * E_all + sum(E_i * omega_i)

Queries of different groupings see different rows or groups, so each grouping pays for itself and the sums add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from weft.model import ACQ, Edges, Window
from weft.optimizer.edge_counting import edge_rate, edge_rate_between
from weft.optimizer.techniques import TECHNIQUES, Load, Technique
from weft.plan.values import Feed, Tree


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known about the stream: `rate` is rows a second."""

    rate: Fraction


@dataclass(frozen=True, slots=True)
class Cost:
    """Prices trees and feeds for one technique of final aggregation."""

    technique: Technique = field(default_factory=lambda: TECHNIQUES["panes"])

    def tree(self, queries: Sequence[ACQ]) -> Tree:
        """The tree that these queries, all of one grouping, would share."""
        edges, load = Edges.of(q.window for q in queries), Load.of(q.window for q in queries)
        rate, high, omega = self.rates(edges, load)
        names, most = tuple(q.name for q in queries), None if high == rate else high
        return Tree(names, edges, rate, omega, self.technique.name, edge_rate_high=most)

    def rates(self, edges: Edges, load: Load) -> tuple[Fraction, Fraction, Fraction]:
        """Slices a second, at least and at most, and omega.

        Where operations hang on the count itself, an interval of edges says nothing certain: then they are counted.
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
        alike: dict[tuple[int, int, int], list[Window]] = {}
        count = 0
        for query in queries:
            count += 1
            window = query.window
            # Where omegas of one edge rate add up, windows with that rate are priced together.
            key = (window.slide, int(window.length % window.slide > 0), 0 if self._adds else window.length)
            alike.setdefault(key, []).append(window)
        return statistics.rate * count + exact_sum(map(self._alone, alike.values()))

    @property
    def _adds(self) -> bool:
        return self.technique.additive and self.technique.together

    def _alone(self, windows: Sequence[Window]) -> Fraction:
        """Final operations of windows with one slide and one number of edges in it, a tree each."""
        rate = edge_rate(Edges(windows[0].classes))
        if self._adds:
            return rate * self.technique.omega(load_of(windows, self.technique), rate)
        return len(windows) * rate * self.technique.omega(load_of(windows[:1], self.technique), rate)

    def plan(self, trees: Sequence[Tree], feeds: Sequence[Feed], statistics: Statistics) -> Fraction:
        final = exact_sum(tree.final_cost for tree in trees)
        return final + statistics.rate * len(feeds) + exact_sum(feed.fold_cost for feed in feeds)


def load_of(windows: Sequence[Window], technique: Technique) -> Load:
    """What the technique has to know of the windows."""
    if not technique.together:
        return Load.of(windows)
    # Omega is a sum over the windows, or hangs on the longest range: the other ranges need no list.
    lengths: dict[int, int] = {}  # windows of one slide add up without a fraction
    longest = 0
    for window in windows:
        lengths[window.slide] = lengths.get(window.slide, 0) + window.length
        longest = max(longest, window.length)
    overlaps = [Fraction(length, slide) for slide, length in lengths.items()]
    overlap = overlaps[0] if len(overlaps) == 1 else sum(overlaps, Fraction(0))
    return Load(overlap, ((Fraction(longest, 1_000_000), len(windows)),), len(windows))


def exact_sum(amounts: Iterable[Fraction]) -> Fraction:
    """Denominators that are equal add up as integers: common denominators of many grow long, and slow.

    >>> exact_sum([Fraction(1, 2), Fraction(1, 3), Fraction(1, 2)])
    Fraction(4, 3)
    """
    numerators: dict[int, int] = {}
    for amount in amounts:
        numerators[amount.denominator] = numerators.get(amount.denominator, 0) + amount.numerator
    found = [Fraction(numerator, denominator) for denominator, numerator in sorted(numerators.items())]
    while len(found) > 1:  # in pairs, so that few sums are of long numbers
        found = [sum(found[i : i + 2], Fraction(0)) for i in range(0, len(found), 2)]
    return found[0] if found else Fraction(0)
