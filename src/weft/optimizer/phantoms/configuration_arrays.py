"""Many configurations side by side, as arrays: a greedy search prices all that it compares at once.

All have equally many tables. Slot `t` of configuration `c` is entry `c * width + t`; the last slot of each is the
stream, which feeds the raw tables. Sums over what a table feeds go from the deepest level to the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.calibration.table_costs import ProbeCosts
from weft.optimizer.phantoms.collisions import Floats, Flows, collision_rate
from weft.optimizer.phantoms.configuration import Configuration
from weft.optimizer.phantoms.epochs import eviction_rate
from weft.optimizer.phantoms.relation import Relation
from weft.optimizer.phantoms.statistics import GroupStatistics, estimate

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RelationArrays:
    """What the cost of a table depends on, besides the table that feeds it."""

    groups: Floats
    widths: Floats
    is_query: Bools
    epochs: Ints
    """A bit per length in `FlowsAndEpochs.lengths`; no bits for relations that are no query."""

    def take(self, slots: Ints) -> RelationArrays:
        return RelationArrays(self.groups[slots], self.widths[slots], self.is_query[slots], self.epochs[slots])


@dataclass(frozen=True, slots=True)
class FlowsAndEpochs:
    """Statistics that are the same for all relations."""

    flows: Flows
    rows: float
    lengths: tuple[int, ...]
    """The distinct lengths of epochs."""


def describe(
    relations: Sequence[Relation], queries: frozenset[Relation], statistics: GroupStatistics
) -> tuple[RelationArrays, FlowsAndEpochs]:
    groups = estimate(relations, statistics.groups, statistics.rows)
    ends: Mapping[Relation, tuple[int, ...]] = {query: statistics.epochs.get(query, (1,)) for query in queries}
    lengths = tuple(sorted({length for each in ends.values() for length in each}))
    bit = {length: 1 << place for place, length in enumerate(lengths)}
    columns = RelationArrays(
        np.array([groups[r] for r in relations], np.float64),
        np.array([statistics.width(r) for r in relations], np.float64),
        np.array([r in queries for r in relations], np.bool_),
        np.array([sum({bit[length] for length in ends.get(r, ())}) for r in relations], np.int64),
    )
    return columns, FlowsAndEpochs(statistics.flows, statistics.rows, lengths)


class Forests:
    """`parents[c, t]` is the slot that feeds table `t` of configuration `c`; the one after the last is the stream."""

    def __init__(self, parents: Ints, columns: RelationArrays, stream: FlowsAndEpochs) -> None:
        self.number, self.tables = parents.shape
        self.width = self.tables + 1
        self.stream = stream
        base = np.arange(self.number, dtype=np.int64)[:, None] * self.width
        self.up = (np.pad(parents, ((0, 0), (0, 1)), constant_values=self.tables) + base).ravel()
        self.source = (base[:, 0] + self.tables).astype(np.int64)
        self.groups = self._flat(columns.groups, 1.0)
        self.widths = self._flat(columns.widths, 1.0)
        self.is_query = self._flat(columns.is_query.astype(np.float64), 0.0)
        self.epochs = columns.epochs
        self.depth = self._depths()
        self.levels = [np.flatnonzero(self.depth == d) for d in range(1, int(self.depth.max(initial=0)) + 1)]
        self.flow = stream.flows.length(self.depth)
        self.weight = self.groups * self.widths / self.flow
        """Space is divided by this: `g * h / l`, since the linear collision rate is `mu * g * h / (l * space)`."""

    @classmethod
    def one(cls, configuration: Configuration, statistics: GroupStatistics) -> Forests:
        """Slots in the order of `configuration.relations`."""
        relations, parents = configuration.relations, configuration.parents
        slot = {relation: place for place, relation in enumerate(relations)}
        ups = [len(relations) if (p := parents[r]) is None else slot[p] for r in relations]
        return cls(np.array([ups], np.int64), *describe(relations, configuration.queries, statistics))

    def _flat(self, values: NDArray[np.generic], stream: float) -> Floats:
        wide = np.full((self.number, self.width), stream)
        wide[:, : self.tables] = values
        return wide.ravel()

    def _depths(self) -> Ints:
        depth = np.ones(len(self.up), np.int64)
        depth[self.source] = 0
        while True:
            deeper = depth[self.up] + 1
            deeper[self.source] = 0
            if np.array_equal(deeper, depth):
                return depth
            depth = deeper

    def fed(self, level: Ints, values: Floats) -> Floats:
        """For every entry, the sum over the tables of this level that it feeds; `values` has one for each of them."""
        return np.bincount(self.up[level], weights=values, minlength=len(self.up)).astype(np.float64, copy=False)

    def by_table(self, values: Floats) -> Floats:
        """Without the stream: one row per configuration, one column per table."""
        return values.reshape(self.number, self.width)[:, : self.tables]

    # Costs.

    def collision_rates(self, space: Floats) -> Floats:
        return collision_rate(self.groups, space / self.widths) / self.flow

    def leaving(self, space: Floats, prices: ProbeCosts) -> Floats:
        """The cost of a group that leaves a table: an eviction if the table is a query, and a row of each table below.

        A row of a table costs a probe, and with the probability of a collision the cost of a group that leaves it.
        For the stream itself this is the cost of a row (equation 7).
        """
        rates = self.collision_rates(space)
        leaving = self.is_query * prices.eviction
        for level in reversed(self.levels):
            leaving = leaving + self.fed(level, prices.probe + rates[level] * leaving[level])
        return leaving

    def row_cost(self, space: Floats, prices: ProbeCosts) -> Floats:
        """The cost per row within an epoch, in each configuration (equation 7)."""
        cost: Floats = self.leaving(space, prices)[self.source]
        return cost

    def emptying(self, space: Floats, prices: ProbeCosts) -> Floats:
        """Emptying each table once, the finest first: the work at the end of an epoch (equation 8)."""
        work: Floats = self.by_table(self._entries(space) * self.leaving(space, prices)).sum(1)
        return work

    def cost(self, space: Floats, prices: ProbeCosts) -> Floats:
        """The cost per row, with its share of emptying tables at ends of epochs (equation 29, per row of a cycle)."""
        leaving = self.leaving(space, prices)
        within: Floats = leaving[self.source]
        if not np.isfinite(self.stream.rows):
            return within
        times = self.eviction_rates()
        emptying: Floats = self.by_table(times * self._entries(space) * leaving).sum(1)
        return within + emptying / self.stream.rows

    def _entries(self, space: Floats) -> Floats:
        """Buckets that can hold something to empty."""
        return np.maximum(space / self.widths, 1.0)

    def eviction_rates(self) -> Floats:
        """How often each table is emptied per time unit: whenever an epoch of its query, or of one below it, ends."""
        bits = self._flat(self.epochs, 0).astype(np.int64)
        for level in reversed(self.levels):
            np.bitwise_or.at(bits, self.up[level], bits[level])
        different, which = np.unique(bits, return_inverse=True)
        lengths = self.stream.lengths
        rates = [
            float(eviction_rate(length for place, length in enumerate(lengths) if mask >> place & 1)) if mask else 0.0
            for mask in different.tolist()
        ]
        return np.array(rates)[which]
