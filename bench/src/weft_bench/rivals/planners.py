"""What the planner is compared with: the first prototype of the exact counter, and merging pair by pair."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations

from weft.model import EdgeClass, Edges, Window

Classes = tuple[EdgeClass, ...]


def prototype_density(classes: Iterable[EdgeClass]) -> Fraction:
    """Exact, residue by residue of a shared prime, with a cache: sixty lines of plain Python."""
    memo: dict[Classes, Fraction] = {}

    def missed(some: Iterable[EdgeClass]) -> Fraction:
        left = _not_contained(some)
        if not left:
            return Fraction(1)
        if left[0][0] == 1:
            return Fraction(0)
        if left not in memo:
            product = Fraction(1)
            for part in _independent(left):
                product *= 1 - Fraction(1, part[0][0]) if len(part) == 1 else by_residue(part)
            memo[left] = product
        return memo[left]

    def by_residue(part: Sequence[EdgeClass]) -> Fraction:
        frequency = Counter(p for slide, _ in part for p in _primes(slide))
        p = max(frequency, key=lambda q: (frequency[q], -q))
        others = [(slide, shift) for slide, shift in part if slide % p]
        met: dict[int, list[EdgeClass]] = defaultdict(list)
        for slide, shift in part:
            if slide % p == 0:
                met[shift % p].append((slide // p, shift // p))
        total = (p - len(met)) * missed(others)  # residues that no class with p meets are alike
        for r, shrunk in met.items():
            total += missed(shrunk + [(slide, (shift - r) * pow(p, -1, slide) % slide) for slide, shift in others])
        return total / p

    return 1 - missed(classes)


def _not_contained(classes: Iterable[EdgeClass]) -> Classes:
    kept: list[EdgeClass] = []
    for slide, shift in sorted({(slide, shift % slide) for slide, shift in classes}):
        if not any(slide % s == 0 and shift % s == h for s, h in kept):
            kept.append((slide, shift))
    return tuple(kept)


def _independent(classes: Classes) -> list[list[EdgeClass]]:
    owner: dict[int, int] = {}
    parts: dict[int, tuple[list[EdgeClass], set[int]]] = {}
    for number, edge_class in enumerate(classes):
        members, own = [edge_class], set(_primes(edge_class[0]))
        for part in {owner[p] for p in own if p in owner}:
            joined, theirs = parts.pop(part)
            members, own = joined + members, own | theirs
        parts[number] = (members, own)
        owner.update(dict.fromkeys(own, number))
    return [members for members, _ in parts.values()]


@cache
def _primes(n: int) -> tuple[int, ...]:
    primes, divisor = [], 2
    while divisor * divisor <= n:
        if n % divisor == 0:
            primes.append(divisor)
            while n % divisor == 0:
                n //= divisor
        divisor += 1
    return (*primes, n) if n > 1 else tuple(primes)


def merge_pair_by_pair(
    windows: Sequence[Window], saving: Fraction, rate: Callable[[Edges], Fraction]
) -> tuple[list[list[int]], int]:
    """The papers' greedy over all pairs in each round, with Panes: trees as positions, and how many pairs it counted.

    Windows with equal edges begin in one tree, as in weft.
    """
    alike: dict[Edges, list[int]] = {}
    for position, window in enumerate(windows):
        alike.setdefault(Edges.of([window]), []).append(position)
    trees = [(members, edges, rate(edges), _overlap(windows, members)) for edges, members in alike.items()]
    counted = 0
    while True:
        best, place = Fraction(0), None
        for i, j in combinations(range(len(trees)), 2):
            (_, left, left_rate, left_omega), (_, right, right_rate, right_omega) = trees[i], trees[j]
            counted += 1
            after = rate(left | right) * (left_omega + right_omega)
            gain = saving + left_rate * left_omega + right_rate * right_omega - after
            if gain > best:
                best, place = gain, (i, j)
        if place is None:
            return [members for members, *_ in trees], counted
        i, j = place
        members, edges = sorted(trees[i][0] + trees[j][0]), trees[i][1] | trees[j][1]
        trees[i] = (members, edges, rate(edges), trees[i][3] + trees[j][3])
        del trees[j]


def _overlap(windows: Sequence[Window], members: Iterable[int]) -> Fraction:
    return sum((Fraction(windows[m].length, windows[m].slide) for m in members), Fraction(0))
