"""What is known about a stream's groups: how many each relation has, how they come, and how wide a bucket is.

Few relations are counted; the others are estimated from them, and stay between what they contain and what contains
them:

>>> from weft.optimizer.phantoms.relation import read
>>> known = {read("A"): 10, read("B"): 20, read("BC"): 60, read("ABCD"): 900, read("D"): 3}
>>> found = estimate([read(text) for text in ("AB", "ABC", "C")], known, rows=1e9)
>>> [round(found[read(text)]) for text in ("AB", "ABC", "C")]
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
    """Of the relations that were counted, in an epoch."""
    flows: Flows = field(default_factory=Flows)
    rows: float = float("inf")
    """Rows in one unit of the time that `epochs` are given in: what emptying the tables is spread over. Infinitely
    many: it costs nothing, as in sections 3 to 6 of the paper."""
    epochs: Mapping[Relation, tuple[int, ...]] = field(default_factory=dict)
    """Of the queries that are not answered each unit; several where queries with the same relation differ."""
    widths: Mapping[Relation, float] = field(default_factory=dict)
    """Units of space a bucket; an attribute and the count take one each where nothing is said."""

    def __post_init__(self) -> None:
        for relation, count in self.groups.items():
            if not (np.isfinite(count) and count >= 0):
                raise UnknownGroups(f"{show(relation)} cannot have {count:g} groups; give a number from 0 on")

    def width(self, relation: Relation) -> float:
        return self.widths.get(relation, len(relation) + 1.0)


def estimate(wanted: Iterable[Relation], known: Mapping[Relation, float], rows: float) -> dict[Relation, float]:
    """Groups of every wanted relation: counted ones as they are, the others by what they are put together from."""
    wanted = tuple(wanted)
    counted = {relation: max(1.0, float(known[relation])) for relation in sorted(known, key=order)}
    groups_of: dict[Relation, float] = {frozenset(): 1.0}
    # Smaller relations first: a larger one has no fewer groups than any that it contains.
    for relation in sorted(set(wanted) | set(known), key=lambda r: (len(r), order(r))):
        if relation in counted:
            groups_of[relation] = counted[relation]
            continue
        if not relation:
            continue
        least = max((count for other, count in groups_of.items() if other < relation), default=1.0)
        most = min((count for other, count in counted.items() if other > relation), default=float("inf"))
        groups_of[relation] = max(1.0, min(max(least, _drawn(_independent(relation, counted, most), rows)), most))
    return {relation: groups_of[relation] for relation in wanted}


def _independent(relation: Relation, counted: Mapping[Relation, float], most: float) -> float:
    """As many as there would be if parts were independent, given what they have in common: |AB| |BC| / |B|."""
    parts = [(other, count) for other, count in counted.items() if other <= relation and other]
    covered: Relation = frozenset()
    product = 1.0
    while covered != relation:
        # The part that brings most attributes; of those the one that brings fewest groups, the first where equal.
        new = [(part, count / _common(part & covered, counted)) for part, count in parts if part - covered]
        if not new:
            if np.isfinite(most):
                return most
            missing = ", ".join(sorted(relation - covered))
            raise UnknownGroups(
                f"nothing tells how many groups {show(relation)} has: no count has {missing}; count {show(relation)}, "
                "or each of its attributes"
            )
        part, factor = min(new, key=lambda item: (-len(item[0] - covered), item[1]))
        covered |= part
        product *= max(factor, 1.0)
    return product


def _common(shared: Relation, counted: Mapping[Relation, float]) -> float:
    return max((count for other, count in counted.items() if other <= shared), default=1.0) if shared else 1.0


def _drawn(possible: float, rows: float) -> float:
    """How many of so many possible groups occur in so many rows (Cardenas).

    >>> round(_drawn(1000, 1000)), _drawn(1000, float("inf"))
    (632, 1000)
    """
    if not np.isfinite(rows) or possible <= 1:
        return possible
    return float(-possible * np.expm1(rows * np.log1p(-1.0 / possible)))
