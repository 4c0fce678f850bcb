"""Local Search: move one query from a tree to another, the move that saves most first, for a bounded number of moves.

The papers bound the moves by twice, five or ten times the rounds that Weave Share takes for the same workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from random import Random

from weft.model import Workload
from weft.optimizer.cost import Cost, Statistics
from weft.optimizer.strategies.building import Sharing, Strategy, build, groupings
from weft.optimizer.strategies.pricing import Pricing, bits, singles
from weft.optimizer.strategies.random_share import SEED, random_trees
from weft.optimizer.weaving import weave
from weft.plan.values import Plan

BOUNDS = (2, 5, 10)


def local_search(name: str, start: str, times: int) -> Strategy:
    """From `no_share` or `random`, with `times` as many moves as Weave Share has rounds."""

    def search(workload: Workload, statistics: Statistics, cost: Cost) -> Plan:
        draw, sharings = Random(SEED), []
        for group in groupings(workload):
            pricing = Pricing(singles(group), cost)
            # A round merges two trees; the last one finds nothing to merge.
            rounds = len(group) - len(weave(group, statistics.rate, cost)) + 1
            begin = [1 << i for i in range(len(group))]
            trees = begin if start == "no_share" else random_trees(pricing, statistics.rate, draw)
            moved = _Moves(pricing, trees, statistics.rate).make(times * rounds)
            sharings.append(Sharing(tuple(map(pricing.tree, moved))))
        return build(name, workload, statistics, cost, sharings)

    return search


class _Moves:
    """All moves of one query with what each saves; a move changes two trees, so most of them stay known."""

    def __init__(self, pricing: Pricing, trees: list[int], per_tree: Fraction) -> None:
        self._pricing, self._per_tree = pricing, per_tree
        self._trees = dict(enumerate(trees))
        self._leaves: dict[int, Fraction] = {}  # what the query's tree costs less without it
        self._enters: dict[tuple[int, int], Fraction] = {}  # what a (tree, query) costs more with it
        self._home = {query: number for number, tree in self._trees.items() for query in bits(tree)}
        for number in self._trees:
            self._look_at(number)

    def make(self, moves: int) -> list[int]:
        for _ in range(moves):
            best = min(self._enters, key=lambda e: (self._enters[e] - self._leaves[e[1]], e), default=None)
            if best is None or self._enters[best] >= self._leaves[best[1]]:
                break
            number, query = best
            home, self._home[query] = self._home[query], number
            self._trees[number] |= 1 << query
            self._trees[home] ^= 1 << query
            for changed in (number, home):
                self._look_at(changed)
        return [tree for tree in self._trees.values() if tree]

    def _look_at(self, number: int) -> None:
        tree = self._trees[number]
        cost = self._cost(tree)
        for query in range(len(self._pricing.atoms)):
            self._enters.pop((number, query), None)
            if tree >> query & 1:
                self._leaves[query] = cost - self._cost(tree ^ 1 << query)
            elif tree:
                self._enters[number, query] = self._per_tree + self._pricing.joined(tree, 1 << query) - cost

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
