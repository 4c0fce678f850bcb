"""The seconds per unit of each term of a plan's cost on one machine; `weft calibrate` measures them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueWeights:
    """Seconds per value of percentiles, distinct counts and the like: partials without a fixed size."""

    sent: float
    """A value on its way: collected by Spark, sent to Python, sorted, written to disk."""
    kept: float
    """A kept value per batch: merged with new values, and ranked."""
    moved: float
    """A value that enters a window, or leaves it."""


SENT, KEPT, MOVED = 0.5, 0.3, 10.0
"""Defaults relative to a partial, a kept partial and an operation, if values were not measured: decision 19."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Seconds of wall time, with all cores of the machine at work."""

    batch: float
    """A micro-batch, however many rows it has."""
    query: float
    """A query per batch, however many rows its answer has."""
    row: float
    """A row through one native pass: read, sliced, sub-aggregated."""
    partial: float
    """A partial on its way: shuffled, sent to Python, numbered, sorted, written to disk."""
    kept: float
    """A kept partial per batch: merged with new partials, and prepared for answers."""
    operation: float
    """Combining two partials."""
    answer: float
    """A row of an answer."""
    measured_values: ValueWeights | None = None
    """None: an earlier version of weft measured the weights, without values."""

    @property
    def values(self) -> ValueWeights:
        rough = ValueWeights(SENT * self.partial, KEPT * self.kept, MOVED * self.operation)
        return self.measured_values or rough


TERMS = ("batch", "query", "row", "partial", "kept", "operation", "answer")
