"""Filters of a pass in classes, by the signatures that batches have shown, and whether those are still right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from weft.optimizer.filter_classes import Occurrences, classes_cost, filter_classes
from weft.spark.physical.statistics import SignatureCounts
from weft.sql.predicates import cuts

Known = Callable[[Sequence[str], tuple[str, ...]], SignatureCounts | None]
"""What was counted of some filters, for the keys of a grouping."""


@dataclass(frozen=True, slots=True)
class FilterClasses:
    """Which filters of a pass share a signature, for so many rows in a slice."""

    keys: tuple[str, ...]
    filters: tuple[str, ...]
    rows: float
    classes: tuple[tuple[int, ...], ...]
    """Places of filters."""

    @classmethod
    def of(cls, keys: tuple[str, ...], filters: Sequence[str], rows: float, known: Known) -> FilterClasses:
        found = [cuts(f) for f in filters]
        # Filters on the same columns stay together, however often they pass.
        counted = known(filters, keys) if len({frozenset(c) for c in found}) > 1 else None
        classes = filter_classes(found, rows, occurrences=_occurrences(counted, filters))
        return cls(keys, tuple(filters), rows, tuple(map(tuple, classes)))

    def beside(self, other: FilterClasses, known: Known) -> tuple[float, float] | None:
        """What a row costs in these classes and in others, by what was counted; None: nothing was."""
        seen = _occurrences(known(self.filters, self.keys), self.filters)
        if seen is None:
            return None
        found = [cuts(f) for f in self.filters]
        mine, others = (classes_cost(some.classes, found, self.rows, occurrences=seen) for some in (self, other))
        return mine, others


def better_classes(present: Iterable[FilterClasses], known: Known, tolerance: Fraction) -> str | None:
    """Why filters should be in other classes than they are, in words; None: a row would not cost so much less."""
    moved = []
    for classing in present:
        if len(classing.filters) < 2:
            continue
        best = FilterClasses.of(classing.keys, classing.filters, classing.rows, known)
        costs = None if best.classes == classing.classes else classing.beside(best, known)
        if costs is not None and costs[0] > (1 + tolerance) * costs[1]:
            by = f" by {', '.join(classing.keys)}" if classing.keys else ""
            moved.append(
                f"{len(classing.filters)} filters{by} in {_classes(best)}, not {_classes(classing)}, "
                f"a row costs {costs[1]:.2f} probes, not {costs[0]:.2f}"
            )
    return f"signatures were counted anew: {'; '.join(moved)}" if moved else None


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


def apart(filters: Mapping[tuple[str, ...], Iterable[str]]) -> dict[tuple[str, ...], list[str]]:
    """By keys of a grouping, the filters that could be in several classes: they are on different columns."""
    return {keys: sorted(some) for keys, some in filters.items() if len({frozenset(cuts(f)) for f in some}) > 1}
