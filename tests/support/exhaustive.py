"""Oracles of the optimizer: workloads as the papers draw them, merging pair by pair, and the best plan there is."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from random import Random

from weft.model import ACQ, Call, Window, Workload
from weft.optimizer import Cost

SECOND = 1_000_000


def query(name: str, seconds: float, slide: float, offset: float = 0, **others: object) -> ACQ:
    window = Window(round(seconds * SECOND), round(slide * SECOND), round(offset * SECOND))
    return ACQ(name=name, window=window, calls=(Call("max", ("price",)),), outputs=(), **others)  # type: ignore[arg-type]


def queries(*windows: tuple[float, float]) -> Workload:
    """Named a, b, c, ..., each (range, slide) in seconds."""
    return Workload(query(chr(ord("a") + i), seconds, slide) for i, (seconds, slide) in enumerate(windows))


def drawn(count: int, seed: int, skew: float = 0.6, most_overlap: int = 50, unit: float = 1) -> Workload:
    """Slides by Zipf over the factors of 3600 units, long ones popular; overlap factors uniform."""
    random = Random(seed)
    factors = [n for n in range(3600, 0, -1) if 3600 % n == 0]
    weights = [1 / rank**skew for rank in range(1, len(factors) + 1)]
    slides = random.choices(factors, weights, k=count)
    return Workload(
        query(f"q{i}", round(slide * random.uniform(1, most_overlap)) * unit, slide * unit)
        for i, slide in enumerate(slides)
    )


def pair_by_pair(trees: list[list[ACQ]], saving: Fraction, cost: Cost) -> list[list[str]]:
    """The papers' greedy, each round over all pairs: the greatest gain wins, of equal gains the first."""
    trees = list(trees)
    while True:
        best, place = Fraction(0), None
        for i, j in combinations(range(len(trees)), 2):
            left, right = cost.tree(trees[i]).final_cost, cost.tree(trees[j]).final_cost
            gain = saving + left + right - cost.tree(trees[i] + trees[j]).final_cost
            if gain > best:
                best, place = gain, (i, j)
        if place is None:
            return [[q.name for q in tree] for tree in trees]
        i, j = place
        trees[i] = trees[i] + trees[j]
        del trees[j]


def cheapest(workload: Sequence[ACQ], rate: Fraction, cost: Cost) -> float:
    """The least cost over all partitions into trees with a pass each, by dynamic programming over subsets."""
    count = len(workload)
    tree = [0.0] * (1 << count)
    for mask in range(1, 1 << count):
        members = [q for i, q in enumerate(workload) if mask >> i & 1]
        tree[mask] = float(rate + cost.tree(members).final_cost)
    best = [0.0] * (1 << count)
    for mask in range(1, 1 << count):
        lowest = mask & -mask
        others = part = mask ^ lowest
        least = tree[mask]
        while part:  # the tree of the lowest query is `mask` without `part`
            least = min(least, tree[mask ^ part] + best[part])
            part = (part - 1) & others
        best[mask] = least
    return best[-1]
