"""Trees without keys on the partitions of a job's final stage.

A tree with keys is on all of them: its groups are divided (`shares`). One without has a single group, of which Spark
leaves a partial a slice, wherever its rows were read; so it is trees that are placed. A hot one is divided by its
queries: each part takes in the slices, and answers its own queries from them.

cost    for each front a sort of the queries, and as many fronts as nodes have binary digits
source  our own; what is placed is placed by G_TL, and the knee is taken as for the dissertation's placements
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from weft.aggregates import keeps_values
from weft.model import ACQ
from weft.optimizer.cost.omega import TECHNIQUES
from weft.optimizer.cost.operations import load_of
from weft.optimizer.placement.longest_first import to_lowest
from weft.optimizer.placement.pareto import knee
from weft.plan.logical import Feed, Plan, Tree

ANSWER = 3
"""Operations of an answer, whatever the slices: other choices leave them out, since no plan changes them."""


@dataclass(frozen=True, slots=True)
class Homes:
    """The node of each query without keys; those of a tree that are on one node are a tree there."""

    nodes: Mapping[str, int]
    total: float
    """Operations per second."""
    maximum: float
    """Of the node that has most."""


def place_homes(plan: Plan, nodes: int) -> Homes:
    """The knee of placements that divide hot trees into ever more parts, from not at all to as many as nodes."""
    trees = [_Tree(plan, feed, plan.trees[number]) for feed in plan.feeds if not feed.keys for number in feed.trees]
    grains = [1 << digit for digit in range((nodes - 1).bit_length())] + [nodes]
    return knee([_placed(trees, nodes, grain) for grain in grains])


class _Tree:
    """What a tree's parts cost."""

    def __init__(self, plan: Plan, feed: Feed, tree: Tree) -> None:
        self.queries = [plan.workload.by_name[name] for name in tree.queries]
        self._feed, self._tree, self._technique = feed, tree, TECHNIQUES[plan.technique]
        self.cost = self.part_cost(self.queries)

    def part_cost(self, queries: Sequence[ACQ]) -> float:
        """A part takes in every slice of the feed, builds on those of the tree, and answers."""
        rate = self._tree.edge_rate
        omega = self._technique.omega(load_of([q.window for q in queries], self._technique), rate)
        return float(self._feed.edge_rate + rate * omega) + sum(map(_answering, queries))

    def parts(self, number: int) -> list[list[ACQ]]:
        """At most so many; values of no fixed size would be kept in every part, so such a tree is never divided."""
        if any(keeps_values(call) for query in self.queries for call in query.calls):
            number = 1
        number = min(number, len(self.queries))
        queries_of: list[list[ACQ]] = [[] for _ in range(number)]
        shares = np.array([_answering(query) for query in self.queries])
        for query, part in zip(self.queries, to_lowest(shares, np.zeros(number)), strict=True):
            queries_of[part].append(query)
        return queries_of


def _answering(query: ACQ) -> float:
    return ANSWER * 1_000_000 / query.window.slide


def _placed(trees: Sequence[_Tree], nodes: int, grain: int) -> Homes:
    """Each tree in as many parts as it has of `grain` equal shares of all work, the most expensive tree first."""
    total = sum(tree.cost for tree in trees)
    parts = [(tree, part) for tree in trees for part in tree.parts(ceil(grain * tree.cost / total))]
    costs = np.array([tree.part_cost(part) for tree, part in parts])
    homes = to_lowest(costs, np.zeros(nodes))
    loads = np.bincount(homes, weights=costs, minlength=nodes)
    home_of = {query.name: int(home) for (_, part), home in zip(parts, homes, strict=True) for query in part}
    return Homes(home_of, float(loads.sum()), float(loads.max()))
