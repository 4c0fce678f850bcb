"""A batch from rows to committed answers: two Spark jobs, however many queries and trees there are."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from weft.engine import Layout
from weft.engine.plan_transition import first_kept
from weft.model import RunError
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.checkpoint.checkpoint import Checkpoint
from weft.spark.execution.batch_input import row_count, summarize
from weft.spark.execution.context import BatchContext, BatchOutcome
from weft.spark.execution.failing_queries import QueriesFailed
from weft.spark.execution.metrics import BatchMetrics
from weft.spark.execution.refresh import Refreshes, choose_refreshes
from weft.spark.execution.watermark import END_OF_STREAM, EventTime, after_rows, iso, latest_that_counts
from weft.spark.final.report import BucketReport, Reports
from weft.spark.final.task import BucketTask, final_aggregate
from weft.spark.logs import log_event
from weft.spark.options import TimeOptions
from weft.spark.partial.aggregate import aggregate_bounded, partition_by_bucket, sub_aggregate
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.session import batch_settings
from weft.spark.sinks.base import AnswerListener, BucketSink, DriverSink, Sink
from weft.spark.sinks.corrupt_records import divert_corrupt_records
from weft.spark.sinks.late_rows import late_rows
from weft.spark.sinks.side_output import SideOutput

logger = logging.getLogger(__name__)


class TooManyValues(RunError):
    """Exact aggregates would keep more values than `synopsis_limit` allows."""


class Drained(RunError):
    """Rows arrived after the end of the stream was declared."""


@dataclass(frozen=True, slots=True)
class MicroBatchRunner:
    """A physical plan with its sink and checkpoint; without a checkpoint nothing is kept between batches."""

    physical: PhysicalPlan
    bucket_map: BucketMap
    times: TimeOptions
    sink: Sink
    checkpoint: Checkpoint | None = None
    late_sink: SideOutput | None = None
    listener: AnswerListener | None = None
    corrupt_sink: SideOutput | None = None
    synopsis_limit: int | None = None
    epoch: str = ""
    """Names the state that workers may remember: see `BucketTask`."""
    interval: float | None = None
    """The least seconds between the starts of two batches; 0: a batch starts when the one before ends. None: there is
    only one batch, and no time to keep to."""
    bucket_map_file: str = ""
    """Where the checkpoint has the bucket map."""

    def run_batch(
        self, rows: DataFrame, batch: int, before: BatchRecord, begun: float, input_digest: str = ""
    ) -> tuple[BatchRecord, BatchMetrics]:
        """rows      (columns...)
        partials  (bucket, feed, slice, words..., keys..., latest, components...)
        answers   (query, window, keys, values...), in the sink

        `begun` is when the statistics of the batch were collected. `input_digest` identifies the rows in the record.
        """
        _refuse_after_drain(before)
        with batch_settings(rows.sparkSession, self.bucket_map.buckets):
            corrupt = self._divert_corrupt_records(rows, batch)
            partials = sub_aggregate(rows, self.physical, self.bucket_map, latest_that_counts(self.times)).persist()
            try:
                # The watermark must be known before a window is answered, and it comes from all rows of the batch.
                batch_input = summarize(partials, row_count(self.physical))
                context = BatchContext(
                    batch=batch,
                    before=before,
                    event_time=after_rows(before, batch_input.max_event_time, self.times),
                    begun=begun,
                    input=batch_input,
                    input_digest=input_digest,
                    corrupt_records=corrupt,
                    native_seconds=time.perf_counter() - begun,
                )
                self._divert_late_rows(rows, context)
                outcome = self._advance(partials, context)
            finally:
                partials.unpersist()
        return self._finished(context, outcome)

    def run_bounded(self, rows: DataFrame, begun: float) -> tuple[BatchRecord, BatchMetrics]:
        """One batch with all rows, which answers every window; `begun` is when its statistics were collected."""
        with batch_settings(rows.sparkSession, self.bucket_map.buckets):
            partials, row_feeds = aggregate_bounded(rows, self.physical, self.bucket_map)
            ended = EventTime(None, END_OF_STREAM)
            context = BatchContext(0, BatchRecord.initial(), ended, begun, row_feeds=row_feeds)
            outcome = self._advance(partials, context)
        return self._finished(context, outcome)

    def run_idle(self, spark: SparkSession, before: BatchRecord, watermark: int) -> tuple[BatchRecord, BatchMetrics]:
        """A batch without rows: answer the windows that end by the watermark."""
        begun, buckets = time.perf_counter(), self.bucket_map.buckets
        with batch_settings(spark, buckets):
            nothing = partition_by_bucket(spark.range(0, 0, 1, 1).selectExpr("CAST(id AS INT) AS bucket"), buckets)
            moved = EventTime(before.max_event_time, watermark)
            digest = before.input_digest
            context = BatchContext(before.batch + 1, before, moved, begun, input_digest=digest, idle=True)
            outcome = self._advance(nothing, context)
        return self._finished(context, outcome)

    def _divert_corrupt_records(self, rows: DataFrame, batch: int) -> int:
        if self.corrupt_sink is None:
            return 0
        count = divert_corrupt_records(batch, rows, self.corrupt_sink)
        if count:
            message = "corrupt records go to the side output"
            log_event(logger, message, level=logging.WARNING, batch=batch, records=count)
        return count

    def _divert_late_rows(self, rows: DataFrame, context: BatchContext) -> None:
        before, first = context.before, context.input.first_slice or 0
        if self.late_sink is not None and before.watermark is not None and first < before.watermark:
            layout = replace(self.physical.layout, answered=before.schedule.answered)
            self.late_sink(context.batch, late_rows(rows, self.physical.event_micros, layout, before.watermark))

    def _advance(self, partials: DataFrame, context: BatchContext) -> BatchOutcome:
        """Answer the windows that the watermark has passed; the batch is committed when this returns."""
        partials, layout = self._with_backfills(partials)
        chosen = choose_refreshes(layout, context.before, context.until)
        layout = replace(layout, refresh=chosen.refresh, answered=chosen.before.answered)
        reports = final_aggregate(partials, self._task(layout, context))
        self._refuse(reports)
        if isinstance(self.sink, DriverSink):
            self.sink.take(context.batch, reports.answers)
        cores = min(self.bucket_map.buckets, partials.sparkSession.sparkContext.defaultParallelism)
        record = self._record(context, layout, chosen, reports.buckets, cores)
        record_bytes = 0
        if self.checkpoint is not None:
            record, record_bytes = self.checkpoint.batches.commit(record, context.before)
        self._tell_listener(context.batch, reports)
        windows = sum(refresh.count for refresh in chosen.refresh.values())
        return BatchOutcome(record, reports.buckets, record_bytes, windows)

    def _with_backfills(self, partials: DataFrame) -> tuple[DataFrame, Layout]:
        """The partials, with the completed backfills of queries in this batch."""
        layout = self.physical.layout
        for backfill in self.physical.backfilled:
            earlier = backfill.read(partials.sparkSession, self.bucket_map, layout)
            partials = partials.unionByName(earlier, allowMissingColumns=True)
            layout = backfill.into(layout)
        if self.physical.backfilled:
            partials = partition_by_bucket(partials, self.bucket_map.buckets)
        return partials, layout

    def _task(self, layout: Layout, context: BatchContext) -> BucketTask:
        return BucketTask(
            layout=layout,
            batch=context.batch,
            before=context.before.watermark,
            until=context.until,
            segments=dict(context.before.segments),
            state_store=None if self.checkpoint is None else self.checkpoint.state,
            epoch=self.epoch,
            sink=self.sink if isinstance(self.sink, BucketSink) else None,
            listener_rows=0 if self.listener is None else self.listener.rows,
            row_feeds=context.row_feeds,
        )

    def _refuse(self, reports: Reports) -> None:
        """Raise if the batch must not be committed."""
        if reports.failed:
            raise QueriesFailed(reports.failed)
        if self.synopsis_limit is not None and reports.value_bytes > self.synopsis_limit:
            raise TooManyValues(
                f"the values that exact aggregates keep take {reports.value_bytes:,} bytes, above synopsis_limit="
                f"{self.synopsis_limit:,}; weave with a higher one, or use the approximate forms that explain() names"
            )

    def _record(
        self,
        context: BatchContext,
        layout: Layout,
        chosen: Refreshes,
        reports: tuple[BucketReport, ...],
        cores: int,
    ) -> BatchRecord:
        before, watermark = context.before, context.event_time.watermark
        seconds = time.perf_counter() - context.begun
        return BatchRecord(
            batch=context.batch,
            watermark=watermark,
            max_event_time=context.event_time.max_event_time,
            segments={report.bucket: report.segments for report in reports},
            rows=before.rows + context.input.rows,
            answers=_add(before.answers, (report.answers for report in reports)),
            late=_add(before.late, (report.late for report in reports)),
            matched=_add(before.matched, (report.matched for report in reports)),
            corrupt_records=before.corrupt_records + context.corrupt_records,
            state_bytes=sum(report.state_bytes for report in reports),
            drained=watermark == END_OF_STREAM,
            empty_batches=before.empty_batches + context.idle,
            schedule=chosen.measured(reports, seconds, context.event_seconds, self.interval, cores),
            kept={} if watermark is None else first_kept(before.kept, layout, watermark),
            input_digest=context.input_digest,
            bucket_map_file=self.bucket_map_file,
        )

    def _tell_listener(self, batch: int, reports: Reports) -> None:
        if self.listener is not None:
            shown = {name: table.slice(0, self.listener.rows) for name, table in reports.answers.items()}
            self.listener.take(batch, shown, _add({}, (report.answers for report in reports.buckets)))

    def _finished(self, context: BatchContext, outcome: BatchOutcome) -> tuple[BatchRecord, BatchMetrics]:
        metrics = BatchMetrics.of(context, outcome, time.perf_counter() - context.begun)
        if metrics.late:
            level = logging.INFO if self.times.late == "update" else logging.WARNING
            log_event(
                logger, "rows are late", level=level, batch=metrics.batch, rows=metrics.late, late=self.times.late
            )
        log_event(
            logger,
            "batch ends" if self.checkpoint is None else "batch is committed",
            batch=metrics.batch,
            rows=metrics.rows,
            answers=metrics.answers,
            watermark=iso(metrics.watermark),
            seconds=round(metrics.seconds, 3),
        )
        return outcome.record, metrics


def _refuse_after_drain(before: BatchRecord) -> None:
    if before.drained:
        raise Drained(
            "this checkpoint was drained: the end of its stream was declared and every window answered; "
            "start with an empty checkpoint folder to read on"
        )


def _add(before: Mapping[str, int], more: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = Counter(dict(before))
    for counts in more:
        total.update(counts)
    return dict(total)
