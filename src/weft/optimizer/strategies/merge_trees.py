"""Greedy merging of trees from another search: the weaving phase of Insert-then-Weave and others."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations

from weft.optimizer.strategies.tree_prices import Pricing


def merge_trees(
    pricing: Pricing, trees: Iterable[int], per_tree: Fraction, changed: Iterable[int] | None = None
) -> tuple[list[int], int]:
    """Merge the two trees that save most until no merge saves; return the trees and the number of compared pairs.

    With `changed`, only pairs with such a tree, or with one that was merged here, are compared: the other pairs were
    not worth merging before.
    """
    left = list(trees)
    new = set(left if changed is None else changed)
    gains = {
        (one, other): _gain(pricing, one, other, per_tree)
        for one, other in combinations(left, 2)
        if one in new or other in new
    }
    compared = len(gains)
    while gains:
        (one, other), gain = max(gains.items(), key=lambda entry: entry[1])
        if gain <= 0:
            break
        left = [tree for tree in left if tree not in (one, other)]
        gains = {pair: gain for pair, gain in gains.items() if not {one, other} & set(pair)}
        gains |= {(tree, one | other): _gain(pricing, tree, one | other, per_tree) for tree in left}
        compared += len(left)
        left.append(one | other)
    return left, compared


def _gain(pricing: Pricing, one: int, other: int, per_tree: Fraction) -> Fraction:
    return per_tree + pricing.final(one) + pricing.final(other) - pricing.joined(one, other)
