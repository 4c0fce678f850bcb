"""Pinned buckets: trees without keys in the partitions of a job's final stage.

A tree with keys is in all buckets: its groups are divided among them. A tree without keys has a single group, of which
Spark leaves one partial per slice, so the tree as a whole is placed. An expensive tree is divided by its queries: each
part reads all slices, and answers its own queries from them.

cost    one sort of the queries per placement; log2(buckets) + 1 placements are compared
source  our own; trees are placed as G_TL does, and the knee is taken as for the dissertation's placements
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
"""Operations per answer, independent of the slices. Other cost models leave them out, since no plan changes them."""


@dataclass(frozen=True, slots=True)
class PinnedBuckets:
    """The bucket of each query without keys. Queries of one tree that share a bucket stay one tree there."""

    bucket_of_query: Mapping[str, int]
    total: float
    """Operations per second of all buckets."""
    maximum: float
    """Operations per second of the most loaded bucket."""


def pin_buckets(plan: Plan, buckets: int) -> PinnedBuckets:
    """Divide expensive trees into 1, 2, 4, ... up to `buckets` shares, and return the knee of these placements."""
    trees = [_Tree(plan, feed, plan.trees[number]) for feed in plan.feeds if not feed.keys for number in feed.trees]
    grains = [1 << digit for digit in range((buckets - 1).bit_length())] + [buckets]
    return knee([_pinned(trees, buckets, grain) for grain in grains])


class _Tree:
    """What a tree's parts cost."""

    def __init__(self, plan: Plan, feed: Feed, tree: Tree) -> None:
        self.queries = [plan.workload.by_name[name] for name in tree.queries]
        self._feed, self._tree, self._technique = feed, tree, TECHNIQUES[plan.technique]
        self.cost = self.part_cost(self.queries)

    def part_cost(self, queries: Sequence[ACQ]) -> float:
        """A part reads every slice of the feed, combines those of the tree, and answers."""
        rate = self._tree.edge_rate
        omega = self._technique.omega(load_of([q.window for q in queries], self._technique), rate)
        return float(self._feed.edge_rate + rate * omega) + sum(map(_answering, queries))

    def parts(self, number: int) -> list[list[ACQ]]:
        """At most `number` parts; one where values of no fixed size are kept, since every part would keep them."""
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


def _pinned(trees: Sequence[_Tree], buckets: int, grain: int) -> PinnedBuckets:
    """A tree with the n-th part of all work is divided into `grain / n` parts, rounded up."""
    total = sum(tree.cost for tree in trees)
    parts = [(tree, part) for tree in trees for part in tree.parts(ceil(grain * tree.cost / total))]
    costs = np.array([tree.part_cost(part) for tree, part in parts])
    bucket_of_part = to_lowest(costs, np.zeros(buckets))
    loads = np.bincount(bucket_of_part, weights=costs, minlength=buckets)
    bucket_of_query = {
        query.name: int(bucket) for (_, part), bucket in zip(parts, bucket_of_part, strict=True) for query in part
    }
    return PinnedBuckets(bucket_of_query, float(loads.sum()), float(loads.max()))
