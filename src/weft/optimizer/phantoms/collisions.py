"""How often a row finds another group in its bucket, and evicts it.

A table has `b` buckets, each with the last group that was put there. With `g` groups, equally frequent and in random
order,

    x = 1 - b/g + (b/g) (1 - 1/b)**g

rows collide (equation 13). Rows that arrive in flows collide once per flow, so `x` is divided by the mean flow length.

>>> round(float(collision_rate(3000, 3000)), 4)
0.3678
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.model import PlanError

Floats = NDArray[np.float64]

MU = 0.354
"""The slope of the line that the paper fitted to rates below 0.4 (equation 16). Space is divided by it."""


class InvalidFlows(PlanError):
    """Flow lengths that no stream can have."""


def collision_rate(groups: ArrayLike, buckets: ArrayLike) -> Floats:
    """Equation 13, for random rows. A table has at least one bucket; with one, every other group collides."""
    g = np.maximum(np.asarray(groups, np.float64), 1.0)
    b = np.maximum(np.asarray(buckets, np.float64), 1.0)
    with np.errstate(divide="ignore"):  # one bucket: the logarithm is -inf, and `missed` is -1 as it should be
        missed = np.expm1(g * np.log1p(-1.0 / b))
    # Rounding may fall below 0 for a single group.
    rate: Floats = np.maximum(1.0 + b / g * missed, 0.0)
    return rate


@dataclass(frozen=True, slots=True)
class Flows:
    """Mean number of consecutive rows of one group, by depth: a raw table has depth 1.

    A table removes most of the clustering for the tables below it, so each depth has its own length; deeper tables have
    the last one. Random rows have length 1 at every depth.

    >>> Flows((30, 2)).length([1, 2, 3]).tolist()
    [30.0, 2.0, 2.0]
    """

    by_depth: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not self.by_depth or not all(np.isfinite(length) and length >= 1 for length in self.by_depth):
            raise InvalidFlows(f"flow lengths are numbers from 1 on, one per depth, got {self.by_depth}")

    def length(self, depth: ArrayLike) -> Floats:
        place = np.clip(np.asarray(depth, np.int64), 1, len(self.by_depth)) - 1
        return np.asarray(self.by_depth, np.float64)[place]


@dataclass(frozen=True, slots=True)
class TableCounts:
    """Counts of one table in the last epoch."""

    depth: int
    groups: float
    buckets: float
    rows: int
    collisions: int


def measure_flows(tables: Iterable[TableCounts]) -> Flows:
    """Section 5.3: expected collisions of random rows over counted collisions, as a mean per depth.

    A table without collisions says nothing about flow length; a depth with no other tables gets the length above it.

    >>> flows = measure_flows([TableCounts(1, 3000, 3000, 1000, 12), TableCounts(2, 500, 500, 12, 4)])
    >>> [round(length, 1) for length in flows.by_depth]
    [30.7, 1.1]
    """
    lengths_by_depth: dict[int, list[float]] = {}
    for table in tables:
        if table.collisions and table.rows:
            random = float(collision_rate(table.groups, table.buckets))
            lengths_by_depth.setdefault(table.depth, []).append(random * table.rows / table.collisions)
    lengths: list[float] = []
    for depth in range(1, max(lengths_by_depth, default=0) + 1):
        measured = lengths_by_depth.get(depth)
        above = lengths[-1] if lengths else 1.0
        lengths.append(max(1.0, float(np.mean(measured))) if measured else above)
    return Flows(tuple(lengths) or (1.0,))
