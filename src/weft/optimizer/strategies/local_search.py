"""Local Search: move one query from a tree to another, the move that saves most first, for a bounded number of moves.

The papers bound the moves by twice, five or ten times the rounds that Weave Share takes for the same workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from random import Random

from weft.model import Workload
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.merge.greedy import weave
from weft.optimizer.strategies.base import GroupingTrees, Strategy, build, groupings
from weft.optimizer.strategies.random_share import SEED, random_trees
from weft.optimizer.strategies.tree_prices import Pricing, bits, singles
from weft.plan.logical import Plan

BOUNDS = (2, 5, 10)


def local_search(name: str, start: str, times: int) -> Strategy:
    """Start from `no_share` or `random`, and make at most `times` as many moves as Weave Share has rounds."""

    def search(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
        draw, sharings = Random(SEED), []
        for group in groupings(workload):
            pricing = Pricing(singles(group), cost)
            # A round merges two trees; the last one finds nothing to merge.
            rounds = len(group) - len(weave(group, statistics.rate, cost)) + 1
            begin = [1 << i for i in range(len(group))]
            trees = begin if start == "no_share" else random_trees(pricing, statistics.rate, draw)
            moved = _Moves(pricing, trees, statistics.rate).make(times * rounds)
            sharings.append(GroupingTrees(tuple(map(pricing.tree, moved))))
        return build(name, workload, statistics, cost, sharings)

    return search


class _Moves:
    """The best move of each query; a move changes two trees, so most of the costs are kept from move to move."""

    def __init__(self, pricing: Pricing, trees: list[int], per_tree: Fraction) -> None:
        self._pricing, self._per_tree = pricing, per_tree
        self._trees = dict(enumerate(trees))
        self._tree_of = {query: number for number, tree in self._trees.items() for query in bits(tree)}
        self._leaves: dict[int, Fraction] = {}  # what its tree costs less without the query
        # What other trees cost more with the query.
        self._enters: dict[int, dict[int, Fraction]] = {query: {} for query in self._tree_of}
        self._best: dict[int, tuple[Fraction, int]] = {}  # of those, the least, and its tree
        self._look_at(list(self._trees))

    def make(self, moves: int) -> list[int]:
        for _ in range(moves):
            query = min(self._best, key=lambda q: (self._best[q][0] - self._leaves[q], q), default=None)
            if query is None or self._best[query][0] >= self._leaves[query]:
                break
            old, number = self._tree_of[query], self._best[query][1]
            self._tree_of[query] = number
            self._trees[number] |= 1 << query
            self._trees[old] ^= 1 << query
            self._look_at([number, old])
        return [tree for tree in self._trees.values() if tree]

    def _look_at(self, changed: list[int]) -> None:
        costs = {number: self._cost(self._trees[number]) for number in changed}
        for query, enters in self._enters.items():
            for number in changed:
                tree = self._trees[number]
                enters.pop(number, None)
                if tree >> query & 1:
                    self._leaves[query] = costs[number] - self._cost(tree ^ 1 << query)
                elif tree:
                    enters[number] = self._per_tree + self._pricing.joined(tree, 1 << query) - costs[number]
            self._choose(query, changed)

    def _choose(self, query: int, changed: list[int]) -> None:
        enters = self._enters[query]
        former = self._best.pop(query, None)
        # Where the best tree did not change, only the changed ones can be better.
        among = changed if former is not None and former[1] not in changed and former[1] in enters else enters
        options = [(enters[number], number) for number in among if number in enters]
        if among is changed and former is not None:
            options.append(former)
        if options:
            self._best[query] = min(options)

    def _cost(self, tree: int) -> Fraction:
        return self._per_tree + self._pricing.final(tree) if tree else Fraction(0)


LOCAL_SEARCHES: Mapping[str, Strategy] = {
    # The best of the six in paper 1.
    "local_search": local_search("local_search", "no_share", 10),
    **{
        (name := f"local_search_{start}_{times}x"): local_search(name, start, times)
        for start, times in product(("no_share", "random"), BOUNDS)
    },
}
