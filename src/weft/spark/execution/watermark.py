"""The watermark: every window that ends by it is answered. No other module computes one.

It stays `delay` behind the greatest event time of all rows so far, and never goes back. Rows that are further ahead of
the clock than `max_skew` do not move it. While no row arrives it follows the clock; at the end of the stream it passes
every window.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from weft.engine import FOREVER
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.options import TimeOptions

END_OF_STREAM = FOREVER


@dataclass(frozen=True, slots=True)
class EventTime:
    """The progress of event time, in microseconds; None: no row has arrived yet."""

    max_event_time: int | None
    watermark: int | None


def after_rows(before: BatchRecord, max_event_time: int | None, times: TimeOptions) -> EventTime:
    """A batch had rows up to this event time; None: it had none that count.

    >>> after_rows(BatchRecord.initial(), 70, TimeOptions(delay=10))
    EventTime(max_event_time=70, watermark=60)
    >>> after_rows(BatchRecord(0, watermark=60, max_event_time=70), 40, TimeOptions(delay=10))
    EventTime(max_event_time=70, watermark=60)
    """
    newest = _later(before.max_event_time, max_event_time)
    return EventTime(newest, _later(before.watermark, None if newest is None else newest - times.delay))


def while_idle(before: BatchRecord, quiet_seconds: float, times: TimeOptions) -> int | None:
    """The watermark after `quiet_seconds` without a row; None: there was no row yet, or it would not move.

    >>> while_idle(BatchRecord(0, watermark=60, max_event_time=70), 2.0, TimeOptions(delay=10))
    2000060
    """
    if before.max_event_time is None or before.watermark is None or before.drained:
        return None
    due = before.max_event_time - times.delay + int(quiet_seconds * 1e6)
    return due if due > before.watermark else None


def latest_that_counts(times: TimeOptions) -> int | None:
    """Rows with a later event time do not move the watermark; None: every row does."""
    return None if times.max_skew is None else time.time_ns() // 1000 + times.max_skew


def _later(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def iso(micros: int | None) -> str | None:
    """A time in ISO 8601; none for none, and for the end of time."""
    if micros is None or micros == FOREVER:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(micros // 1_000_000)) + f".{micros % 1_000_000:06d}Z"
