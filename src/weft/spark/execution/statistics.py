"""What the stream is really like, measured over the latest batches: it is what plans count on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from weft.optimizer import Stream

if TYPE_CHECKING:
    from weft.spark.execution.micro_batch import BatchMetrics

OBSERVED = 10
"""Batches over which the stream is measured."""


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """Rows a second of event time, and the rest that plans hang on.

    >>> seen, counted = StreamStatistics(Fraction(500), Stream(groups=1000.0)), StreamStatistics(Fraction(490))
    >>> list(seen.differences(counted, Fraction(1, 10)))
    ['1,000 groups in a slice, not 1']
    """

    rate: Fraction
    stream: Stream = field(default_factory=Stream)

    def differences(self, counted: StreamStatistics, tolerance: Fraction) -> Iterator[str]:
        """What is further from what was counted on than the tolerance allows, in words."""
        here, there = self.stream, counted.stream
        for found, expected, what in (
            (float(self.rate), float(counted.rate), "rows a second"),
            (here.groups, there.groups, "groups in a slice"),
            (here.selectivity, there.selectivity, "of the rows pass a filter"),
            (here.batch_seconds, there.batch_seconds, "seconds of stream in a batch"),
        ):
            if abs(found - expected) > tolerance * expected:
                yield f"{_number(found)} {what}, not {_number(expected)}"


@dataclass(frozen=True, slots=True)
class Fed:
    """Which groupings feed others, and how many rows of a group came one after the other, where that had a say.

    >>> Fed("AB(A B)", 31.4).difference(Fed("A B", 1.0))
    'groups were counted anew, in flows of 31.4 rows, not 1.0: AB(A B), not A B'
    """

    by: str | None = None
    """None: nothing was counted."""
    flow: float | None = None

    def difference(self, before: Fed) -> str | None:
        """What groups that were counted anew have changed, in words; None: nothing."""
        if self.by is None or before.by is None or self.by == before.by:
            return None
        return f"groups were counted anew{_flows(self.flow, before.flow)}: {self.by}, not {before.by}"


class Observer:
    """Takes each batch, and says after some what they had in common."""

    def __init__(self, counted: Stream) -> None:
        self._counted = counted
        self._batches: deque[BatchMetrics] = deque(maxlen=OBSERVED)

    def take(self, batch: BatchMetrics) -> StreamStatistics | None:
        """What the stream is like, once enough batches have come to tell; then it is measured afresh."""
        self._batches.append(batch)
        first, last = self._batches[0], self._batches[-1]
        later = list(self._batches)[1:]  # rows that came after the first batch's latest, in the time since then
        rows = sum(b.rows for b in later)
        if len(self._batches) < OBSERVED or rows == 0 or first.latest is None or last.latest is None:
            return None
        micros = last.latest - first.latest
        if micros <= 0:
            return None
        slices, partials = (sum(getattr(t, of) for t in last.trees.values()) for of in ("slices", "partials"))
        self._batches.clear()
        return StreamStatistics(
            Fraction(rows * 1_000_000, micros).limit_denominator(1000),
            replace(
                self._counted,
                groups=partials / slices if slices else self._counted.groups,
                selectivity=min(1.0, sum(b.rows * b.selectivity for b in later) / rows),
                batch_seconds=micros / 1e6 / len(later),
            ),
        )


def _flows(flow: float | None, before: float | None) -> str:
    """
    >>> _flows(31.4, 1.0), _flows(31.4, None), _flows(None, 1.0)
    (', in flows of 31.4 rows, not 1.0', ', in flows of 31.4 rows', '')
    """
    if flow is None:
        return ""
    return f", in flows of {flow:.1f} rows{'' if before is None else f', not {before:.1f}'}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"
