"""A batch before its windows are answered and after: the input of the buckets, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from weft.engine import FOREVER
from weft.engine.partial.from_rows import RowFeed
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.execution.batch_input import BatchInput
from weft.spark.execution.watermark import EventTime
from weft.spark.final.report import BucketReport


@dataclass(frozen=True, slots=True)
class BatchContext:
    """A batch before its windows are answered."""

    batch: int
    before: BatchRecord
    """Of the batch before."""
    event_time: EventTime
    """With the rows of this batch."""
    begun: float
    """When the batch began, by `time.perf_counter`."""
    input: BatchInput = field(default_factory=BatchInput)
    input_digest: str = ""
    corrupt_records: int = 0
    idle: bool = False
    """The batch has no rows, and Spark does not know of it."""
    native_seconds: float | None = None
    """From the begin until the partials were made; None: they are made while windows are answered."""
    row_feeds: tuple[RowFeed, ...] = ()
    """Feeds that arrive as rows."""

    @property
    def until(self) -> int:
        """Windows that end by it are answered."""
        return -FOREVER if self.event_time.watermark is None else self.event_time.watermark

    @property
    def event_seconds(self) -> float:
        """How far the batch advanced event time; infinite without rows, as everything has been read."""
        now, then = self.event_time.max_event_time, self.before.max_event_time
        return inf if now is None or then is None or not self.input.rows else (now - then) / 1e6


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What a batch did."""

    record: BatchRecord
    reports: tuple[BucketReport, ...]
    record_bytes: int
    refreshes: int
    """Windows that queries with SLIDE AT MOST were answered for."""
