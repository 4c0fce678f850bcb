"""Paper 5: what its figures share. Packet headers made here stand for its trace: counts are like its own, not equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

from weft.optimizer.phantoms import (
    Choice,
    Configuration,
    Flows,
    GroupStatistics,
    ProbeCosts,
    Relation,
    allocate,
    choose,
    exhaustive,
    greedy_by_space,
    parse,
    read,
)
from weft.optimizer.phantoms.allocation import Allocated
from weft.optimizer.phantoms.exhaustive_space import exhaustive_space
from weft_bench.benchmark import Row
from weft_bench.data.packets import clustered, uniform
from weft_bench.figures.figure import Claims, Figure, Rows, Scale
from weft_bench.figures.phantoms.counted_tables import Counted, Streams

PRICES = ProbeCosts()
"""The paper's ratio of 15."""

PHIS = (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
ROWS_A_MINUTE = 832_000
"""860,000 packets in 62 seconds; epochs are minutes."""

SHARES = 16
"""Shares of the memory if emptying tables has a cost: every inflow is computed, so that 100 shares take hours."""

SINGLES = tuple(read(name) for name in "ABCD")
PAIRS = tuple(read(name) for name in ("AB", "BC", "BD", "CD"))
EPOCHS = (2, 3, 5, 6)

RELATIONS = tuple(frozenset(some) for size in range(1, 5) for some in combinations("ABCD", size))


@dataclass(frozen=True, slots=True)
class Setting:
    """A stream and its group-bys: `synthetic` rows are random, the others arrive in flows."""

    synthetic: bool
    epochs: bool
    rows: int
    seed: int

    @property
    def queries(self) -> tuple[Relation, ...]:
        """The paper asks for single attributes of its synthetic data, for pairs of its trace."""
        return SINGLES if self.synthetic else PAIRS

    @property
    def streams(self) -> Streams:
        return _streams(self.synthetic, self.rows, self.seed)

    @property
    def statistics(self) -> GroupStatistics:
        statistics = GroupStatistics(self.streams.counts(RELATIONS), self.flows)
        return with_epochs(statistics, self.queries) if self.epochs else statistics

    @property
    def flows(self) -> Flows:
        return Flows() if self.synthetic else _flows(self.rows, self.seed)

    def optimum(self, memory: float) -> Choice:
        return _optimum(self, memory)

    def gc(self, memory: float, allocation: str = "sl") -> Choice:
        return choose(self.queries, self.statistics, memory, PRICES, "gc", allocation)

    def gp(self, memory: float, phi: float) -> Choice:
        return greedy_by_space(self.queries, self.statistics, memory, PRICES, phi)

    def naive(self, memory: float) -> Allocated:
        return allocate(Configuration.flat(self.queries), self.statistics, memory, PRICES)

    def count(self, allocated: Allocated) -> Counted:
        return self.streams.run(allocated.configuration, allocated.buckets(self.statistics))

    def counted_cost(self, allocated: Allocated) -> float:
        """The cost with the counted collisions of the rows."""
        counted = self.count(allocated)
        return counted.cost(PRICES, self.statistics) if self.epochs else counted.row_cost(PRICES)


def with_epochs(statistics: GroupStatistics, queries: Sequence[Relation]) -> GroupStatistics:
    ends = {query: (length,) for query, length in zip(queries, EPOCHS)}
    return replace(statistics, rows=ROWS_A_MINUTE, epochs=ends)


@lru_cache(maxsize=4)
def _streams(synthetic: bool, rows: int, seed: int) -> Streams:
    return Streams((uniform if synthetic else clustered)(rows, seed))


@lru_cache(maxsize=4)
def _flows(rows: int, seed: int) -> Flows:
    """Section 5.3: by depth, measured in the paper's own configuration, its tables sized as if rows were random."""
    streams, configuration = _streams(False, rows, seed), parse("ABCD(AB BCD(BC BD CD))")
    statistics = streams.statistics(RELATIONS)
    return streams.run(configuration, allocate(configuration, statistics, 40_000, PRICES).buckets(statistics)).flows


@lru_cache(maxsize=64)
def _optimum(setting: Setting, memory: float) -> Choice:
    """EPES. If emptying has a cost, with coarser shares, and then finer ones for the best configuration."""
    if not setting.epochs:
        return exhaustive(setting.queries, setting.statistics, memory, PRICES)
    coarse = partial(exhaustive_space, shares=SHARES)
    best = exhaustive(setting.queries, setting.statistics, memory, PRICES, coarse)
    fine = allocate(best.configuration, setting.statistics, memory, PRICES, "es")
    return best if best.cost <= fine.cost else replace(best, allocated=fine)


def a_setting(scale: Scale, synthetic: bool, epochs: bool = False) -> Setting:
    (rows,) = scale.of((200_000,), (1_000_000 if synthetic else 860_000,))
    return Setting(synthetic, epochs, rows, scale.seed)


def memories(scale: Scale) -> Sequence[int]:
    return scale.of((20_000, 40_000, 100_000), (20_000, 40_000, 60_000, 80_000, 100_000))


def worst(rows: Sequence[Row], y: str, series: str) -> float:
    return max(float(row[y]) for row in rows if row["series"] == series)


def a_figure(
    number: int | str, title: str, x: str, rows: Rows, claims: Claims, y: str = "relative_cost", **more: Any
) -> Figure:
    """Papers 1 and 5 number their figures alike, so these have a name."""
    return Figure(f"phantoms-{number}", title, f"paper 5, figure {number}", x, y, rows, claims, **more)
