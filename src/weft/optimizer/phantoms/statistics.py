"""Statistics of the groups of a stream: how many each relation has, how rows are clustered, how wide a bucket is.

Few relations are counted. The others are estimated from them, with no fewer groups than any subset of the attributes
has, and no more than any superset:

>>> from weft.optimizer.phantoms.relation import read
>>> counts = {read("A"): 10, read("B"): 20, read("BC"): 60, read("ABCD"): 900, read("D"): 3}
>>> estimated = estimate([read(text) for text in ("AB", "ABC", "C")], counts, rows=1e9)
>>> [round(estimated[read(text)]) for text in ("AB", "ABC", "C")]
[200, 600, 60]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from weft.model import PlanError
from weft.optimizer.phantoms.collisions import Flows
from weft.optimizer.phantoms.relation import Relation, order, show


class UnknownGroups(PlanError):
    """A relation whose number of groups is neither counted nor can be estimated."""


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    groups: Mapping[Relation, float]
    """Groups per epoch of the relations that were counted."""
    flows: Flows = field(default_factory=Flows)
    rows: float = float("inf")
    """Rows per time unit of `epochs`: the cost of emptying the tables is spread over them. Infinite: emptying costs
    nothing, as in sections 3 to 6 of the paper."""
    epochs: Mapping[Relation, tuple[int, ...]] = field(default_factory=dict)
    """For queries that are not answered every time unit; several if queries with the same relation differ."""
    widths: Mapping[Relation, float] = field(default_factory=dict)
    """Units of space per bucket; by default one per attribute, and one for the count."""

    def __post_init__(self) -> None:
        for relation, count in self.groups.items():
            if not (np.isfinite(count) and count >= 0):
                raise UnknownGroups(f"{show(relation)} cannot have {count:g} groups; give a number from 0 on")

    def width(self, relation: Relation) -> float:
        return self.widths.get(relation, len(relation) + 1.0)


def estimate(relations: Iterable[Relation], counts: Mapping[Relation, float], rows: float) -> dict[Relation, float]:
    """Groups of each relation: counted ones as they are, the others estimated from counted parts."""
    relations = tuple(relations)
    counted = {relation: max(1.0, float(counts[relation])) for relation in sorted(counts, key=order)}
    groups_of: dict[Relation, float] = {frozenset(): 1.0}
    # Smaller relations first: a larger one has no fewer groups than any that it contains.
    for relation in sorted(set(relations) | set(counts), key=lambda r: (len(r), order(r))):
        if relation in counted:
            groups_of[relation] = counted[relation]
            continue
        if not relation:
            continue
        least = max((count for other, count in groups_of.items() if other < relation), default=1.0)
        most = min((count for other, count in counted.items() if other > relation), default=float("inf"))
        groups_of[relation] = max(1.0, min(max(least, _drawn(_independent(relation, counted, most), rows)), most))
    return {relation: groups_of[relation] for relation in relations}


def _independent(relation: Relation, counted: Mapping[Relation, float], most: float) -> float:
    """The number of groups if parts were independent given their common attributes: |AB| |BC| / |B|."""
    parts = [(other, count) for other, count in counted.items() if other <= relation and other]
    covered: Relation = frozenset()
    product = 1.0
    while covered != relation:
        # The part that adds most attributes; of those, the one that adds fewest groups; of equal ones, the first.
        new = [(part, count / _common(part & covered, counted)) for part, count in parts if part - covered]
        if not new:
            if np.isfinite(most):
                return most
            missing = ", ".join(sorted(relation - covered))
            raise UnknownGroups(
                f"the groups of {show(relation)} cannot be estimated: no count has {missing}; count {show(relation)}, "
                "or each of its attributes"
            )
        part, factor = min(new, key=lambda item: (-len(item[0] - covered), item[1]))
        covered |= part
        product *= max(factor, 1.0)
    return product


def _common(shared: Relation, counted: Mapping[Relation, float]) -> float:
    return max((count for other, count in counted.items() if other <= shared), default=1.0) if shared else 1.0


def _drawn(possible: float, rows: float) -> float:
    """How many of the possible groups occur in `rows` random rows (Cardenas).

    >>> round(_drawn(1000, 1000)), _drawn(1000, float("inf"))
    (632, 1000)
    """
    if not np.isfinite(rows) or possible <= 1:
        return possible
    return float(-possible * np.expm1(rows * np.log1p(-1.0 / possible)))
