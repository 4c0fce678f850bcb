"""Phantoms without a memory limit: every table has room for all its groups, and is emptied once per batch.

Spark's own aggregation works like that. A row costs one probe per table that rows go to. A partial of a table costs one
eviction, and one probe per grouping that is rolled up from the table. So the price of a table does not depend on other
tables, and choosing them is a facility location problem: each table has a price to open it, and each group-by goes to
the cheapest open table that has its attributes.

>>> from weft.optimizer.phantoms.relation import read
>>> group_bys = [GroupBy(read(text), partials) for text, partials in (("AB", 0.01), ("BC", 0.01), ("D", 0.001))]
>>> rolled = roll_up(group_bys, {read("ABC"): 0.02, read("ABCD"): 0.9})
>>> str(rolled.configuration), round(rolled.cost, 2), round(rolled.unshared, 2)
('ABC(AB BC) D', 2.38, 3.17)
>>> str(roll_up(group_bys, {read("ABCD"): 0.9}).configuration)
'AB BC D'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.calibration.table_costs import ProbeCosts
from weft.optimizer.phantoms.configuration import Configuration
from weft.optimizer.phantoms.relation import Relation, order

Floats = NDArray[np.float64]

NATIVE = ProbeCosts(probe=1.0, eviction=8.0)
"""Relative cost of a row in Spark's hash aggregation, and of a partial that is shuffled and merged."""


@dataclass(frozen=True, slots=True)
class GroupBy:
    """A group-by: its partials per row, and whether they can be computed from those of a finer grouping."""

    relation: Relation
    partials: float
    rolls: bool = True


@dataclass(frozen=True)
class RollUp:
    """`tables[i]` is the relation that group-by i is rolled up from; None: it is computed from rows."""

    group_bys: tuple[GroupBy, ...]
    tables: tuple[Relation | None, ...]
    cost: float
    """Per row, in the unit of the prices."""
    unshared: float

    @property
    def shares(self) -> bool:
        return any(table is not None for table in self.tables)

    @cached_property
    def configuration(self) -> Configuration:
        parents: dict[Relation, Relation | None] = {}
        for group_by, table in zip(self.group_bys, self.tables, strict=True):
            if table is not None:
                parents[table] = None
            if group_by.relation != table:
                parents.setdefault(group_by.relation, table)
        return Configuration.of(parents, [group_by.relation for group_by in self.group_bys])


def roll_up(group_bys: Sequence[GroupBy], candidates: Mapping[Relation, float], prices: ProbeCosts = NATIVE) -> RollUp:
    """`candidates` are relations that could feed others, with their partials per row. Tables are opened and closed one
    at a time while that lowers the cost."""
    relations = sorted(candidates, key=order)
    partials = np.array([candidates[r] for r in relations], np.float64)
    opening = prices.probe + partials * prices.eviction
    fits = np.array([[a.rolls and a.relation <= r for a in group_bys] for r in relations], bool).reshape(
        -1, len(group_bys)
    )
    feeding = np.where(fits, partials[:, None] * prices.probe, np.inf)
    own = np.array([a.partials for a in group_bys], np.float64)
    # If there are phantoms, a group-by with its own table goes through the roll-up as well.
    alone = prices.probe + own * (prices.probe + prices.eviction)
    last = float(own.sum() * prices.eviction)
    chosen = _open(opening, feeding, alone)
    unshared = len(group_bys) * prices.probe + last
    cost = _cost(chosen, opening, feeding, alone) + last
    if cost >= unshared:
        return RollUp(tuple(group_bys), (None,) * len(group_bys), unshared, unshared)
    feeding_chosen = np.where(chosen[:, None], feeding, np.inf)
    best = feeding_chosen.argmin(0)
    fed = feeding_chosen.min(0, initial=np.inf) < alone
    tables = tuple(relations[r] if is_fed else None for r, is_fed in zip(best.tolist(), fed.tolist(), strict=True))
    return RollUp(tuple(group_bys), tables, cost, unshared)


def _open(opening: Floats, feeding: Floats, alone: Floats) -> NDArray[np.bool_]:
    chosen = np.zeros(len(opening), bool)
    cost = _cost(chosen, opening, feeding, alone)
    while True:
        best, place = cost, -1
        for candidate in range(len(opening)):
            chosen[candidate] ^= True
            changed = _cost(chosen, opening, feeding, alone)
            if changed < best - 1e-12:
                best, place = changed, candidate
            chosen[candidate] ^= True
        if place < 0:
            return chosen
        chosen[place] ^= True
        cost = best


def _cost(chosen: NDArray[np.bool_], opening: Floats, feeding: Floats, alone: Floats) -> float:
    cheapest = np.minimum(alone, feeding[chosen].min(0, initial=np.inf))
    return float(opening[chosen].sum() + cheapest.sum())
