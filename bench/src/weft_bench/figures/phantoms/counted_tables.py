"""Rows through the direct-mapped tables of a configuration, counted: what the collision model is compared with.

Whole columns at a time: in the order of arrival within each bucket, a row that differs from the one before it throws
that group out, at that moment; and what is thrown out goes to the tables below in the order of those moments.
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
    Seen,
    TableNode,
    eviction_rate,
    measure_flows,
)
from weft_bench.data.packets import Packets

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counted:
    """What each table saw within an epoch."""

    configuration: Configuration
    seen: Mapping[Relation, Seen]
    rows: int

    def row_cost(self, prices: ProbeCosts) -> float:
        """Equation 7 with the collisions that happened instead of those expected."""
        probes = sum(seen.rows for seen in self.seen.values())
        evictions = sum(self.seen[query].collisions for query in self.configuration.queries)
        return (probes * prices.probe + evictions * prices.eviction) / self.rows

    def cost(self, prices: ProbeCosts, statistics: GroupStatistics) -> float:
        """Equation 29 with the rates that were seen: a row, with its share in emptying tables where epochs end."""
        emptying = 0.0

        def feed(table: TableNode) -> tuple[float, set[int]]:
            """What a row costs that comes to the table, and the epochs after which it is emptied."""
            nonlocal emptying
            seen = self.seen[table.relation]
            leaving = prices.eviction if table.asked else 0.0
            ends = set(statistics.epochs.get(table.relation, (1,))) if table.asked else set[int]()
            for child in table.children:
                cost, epochs = feed(child)
                leaving += cost
                ends |= epochs
            emptying += float(eviction_rate(ends)) * seen.buckets * leaving
            return prices.probe + (seen.collisions / seen.rows if seen.rows else 0.0) * leaving, ends

        within = sum(feed(root)[0] for root in self.configuration.raw)
        return within + emptying / statistics.rows

    @property
    def flows(self) -> Flows:
        return measure_flows(self.seen.values())


def throw(groups: Ints, buckets: int, seed: int = 0) -> tuple[Ints, Ints]:
    """The rows that collide, in the order of arrival, and for each the row that stood for the group thrown out."""
    places = bucket_of(groups, buckets, seed)
    order = np.argsort(places, kind="stable")
    before, after = order[:-1], order[1:]
    collide = (places[before] == places[after]) & (groups[before] != groups[after])
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
    """Packets, with the groups of every relation that was asked about."""

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
        seen: dict[Relation, Seen] = {}

        def feed(table: TableNode, rows: Ints, depth: int) -> None:
            groups = self.groups(table.relation)
            _, thrown = throw(groups[rows], buckets[table.relation], seed + depth)
            count = float(groups.max(initial=-1)) + 1
            seen[table.relation] = Seen(depth, count, buckets[table.relation], len(rows), len(thrown))
            for child in table.children:
                feed(child, rows[thrown], depth + 1)

        for root in configuration.raw:
            feed(root, np.arange(len(self.packets), dtype=np.int64), 1)
        return Counted(configuration, seen, len(self.packets))

    def statistics(self, relations: tuple[Relation, ...], flows: Flows | None = None) -> GroupStatistics:
        return GroupStatistics(self.counts(relations), flows or Flows())
