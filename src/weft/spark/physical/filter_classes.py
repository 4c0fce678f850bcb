"""The classes of a pass's filters, chosen by the signatures of earlier batches, and whether they are still the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from weft.optimizer.filter_classes import Occurrences, classes_cost, filter_classes
from weft.spark.physical.statistics import SignatureCounts
from weft.sql.predicates import cuts

SignatureLookup = Callable[[Sequence[str], tuple[str, ...]], SignatureCounts | None]
"""The counted signatures of some filters, for the keys of a grouping; None: they were not counted."""


@dataclass(frozen=True, slots=True)
class FilterClasses:
    """Which filters of a pass share a signature, where a slice has `rows` rows."""

    keys: tuple[str, ...]
    filters: tuple[str, ...]
    rows: float
    classes: tuple[tuple[int, ...], ...]
    """Each class as positions in `filters`."""

    @classmethod
    def of(
        cls, keys: tuple[str, ...], filters: Sequence[str], rows: float, signatures_of: SignatureLookup
    ) -> FilterClasses:
        filter_cuts = [cuts(f) for f in filters]
        # Filters on the same columns stay together, however often they pass.
        counted = signatures_of(filters, keys) if len({frozenset(c) for c in filter_cuts}) > 1 else None
        classes = filter_classes(filter_cuts, rows, occurrences=_occurrences(counted, filters))
        return cls(keys, tuple(filters), rows, tuple(map(tuple, classes)))

    def costs_beside(self, other: FilterClasses, signatures_of: SignatureLookup) -> tuple[float, float] | None:
        """What a row costs in these classes and in others, by the counted signatures; None: they were not counted."""
        occurrences = _occurrences(signatures_of(self.filters, self.keys), self.filters)
        if occurrences is None:
            return None
        filter_cuts = [cuts(f) for f in self.filters]
        own_cost, other_cost = (
            classes_cost(some.classes, filter_cuts, self.rows, occurrences=occurrences) for some in (self, other)
        )
        return own_cost, other_cost


def better_classes(current: Iterable[FilterClasses], signatures_of: SignatureLookup, tolerance: Fraction) -> str | None:
    """Why filters should be in other classes, in words; None: rows would not be cheaper by more than the tolerance."""
    moved = []
    for classing in current:
        if len(classing.filters) < 2:
            continue
        best = FilterClasses.of(classing.keys, classing.filters, classing.rows, signatures_of)
        costs = None if best.classes == classing.classes else classing.costs_beside(best, signatures_of)
        if costs is not None and costs[0] > (1 + tolerance) * costs[1]:
            by = f" by {', '.join(classing.keys)}" if classing.keys else ""
            moved.append(
                f"{len(classing.filters)} filters{by} in {_classes(best)}, not {_classes(classing)}, "
                f"a row costs {costs[1]:.2f} probes, not {costs[0]:.2f}"
            )
    return f"signatures were counted again: {'; '.join(moved)}" if moved else None


def _classes(classing: FilterClasses) -> str:
    """
    >>> _classes(FilterClasses((), ("a", "b", "c"), 1.0, ((0, 2), (1,))))
    '2 passes of 2 and 1'
    """
    sizes = [str(len(each)) for each in classing.classes]
    return "one pass" if len(sizes) == 1 else f"{len(sizes)} passes of {', '.join(sizes[:-1])} and {sizes[-1]}"


def _occurrences(counted: SignatureCounts | None, filters: Sequence[str]) -> Occurrences | None:
    if counted is None:
        return None
    return lambda members, rows: counted.partials([filters[place] for place in members], rows)


def separable_filters(filters: Mapping[tuple[str, ...], Iterable[str]]) -> dict[tuple[str, ...], list[str]]:
    """By keys of a grouping, the filters that could be in several classes, because they read different columns."""
    return {keys: sorted(some) for keys, some in filters.items() if len({frozenset(cuts(f)) for f in some}) > 1}
