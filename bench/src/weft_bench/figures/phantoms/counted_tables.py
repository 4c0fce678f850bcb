"""Runs rows through the direct-mapped tables of a configuration and counts collisions, to check the collision model.

It works on whole columns: in the order of arrival within each bucket, a row of another group than the one before it
evicts that group, and evicted groups go to the tables below in the order of eviction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.phantoms import (
    Configuration,
    Flows,
    GroupStatistics,
    ProbeCosts,
    Relation,
    TableCounts,
    TableNode,
    eviction_rate,
    measure_flows,
)
from weft_bench.data.packets import Packets

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of each table within an epoch."""

    configuration: Configuration
    counts: Mapping[Relation, TableCounts]
    rows: int

    def row_cost(self, prices: ProbeCosts) -> float:
        """Equation 7 with counted collisions instead of expected ones."""
        probes = sum(counts.rows for counts in self.counts.values())
        evictions = sum(self.counts[query].collisions for query in self.configuration.queries)
        return (probes * prices.probe + evictions * prices.eviction) / self.rows

    def cost(self, prices: ProbeCosts, statistics: GroupStatistics) -> float:
        """Equation 29 with counted rates: the cost per row, with its share of emptying tables at ends of epochs."""
        emptying = 0.0

        def feed(table: TableNode) -> tuple[float, set[int]]:
            """The cost of a row of this table, and the epochs after which the table is emptied."""
            nonlocal emptying
            counts = self.counts[table.relation]
            leaving = prices.eviction if table.is_query else 0.0
            ends = set(statistics.epochs.get(table.relation, (1,))) if table.is_query else set[int]()
            for child in table.children:
                cost, epochs = feed(child)
                leaving += cost
                ends |= epochs
            emptying += float(eviction_rate(ends)) * counts.buckets * leaving
            return prices.probe + (counts.collisions / counts.rows if counts.rows else 0.0) * leaving, ends

        within = sum(feed(root)[0] for root in self.configuration.raw)
        return within + emptying / statistics.rows

    @property
    def flows(self) -> Flows:
        return measure_flows(self.counts.values())


def throw(groups: Ints, buckets: int, seed: int = 0) -> tuple[Ints, Ints]:
    """The rows that collide, in the order of arrival, and for each a row of the evicted group."""
    bucket_numbers = bucket_of(groups, buckets, seed)
    order = np.argsort(bucket_numbers, kind="stable")
    before, after = order[:-1], order[1:]
    collide = (bucket_numbers[before] == bucket_numbers[after]) & (groups[before] != groups[after])
    when, thrown = after[collide], before[collide]
    arrived = np.argsort(when, kind="stable")
    return when[arrived], thrown[arrived]


def bucket_of(groups: Ints, buckets: int, seed: int) -> Ints:
    """A hash that spreads neighbouring numbers (SplitMix64)."""
    with np.errstate(over="ignore"):
        mixed = groups.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return (mixed % np.uint64(buckets)).astype(np.int64)


class Streams:
    """Packets, with a cache of their groups per relation."""

    def __init__(self, packets: Packets) -> None:
        self.packets = packets
        self._groups: dict[Relation, Ints] = {}

    def groups(self, relation: Relation) -> Ints:
        if relation not in self._groups:
            self._groups[relation] = self.packets.groups(relation)
        return self._groups[relation]

    def counts(self, relations: tuple[Relation, ...]) -> dict[Relation, float]:
        return {relation: float(self.groups(relation).max(initial=-1)) + 1 for relation in relations}

    def run(self, configuration: Configuration, buckets: Mapping[Relation, int], seed: int = 0) -> Counted:
        counts: dict[Relation, TableCounts] = {}

        def feed(table: TableNode, rows: Ints, depth: int) -> None:
            groups = self.groups(table.relation)
            _, thrown = throw(groups[rows], buckets[table.relation], seed + depth)
            count = float(groups.max(initial=-1)) + 1
            counts[table.relation] = TableCounts(depth, count, buckets[table.relation], len(rows), len(thrown))
            for child in table.children:
                feed(child, rows[thrown], depth + 1)

        for root in configuration.raw:
            feed(root, np.arange(len(self.packets), dtype=np.int64), 1)
        return Counted(configuration, counts, len(self.packets))

    def statistics(self, relations: tuple[Relation, ...], flows: Flows | None = None) -> GroupStatistics:
        return GroupStatistics(self.counts(relations), flows or Flows())
