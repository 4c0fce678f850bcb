"""Phantoms without a memory to divide: tables as large as their groups, each emptied once per batch.

That is what Spark's own aggregation is. A row costs a probe of each table that rows come to; what a table gathers
costs an eviction, and a probe of each grouping that is rolled up from it. So a table's price does not depend on the
others, and choosing them is opening facilities: each has a price, and each group-by goes to the cheapest that has its
attributes.

>>> from weft.optimizer.phantoms.relation import read
>>> asked = [GroupBy(read(text), partials) for text, partials in (("AB", 0.01), ("BC", 0.01), ("D", 0.001))]
>>> found = roll_up(asked, {read("ABC"): 0.02, read("ABCD"): 0.9})
>>> str(found.configuration), round(found.cost, 2), round(found.unshared, 2)
('ABC(AB BC) D', 2.38, 3.17)
>>> str(roll_up(asked, {read("ABCD"): 0.9}).configuration)
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
"""A row in Spark's hash aggregation, and a partial that is shuffled and merged."""


@dataclass(frozen=True, slots=True)
class GroupBy:
    """A group-by: how many partials per row it has, and whether they can be made from finer ones."""

    relation: Relation
    partials: float
    rolls: bool = True


@dataclass(frozen=True)
class RollUp:
    """Which table each group-by is made from, by their places; `tables` are relations, None for its own."""

    asked: tuple[GroupBy, ...]
    tables: tuple[Relation | None, ...]
    cost: float
    """A row's, in the unit of the prices."""
    unshared: float

    @property
    def shares(self) -> bool:
        return any(table is not None for table in self.tables)

    @cached_property
    def configuration(self) -> Configuration:
        parents: dict[Relation, Relation | None] = {}
        for group_by, table in zip(self.asked, self.tables, strict=True):
            if table is not None:
                parents[table] = None
            if group_by.relation != table:
                parents.setdefault(group_by.relation, table)
        return Configuration.of(parents, [group_by.relation for group_by in self.asked])


def roll_up(asked: Sequence[GroupBy], candidates: Mapping[Relation, float], prices: ProbeCosts = NATIVE) -> RollUp:
    """`candidates` are relations that could feed, with their partials per row. Tables are opened and closed one at a
    time as long as that saves something."""
    relations = sorted(candidates, key=order)
    partials = np.array([candidates[r] for r in relations], np.float64)
    opening = prices.probe + partials * prices.eviction
    fits = np.array([[a.rolls and a.relation <= r for a in asked] for r in relations], bool).reshape(-1, len(asked))
    feeding = np.where(fits, partials[:, None] * prices.probe, np.inf)
    own = np.array([a.partials for a in asked], np.float64)
    # Beside phantoms a group-by's own table comes through the rolling up too.
    alone = prices.probe + own * (prices.probe + prices.eviction)
    last = float(own.sum() * prices.eviction)
    chosen = _open(opening, feeding, alone)
    unshared = len(asked) * prices.probe + last
    cost = _cost(chosen, opening, feeding, alone) + last
    if cost >= unshared:
        return RollUp(tuple(asked), (None,) * len(asked), unshared, unshared)
    places = np.where(chosen[:, None], feeding, np.inf)
    best = places.argmin(0)
    fed = places.min(0, initial=np.inf) < alone
    tables = tuple(relations[r] if is_fed else None for r, is_fed in zip(best.tolist(), fed.tolist(), strict=True))
    return RollUp(tuple(asked), tables, cost, unshared)


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
