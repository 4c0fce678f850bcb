"""The workload of paper 4, section 5.1, with costs in counters that are combined.

The paper gives neither costs nor the speed of its machine. Ours are below; decision 16 says how they were found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import expm1, log1p
from random import Random

from weft.schedule import POLICIES, Periodic, Policy, Task
from weft.schedule.policies.policy import Split
from weft_bench.figures.schedule.simulation import Simulated, simulate

FIELDS: Mapping[str, tuple[int, ...]] = {
    "source": (1000,),
    "destination": (1000,),
    "source and destination": (1000, 1000),
    "protocol": (100,),
    "source port": (100,),
    "destination port": (100,),
    "protocol and source port": (100, 100),
    "protocol and destination port": (100, 100),
}
"""Distinct values of what each group aggregates by. The paper names six and has eight groups: ports are taken twice."""

PAPER = {
    "edf": "No-S",
    "aggressive": "AS",
    "conservative": "CS",
    "hybrid": "HS",
    "late": "H-LS",
    "late_pending": "H-LP",
}

LOW, HIGH = 1500, 3000
SPEED = 320_000
"""Counters that are combined per second."""
KEEPING = 4
"""The cost of a row per group: it is kept for one-time queries and counted in the newest interval."""
ANSWERING = 0.01
"""The cost of a distinct value in an answer: it is compared with the k best so far; combining looks it up."""
SECONDS = 200
LOOK_UP = "one address"
"""The kind that one-time queries read: one counter per interval."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Each interval of a synopsis has one counter per distinct value; rows are random."""

    rate: int

    def values(self, field: str, rows: int) -> float:
        """At the high rate every attribute has twice as many values."""
        most = 1
        for number in FIELDS[field]:
            most *= number * (2 if self.rate >= HIGH else 1)
        return -most * expm1(rows * log1p(-1 / most))

    def scan(self, kind: str, intervals: int) -> float:
        return intervals * (1.0 if kind == LOOK_UP else _values(self, kind, self.rate))

    def answer(self, query: Periodic) -> float:
        (kind,) = query.reads
        return 0.0 if kind == LOOK_UP else ANSWERING * _values(self, kind, self.rate * query.window)


@lru_cache(maxsize=1 << 14)
def _values(counters: Counters, field: str, rows: int) -> float:
    return counters.values(field, rows)


def draw(queries: int, seed: int) -> list[Periodic]:
    """Random queries per group: a window of 20 to 100 seconds, a period of one second to half the window."""
    random = Random(seed)
    drawn = []
    for field in FIELDS:
        for number in range(queries):
            window = random.randint(20, 100)
            period = random.randint(1, window // 2)
            drawn.append(Periodic(f"{field} {number}", (field,), window, period, random.choice(("top k", "quantile"))))
    return drawn


def one_time(now: int) -> list[Periodic]:
    return [Periodic(f"one-time {now}", (LOOK_UP,), 100, 1, once=True)]


def play(policy: str, queries: int, rate: int, seed: int, speed: int = SPEED, seconds: int = SECONDS) -> Simulated:
    """200 seconds with full synopses; rows are processed first, queries get the remaining time."""
    left = speed - KEEPING * rate * len(FIELDS)
    chosen = POLICIES[policy]
    counters = Counters(rate)
    cached_policy = Policy(lambda queries, cost: _split(chosen.split, tuple(queries), counters), chosen.reach)
    return simulate(draw(queries, seed), cached_policy, counters, lambda now: left, seconds, one_time)


@lru_cache(maxsize=1 << 12)
def _split(split: Split, queries: tuple[Periodic, ...], cost: Counters) -> tuple[Task, ...]:
    """Hybrid and both ways of catching up have the same tasks."""
    return split(queries, cost)
