"""The choice of phantoms as a value, and the ways to add a phantom or to change which table feeds which."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from weft.optimizer.phantoms.allocation import Allocated
from weft.optimizer.phantoms.configuration import Configuration
from weft.optimizer.phantoms.configuration_arrays import Bools, Forests, Ints, describe
from weft.optimizer.phantoms.feeding_graph import FeedingGraph
from weft.optimizer.phantoms.relation import Relation, order
from weft.optimizer.phantoms.statistics import GroupStatistics


@dataclass(frozen=True, slots=True)
class ChoiceStep:
    """A phantom that was added, or a table that began to feed others, and the cost per row after that step.

    The first step has no relation: it is the cost without phantoms.
    """

    relation: Relation | None
    cost: float


@dataclass(frozen=True, slots=True)
class Choice:
    """`allocated` is the result; `steps` say how the search got there, the cost without phantoms first."""

    allocated: Allocated
    steps: tuple[ChoiceStep, ...]

    @property
    def configuration(self) -> Configuration:
        return self.allocated.configuration

    @property
    def cost(self) -> float:
        return self.allocated.cost

    @property
    def unshared(self) -> float:
        """The cost per row without phantoms, with the space divided by the same method."""
        return self.steps[0].cost


class Candidates:
    """All relations of a feeding graph as arrays; relations are numbered."""

    def __init__(self, queries: Iterable[Relation], statistics: GroupStatistics) -> None:
        graph = FeedingGraph.of(queries)
        self.relations = graph.relations
        self.queries = graph.queries
        self.columns, self.stream = describe(graph.relations, frozenset(graph.queries), statistics)
        # One row per relation, one column per attribute: products of rows count common attributes.
        names = {name: place for place, name in enumerate(sorted(frozenset[str]().union(*graph.queries)))}
        has = np.zeros((len(self.relations), len(names)), np.int64)
        for number, relation in enumerate(self.relations):
            has[number, [names[name] for name in relation]] = 1
        sizes = has.sum(1)
        common = has @ has.T
        self.within = (common == sizes[:, None]) & (sizes[:, None] < sizes[None, :])
        """`within[i, j]`: relation i has some of the attributes of j and no others, so that j can feed it."""
        wanted_space = self.columns.groups * self.columns.widths
        ranked = sorted(range(len(self.relations)), key=lambda n: (wanted_space[n], sizes[n], order(self.relations[n])))
        self.rank = np.empty(len(ranked), np.int64)
        """By the space that the groups need, ascending; a relation within another has a lower rank."""
        self.rank[ranked] = np.arange(len(ranked))

    @cached_property
    def phantoms(self) -> Ints:
        return np.arange(len(self.queries), len(self.relations), dtype=np.int64)

    def begin(self) -> FedTables:
        """The stream feeds every query."""
        number = len(self.queries)
        return FedTables(self, np.arange(number, dtype=np.int64), np.full(number, number, np.int64))

    def nested(self) -> FedTables:
        """Each query is fed by the smallest query that contains it."""
        number = len(self.queries)
        above = np.where(self.within[:number, :number], self.rank[None, :number], np.iinfo(np.int64).max)
        parents = np.where(self.within[:number, :number].any(1), above.argmin(1), number)
        return FedTables(self, np.arange(number, dtype=np.int64), parents)


@dataclass(frozen=True, slots=True)
class FedTables:
    """Relations that have a table, and the slot of the table that feeds each; `len(slots)` stands for the stream."""

    candidates: Candidates
    slots: Ints
    parents: Ints

    @property
    def configuration(self) -> Configuration:
        names = self.candidates.relations
        relations = [names[number] for number in self.slots.tolist()]
        above = [None if p == len(relations) else relations[p] for p in self.parents.tolist()]
        return Configuration.of(dict(zip(relations, above)), self.candidates.queries)

    def forests(self) -> Forests:
        columns = self.candidates.columns.take(self.slots)
        return Forests(self.parents[None, :], columns, self.candidates.stream)

    def with_each(self, phantoms: Ints) -> Additions:
        """Every way to add one of these phantoms.

        It is fed by the smallest table that can feed it. Of all tables that it can feed, it takes either those with
        the same parent, or also those of larger phantoms elsewhere. Every phantom, old or new, must feed at least two
        tables: otherwise it does not pay.
        """
        tables, rank = len(self.slots), self.candidates.rank
        fits = self.candidates.within[np.ix_(self.slots, phantoms)].T
        over = self.candidates.within[np.ix_(phantoms, self.slots)]
        last = np.iinfo(np.int64).max
        ranks = np.append(rank[self.slots], last)
        above = np.where(over, rank[self.slots][None, :], last)
        above_slot = np.where(over.any(1), above.argmin(1), tables)
        beside = fits & (self.parents[None, :] == above_slot[:, None])
        taken = fits & (rank[phantoms][:, None] < ranks[self.parents][None, :])
        first = np.flatnonzero(np.count_nonzero(beside, axis=1) >= 2)
        second = np.flatnonzero((np.count_nonzero(taken, axis=1) >= 2) & (beside != taken).any(1))
        moved = np.concatenate([beside[first], taken[second]])
        which = np.concatenate([first, second])
        # The new table takes the slot that the stream had.
        feeding = np.where(moved, tables, np.where(self.parents == tables, tables + 1, self.parents)[None, :])
        up = above_slot[which]
        parents = np.concatenate([feeding, np.where(up == tables, tables + 1, up)[:, None]], axis=1)
        good = ~self._useless(parents)
        return Additions(self, phantoms[which[good]], parents[good])

    def with_other_feeders(self) -> Moves:
        """Every way to let a table feed more without a new table: one table more, or all siblings that it can feed.
        This is how a query comes to feed others.
        """
        tables = len(self.slots)
        can = self.candidates.within[np.ix_(self.slots, self.slots)]
        can &= self.parents[:, None] != np.arange(tables)[None, :]
        children, feeders = np.nonzero(can)
        ones = np.broadcast_to(self.parents, (len(children), tables)).copy()
        ones[np.arange(len(children)), children] = feeders
        beside = can.T & (self.parents[None, :] == self.parents[:, None])
        several = np.flatnonzero(beside.sum(1) > 1)
        alls = np.where(beside[several], several[:, None], self.parents[None, :])
        parents = np.concatenate([ones, alls])
        good = ~self._useless(parents)
        return Moves(self, np.concatenate([feeders, several])[good], parents[good])

    def _useless(self, parents: Ints) -> Bools:
        """Configurations in which a phantom feeds fewer than two tables."""
        ours = np.flatnonzero(~self.candidates.columns.is_query[self.slots])
        if not len(ours):
            return np.zeros(len(parents), np.bool_)
        width = parents.shape[1] + 1  # the stream feeds too
        entries = parents + np.arange(len(parents), dtype=np.int64)[:, None] * width
        feeds = np.bincount(entries.ravel(), minlength=len(parents) * width).reshape(-1, width)
        useless: Bools = feeds[:, ours].min(1) < 2
        return useless


@dataclass(frozen=True, slots=True)
class Moves:
    """Ways to feed the same tables: `feeders[c]` is the slot that feeds more in configuration c."""

    fed: FedTables
    feeders: Ints
    parents: Ints

    def __len__(self) -> int:
        return len(self.feeders)

    def forests(self) -> Forests:
        return Forests(self.parents, self.fed.candidates.columns.take(self.fed.slots), self.fed.candidates.stream)

    def relation(self, place: int) -> Relation:
        return self.fed.candidates.relations[int(self.fed.slots[self.feeders[place]])]

    def take(self, place: int) -> FedTables:
        return replace(self.fed, parents=self.parents[place])


@dataclass(frozen=True, slots=True)
class Additions:
    """Ways to have one phantom more: `phantoms[c]` is in the last slot of configuration c."""

    fed: FedTables
    phantoms: Ints
    parents: Ints

    def __len__(self) -> int:
        return len(self.phantoms)

    def forests(self) -> Forests:
        ours = np.broadcast_to(self.fed.slots, (len(self), len(self.fed.slots)))
        slots = np.concatenate([ours, self.phantoms[:, None]], axis=1)
        return Forests(self.parents, self.fed.candidates.columns.take(slots), self.fed.candidates.stream)

    def relation(self, place: int) -> Relation:
        return self.fed.candidates.relations[int(self.phantoms[place])]

    def take(self, place: int) -> FedTables:
        slots = np.append(self.fed.slots, self.phantoms[place])
        return replace(self.fed, slots=slots, parents=self.parents[place])
