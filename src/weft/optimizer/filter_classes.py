"""Filters in classes, each with a pass of its own: where all in one would give nearly every row another signature.

Filters on different columns pass a row independently of each other, so that the signatures of both together are as
many as the product of each one's. A pass more costs each row a probe; signatures that hardly repeat cost each row a
partial. How often signatures occur is counted on rows, where some were seen; until then, outcomes are bounded by the
cuts that filters make in a column.

>>> prices = [{"price": frozenset({str(i)})} for i in range(100)]
>>> sizes = [{"size": frozenset({str(i)})} for i in range(100)]
>>> [len(each) for each in filter_classes(prices + sizes, rows=1_000)]
[100, 100]
>>> [len(each) for each in filter_classes(prices + sizes, rows=1e9)]
[200]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import combinations
from math import exp, log, log1p

from weft.calibration.table_costs import ProbeCosts
from weft.optimizer.phantoms.rollup import NATIVE

Cuts = Mapping[str, frozenset[str]]
"""By column, where a filter cuts its values."""

CLASSES = 24
"""Pairs of more than so many classes are not compared: those with the same columns stay together, the rest is one."""


def signatures(filters: Sequence[Cuts]) -> float:
    """The logarithm of how many ways there are to pass some filters, at most."""
    cuts: dict[str, set[str]] = {}
    for each in filters:
        for column, values in each.items():
            cuts.setdefault(column, set()).update(values)
    # A cut has a value on it and values on both sides; the second side is the next one's first.
    ways = sum(log1p(len(values) if values == {""} else 2 * len(values)) for values in cuts.values())
    return min(ways, len(filters) * log(2))


Occurrences = Callable[[Sequence[int], float], float]
"""Partials that a row makes, for the places of filters in one class and the rows of a slice."""


def classes_cost(
    classes: Iterable[Sequence[int]],
    filters: Sequence[Cuts],
    rows: float,
    prices: ProbeCosts = NATIVE,
    seen: Occurrences | None = None,
) -> float:
    """What a row costs with its filters in these classes, in the currency of the prices."""
    return sum(_price(filters, rows, prices, seen, frozenset(each)) for each in classes)


def _price(
    filters: Sequence[Cuts], rows: float, prices: ProbeCosts, seen: Occurrences | None, members: frozenset[int]
) -> float:
    if seen is not None:
        return prices.probe + seen(sorted(members), rows) * prices.eviction
    ways = signatures([filters[place] for place in members])
    return prices.probe + min(1.0, exp(min(ways, 700.0)) / max(rows, 1.0)) * prices.eviction


def filter_classes(
    filters: Sequence[Cuts], rows: float, prices: ProbeCosts = NATIVE, seen: Occurrences | None = None
) -> list[list[int]]:
    """The places of filters that share a pass, for so many rows in a slice."""
    by_columns: dict[frozenset[str], list[int]] = {}
    for place, each in enumerate(filters):
        by_columns.setdefault(frozenset(each), []).append(place)
    classes = list(by_columns.values())
    if len(classes) > CLASSES:
        classes.sort(key=len)
        rest = classes[: -CLASSES + 1]
        classes = [sorted(place for each in rest for place in each), *classes[-CLASSES + 1 :]]

    price = cache(partial(_price, filters, rows, prices, seen))

    def cost(members: Sequence[int]) -> float:
        return price(frozenset(members))

    costs = [cost(each) for each in classes]
    while len(classes) > 1:
        gain, left, right = max(
            (costs[i] + costs[j] - cost(classes[i] + classes[j]), i, j) for i, j in combinations(range(len(classes)), 2)
        )
        if gain <= 0:
            break
        classes[left] = classes[left] + classes.pop(right)
        costs.pop(right)
        costs[left] = cost(classes[left])
    return sorted(sorted(each) for each in classes)
