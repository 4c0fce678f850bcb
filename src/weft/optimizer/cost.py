"""What a plan costs, in aggregate operations a second, exactly.

Trees that pass over the rows themselves:   m * rate + sum(E_i * omega_i)
Trees fed from one composite slicing:       rate + m * E_all + sum(E_i * omega_i)

Queries of different groupings see different rows or groups, so each grouping pays for itself and the sums add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from weft.model import ACQ, Edges
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

    def plan(self, trees: Sequence[Tree], feeds: Sequence[Feed], statistics: Statistics) -> Fraction:
        final = sum((tree.final_cost for tree in trees), Fraction(0))
        return final + sum((statistics.rate + feed.fold_cost for feed in feeds), Fraction(0))
