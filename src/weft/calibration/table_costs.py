"""The costs of a row and of a partial on one machine, in Spark's own aggregation and in hash tables (LFTA).

`weft calibrate` measures them; the defaults are rough.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.model import WeftError


@dataclass(frozen=True, slots=True)
class ProbeCosts:
    """`probe` (c1) is the cost of one lookup in a table, `eviction` (c2) that of a partial that leaves the tables.

    The paper's system had a ratio of 15.
    """

    probe: float = 1.0
    eviction: float = 15.0

    def __post_init__(self) -> None:
        if not (self.probe > 0 and self.eviction > 0):
            raise WeftError(f"prices must be above 0, got {self.probe} per probe and {self.eviction} per eviction")


@dataclass(frozen=True, slots=True)
class TableCosts:
    """Seconds of one core."""

    row: float
    """A row that is sent to a hash table outside Spark."""
    probe: float
    """c1: a lookup in such a table."""
    eviction: float
    """c2: a partial that is evicted, sent to its bucket and merged."""
    native_probe: float
    """A row in Spark's aggregation."""
    native_eviction: float
    """A partial that leaves Spark's aggregation."""

    @property
    def tables(self) -> ProbeCosts:
        return ProbeCosts(self.probe, self.eviction)

    @property
    def native(self) -> ProbeCosts:
        """Costs relative to a probe."""
        return ProbeCosts(1.0, self.native_eviction / self.native_probe)


DEFAULT_TABLE_COSTS = TableCosts(row=6e-7, probe=6e-8, eviction=2e-6, native_probe=1.4e-7, native_eviction=1.1e-6)
