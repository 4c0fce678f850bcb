"""Statistics of the stream, measured over the latest batches: plans are compared with them."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from weft.optimizer import Stream
from weft.spark.physical.statistics import StreamStatistics

if TYPE_CHECKING:
    from weft.spark.execution.metrics import BatchMetrics

OBSERVED = 10
"""Batches over which the stream is measured."""


class Observer:
    """Takes the metrics of each batch, and gives statistics after every few batches."""

    def __init__(self, assumed: Stream) -> None:
        self._assumed = assumed
        self._batches: deque[BatchMetrics] = deque(maxlen=OBSERVED)

    def take(self, batch: BatchMetrics) -> StreamStatistics | None:
        """The statistics of the last batches, once there are enough of them; then measuring starts again."""
        self._batches.append(batch)
        first, last = self._batches[0], self._batches[-1]
        later = list(self._batches)[1:]  # the rows that moved event time since the first batch
        rows = sum(b.rows for b in later)
        if len(self._batches) < OBSERVED or rows == 0 or first.max_event_time is None or last.max_event_time is None:
            return None
        micros = last.max_event_time - first.max_event_time
        if micros <= 0:
            return None
        slices, partials = (sum(getattr(t, of) for t in last.trees.values()) for of in ("slices", "partials"))
        self._batches.clear()
        return StreamStatistics(
            Fraction(rows * 1_000_000, micros).limit_denominator(1000),
            replace(
                self._assumed,
                groups=partials / slices if slices else self._assumed.groups,
                selectivity=min(1.0, sum(b.rows * b.selectivity for b in later) / rows),
                batch_seconds=micros / 1e6 / len(later),
            ),
        )
