"""Improving a partition into trees by small changes, within a bounded effort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from random import Random

from weft.optimizer.strategies.merge_trees import merge_trees
from weft.optimizer.strategies.tree_prices import Pricing, bits

SEED = 1

LARGEST_SPLIT = 32
"""Most atoms of a tree that is tried to split: the time grows with their cube."""

FUTILE = 20
"""Restarts without a better plan after which the search stops."""


class Improving:
    """Moves, merges, splits and swaps while they lower the cost; then restarts from a perturbed plan."""

    def __init__(self, pricing: Pricing, per_tree: Fraction, effort: int) -> None:
        self._pricing, self._per_tree = pricing, per_tree
        self._until = pricing.spent + effort
        self._draw = Random(SEED)

    def improve(self, trees: Sequence[int]) -> list[int]:
        """A partition that costs no more than `trees`; it may also come from all atoms alone, or all in one tree."""
        alone = [1 << i for i in range(len(self._pricing.atoms))]
        ends = [self._descend(list(begin)) for begin in (trees, alone, [self._pricing.all])]
        best = min(ends, key=self._total)
        least, futile = self._total(best), 0
        while futile < FUTILE and not self._spent():
            improved = self._descend(self._shaken(best))
            total = self._total(improved)
            futile += 1
            if total < least:
                best, least, futile = improved, total, 0
        return best

    def _spent(self) -> bool:
        return self._pricing.spent >= self._until

    def _affordable(self, pairs: int) -> bool:
        return self._pricing.spent + pairs <= self._until

    def _cost(self, tree: int) -> Fraction:
        return self._per_tree + self._pricing.final(tree) if tree else Fraction(0)

    def _total(self, trees: Sequence[int]) -> Fraction:
        return sum(map(self._cost, trees), Fraction(0))

    def _descend(self, trees: list[int]) -> list[int]:
        """Change the partition until no change lowers the cost; kinds that are cheap to try come first."""
        kinds: tuple[Callable[[list[int]], list[int] | None], ...] = (self._move, self._merge, self._split, self._swap)
        while not self._spent():
            changed = next((better for kind in kinds if (better := kind(trees)) is not None), None)
            if changed is None:
                break
            trees = changed
        return trees

    def _move(self, trees: list[int]) -> list[int] | None:
        """Move each atom, in turn, to the tree where it costs least, or to a tree of its own."""
        moved = False
        for atom in (1 << i for i in range(len(self._pricing.atoms))):
            if self._spent():
                break
            old = next(i for i, tree in enumerate(trees) if tree & atom)
            left = trees[old] ^ atom
            saved = self._cost(trees[old]) - self._cost(left)
            least, place = (self._cost(atom), len(trees)) if left else (saved, old)
            for i, tree in enumerate(trees):
                if i != old:
                    more = self._pricing.joined(tree, atom) - self._pricing.final(tree)
                    if more < least:
                        least, place = more, i
            if least < saved:
                trees = [tree | atom if i == place else tree for i, tree in enumerate([*trees, 0])]
                trees[old] = left
                trees = [tree for tree in trees if tree]
                moved = True
        return trees if moved else None

    def _merge(self, trees: list[int]) -> list[int] | None:
        if not self._affordable(len(trees) ** 2 // 2):
            return None
        merged, _ = merge_trees(self._pricing, trees, self._per_tree)
        return merged if len(merged) < len(trees) else None

    def _split(self, trees: list[int]) -> list[int] | None:
        for tree in trees:
            if self._spent():
                break
            part = self._best_part(tree)
            if part:
                return [*(other for other in trees if other != tree), part, tree ^ part]
        return None

    def _best_part(self, tree: int) -> int:
        """Move atoms into a second tree one by one, each time the best; the second tree at the lowest cost, or 0."""
        if not 2 < tree.bit_count() <= LARGEST_SPLIT:
            return 0  # two atoms are split by `_move`
        least, best, part = self._cost(tree), 0, 0
        for _ in range(tree.bit_count() - 1):
            options = [(self._cost(part | 1 << i) + self._cost(tree ^ (part | 1 << i)), i) for i in bits(tree ^ part)]
            total, atom = min(options)
            part |= 1 << atom
            if total < least:
                least, best = total, part
        return best

    def _swap(self, trees: list[int]) -> list[int] | None:
        for one, other in combinations(trees, 2):
            before = self._cost(one) + self._cost(other)
            for i in bits(one):
                if self._spent():
                    return None
                for j in bits(other):
                    both = 1 << i | 1 << j
                    if self._cost(one ^ both) + self._cost(other ^ both) < before:
                        return [*(t for t in trees if t not in (one, other)), one ^ both, other ^ both]
        return None

    def _shaken(self, trees: Sequence[int]) -> list[int]:
        """Some atoms, mostly of two trees, become trees of their own and are merged greedily again."""
        chosen = self._draw.sample(range(len(trees)), min(2, len(trees)))
        loose = 0
        for i in range(len(self._pricing.atoms)):
            near = any(trees[t] >> i & 1 for t in chosen)
            if self._draw.random() < (0.5 if near else 0.05):
                loose |= 1 << i
        kept = [tree & ~loose for tree in trees if tree & ~loose]
        fresh = [1 << i for i in bits(loose)]
        changed = {*fresh, *kept} - set(trees)
        if not self._affordable(len(changed) * (len(kept) + len(fresh))):
            return [*kept, *fresh]
        merged, _ = merge_trees(self._pricing, [*kept, *fresh], self._per_tree, changed)
        return merged
