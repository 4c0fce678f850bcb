"""What a plan costs, in aggregate operations a second, exactly.

Trees that pass over the rows themselves:   m * rate + sum(E_i * omega_i)
Trees fed from one composite slicing:       rate + m * E_all + sum(E_i * omega_i)

Queries of different groupings see different rows or groups, so each grouping pays for itself and the sums add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from weft.model import ACQ, Edges, Window
from weft.optimizer.edge_counting import edge_rate
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
        edges = Edges.of(q.window for q in queries)
        rate = edge_rate(edges)
        omega = self.technique.omega(Load.of(q.window for q in queries), rate)
        return Tree(tuple(q.name for q in queries), edges, rate, omega, self.technique.name)

    def alone(self, query: ACQ, statistics: Statistics) -> Fraction:
        """A tree with a pass of its own for a single query."""
        return statistics.rate + self.tree([query]).final_cost

    def unshared(self, queries: Iterable[ACQ], statistics: Statistics) -> Fraction:
        """A tree with a pass of its own for each query."""
        windows = Counter(query.window for query in queries)
        return exact_sum(times * self._alone(window) for window, times in windows.items()) + (
            statistics.rate * windows.total()
        )

    def _alone(self, window: Window) -> Fraction:
        rate = edge_rate(Edges(window.classes))
        return rate * self.technique.omega(Load.of((window,)), rate)

    def plan(self, trees: Sequence[Tree], feeds: Sequence[Feed], statistics: Statistics) -> Fraction:
        final = exact_sum(tree.final_cost for tree in trees)
        return final + statistics.rate * len(feeds) + exact_sum(feed.fold_cost for feed in feeds)


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
