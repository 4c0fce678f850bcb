"""Divide filters into classes, each with a pass of its own: one class would give nearly every row another signature.

Filters on different columns are assumed independent, so the numbers of their signatures multiply. One more pass costs
one probe per row; signatures that hardly repeat cost one partial per row. How often signatures occur is counted on rows
once there are statistics; until then, the number of signatures is bounded by the cuts of the filters in each column.

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
"""Most classes whose pairs are compared: beyond that, the smallest classes are put into one first."""


def signatures(filters: Sequence[Cuts]) -> float:
    """An upper bound of the number of signatures of these filters, as a logarithm."""
    cuts: dict[str, set[str]] = {}
    for each in filters:
        for column, values in each.items():
            cuts.setdefault(column, set()).update(values)
    # n cuts divide the values of a column into n cut values and n + 1 ranges.
    ways = sum(log1p(len(values) if values == {""} else 2 * len(values)) for values in cuts.values())
    return min(ways, len(filters) * log(2))


Occurrences = Callable[[Sequence[int], float], float]
"""Partials per row, from the numbers of the filters in one class and the rows per slice."""


def classes_cost(
    classes: Iterable[Sequence[int]],
    filters: Sequence[Cuts],
    rows: float,
    prices: ProbeCosts = NATIVE,
    occurrences: Occurrences | None = None,
) -> float:
    """The cost per row with the filters in these classes, in the unit of the prices."""
    return sum(_price(filters, rows, prices, occurrences, frozenset(each)) for each in classes)


def _price(
    filters: Sequence[Cuts], rows: float, prices: ProbeCosts, occurrences: Occurrences | None, members: frozenset[int]
) -> float:
    if occurrences is not None:
        return prices.probe + occurrences(sorted(members), rows) * prices.eviction
    ways = signatures([filters[number] for number in members])
    return prices.probe + min(1.0, exp(min(ways, 700.0)) / max(rows, 1.0)) * prices.eviction


def filter_classes(
    filters: Sequence[Cuts], rows: float, prices: ProbeCosts = NATIVE, occurrences: Occurrences | None = None
) -> list[list[int]]:
    """The numbers of the filters that share a pass; `rows` are per slice."""
    by_columns: dict[frozenset[str], list[int]] = {}
    for number, each in enumerate(filters):
        by_columns.setdefault(frozenset(each), []).append(number)
    classes = list(by_columns.values())
    if len(classes) > CLASSES:
        classes.sort(key=len)
        rest = classes[: -CLASSES + 1]
        classes = [sorted(number for each in rest for number in each), *classes[-CLASSES + 1 :]]

    price = cache(partial(_price, filters, rows, prices, occurrences))

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
