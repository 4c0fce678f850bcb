"""Runs batches, one at a time: Spark starts them when rows arrive, a timer while none do, `drain` the last one."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from weft.optimizer import Stream
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.files import CheckpointMismatch
from weft.spark.errors import RunFailed, failure, is_full
from weft.spark.execution.idle import IdleTimer, has_open_windows
from weft.spark.execution.metrics import BatchMetrics
from weft.spark.execution.micro_batch import MicroBatchRunner
from weft.spark.execution.progress import Progress
from weft.spark.execution.recovery import Start
from weft.spark.execution.retry import Retry
from weft.spark.execution.statistics import Observer
from weft.spark.execution.watermark import END_OF_STREAM, iso, while_idle
from weft.spark.execution.woven import WovenQueries
from weft.spark.logs import log_event
from weft.spark.partial.skew import weigh
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.session import batch_settings

logger = logging.getLogger(__name__)


class StreamExecution:
    """Spark's query, and the idle timer that runs batches beside it. Any thread may read `progress` at any time."""

    def __init__(self, job: WovenQueries, start: Start, trigger: str | None, available_now: bool) -> None:
        self._job = job
        self._registry = start.registry
        self._checkpoint = start.checkpoint
        self._offsets = start.offsets
        self._placed = start.placed
        self._observer = Observer(Stream())
        self._retry = Retry(start.registry, job.planner)
        self._busy = threading.Lock()  # held while a batch runs
        self._failure: Exception | None = None
        self.runner = start.runner
        self.progress = Progress(start.record, start.runner.physical)
        timeout = job.planner.options.times.idle_timeout
        seconds = None if timeout is None else timeout / 1e6
        self._idle = IdleTimer(seconds, self._busy, lambda: self.active, self._answer_idle, self._fail)
        writer = (
            job.stream.writeStream.foreachBatch(self._batch)
            .queryName(f"weft-{uuid.uuid4().hex[:8]}")
            .option("checkpointLocation", f"{self._checkpoint.files.uri.rstrip('/')}/spark")
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        self.query: StreamingQuery = _begun(writer)
        self._idle.start()

    @property
    def active(self) -> bool:
        return bool(self.query.isActive)

    def wait(self, seconds: float | None) -> bool:
        """Whether the query has ended."""
        try:
            ended = self.query.awaitTermination(seconds)
        except StreamingQueryException as error:
            raise RunFailed(failure(self._failure or error)) from error
        if self._failure is not None:  # of an idle batch, which Spark does not know of
            raise RunFailed(failure(self._failure)) from self._failure
        return True if ended is None else bool(ended)

    def stop(self) -> None:
        """After the batch that runs."""
        self._end_batches()
        self._registry.stop()

    def drain(self) -> None:
        """Run one more batch, which answers every open window."""
        if self.query.isActive:
            with suppress(StreamingQueryException):  # raised below as RunFailed
                self.query.processAllAvailable()
        self._end_batches()
        error = self._failure or self.query.exception()
        if error is not None:
            raise RunFailed(failure(error))
        self._registry.wait_for_plan()
        record = self._checkpoint.batches.newest()
        if not record.is_initial and not record.drained:
            try:
                self._registry.take_up_last(record.batch + 1, record)
                # Queries that joined with the last batch have answered the windows that had ended by then.
                with self._busy:
                    self._finish(*self._run_idle(record, END_OF_STREAM))
            except PySparkException as failed:
                raise RunFailed(failure(failed)) from failed

    def _end_batches(self) -> None:
        """Wait for the batch that runs; neither the clock nor Spark begins another."""
        self._idle.stop()
        # The lock is released before Spark's stop, which waits for a batch that has just begun and needs the lock.
        with self._busy:
            pass
        self.query.stop()

    def _batch(self, rows: DataFrame, number: int) -> None:
        with self._busy:
            self._run_batch(rows, number)

    def _run_batch(self, rows: DataFrame, number: int) -> None:
        """Spark repeats a batch whose commit is missing; if it has a record, it is committed already.

        Batches without rows have numbers in weft but not in Spark.
        """
        before = self.progress.record
        batch = number + before.empty_batches
        self._offsets.make_durable()
        digest = self._offsets.digest(number)
        if batch == before.batch:
            self._refuse_other_rows(number, before, digest)
            return
        self._refuse_gap(number, before)
        try:
            run = self._attempt(
                batch, before, lambda runner, begun: runner.run_batch(rows, batch, before, begun, digest), rows
            )
        except Exception as error:
            self._failure = error  # Spark passes on only its text
            raise
        self._finish(*run)
        if run[1].rows:
            self._idle.rows_arrived()

    def _refuse_other_rows(self, number: int, before: BatchRecord, digest: str) -> None:
        if before.input_digest not in ("", digest):
            raise CheckpointMismatch(
                f"{self._checkpoint.files.path(f'spark/offsets/{number}')} names other rows than batch {number} had "
                "when it was done: some would be in no answer, or in two; bring it back from a copy, or start with "
                "an empty checkpoint folder"
            )

    def _refuse_gap(self, number: int, before: BatchRecord) -> None:
        last = before.spark_batch
        if number != last + 1:
            raise CheckpointMismatch(
                f"Spark goes on with batch {number}, but the records of the checkpoint {self._checkpoint.files.uri} "
                f"end with {'none' if before.is_initial else f'batch {last}'}: files were removed from its folder "
                "spark or batches; bring them back, or start with an empty checkpoint folder"
            )

    def _attempt(
        self,
        batch: int,
        before: BatchRecord,
        run: Callable[[MicroBatchRunner, float], tuple[BatchRecord, BatchMetrics]],
        rows: DataFrame | None = None,
    ) -> tuple[BatchRecord, BatchMetrics]:
        """Run a batch by the newest plan; if it fails for some queries, run it again without them.

        `run` is called with the runner and the begin of the batch.
        """
        while True:
            physical = self._registry.take_up(batch, before)
            self.runner = replace(self.runner, physical=physical)
            try:
                if rows is not None and not self._placed:
                    self._place(rows, physical)
                begun = time.perf_counter()
                if rows is not None:
                    physical = self._refine(rows, physical)
                return run(self.runner, begun)
            except Exception as error:
                self.runner = self._retry.after(error, batch, self.runner, rows)

    def _refine(self, rows: DataFrame, physical: PhysicalPlan) -> PhysicalPlan:
        """Collect the statistics that are due on the rows of a batch; the plan that follows from them."""
        with batch_settings(rows.sparkSession, self.runner.bucket_map.buckets):
            statistics = self._job.collector.collect(rows, physical)
        refined = self._registry.refine(statistics)
        self.runner = replace(self.runner, physical=refined)
        return refined

    def _place(self, rows: DataFrame, physical: PhysicalPlan) -> None:
        """Before the first batch: write the bucket map to the checkpoint, as the batch may be repeated."""
        buckets = self.runner.bucket_map.buckets
        with batch_settings(rows.sparkSession, buckets):
            bucket_map = weigh(rows, physical, buckets)
        name = self._checkpoint.write_bucket_map(bucket_map)
        log_event(logger, "the rows of the first batch place groups in buckets", buckets=buckets)
        self.runner = replace(self.runner, bucket_map=bucket_map, bucket_map_file=name)
        self._placed = True

    def _finish(self, record: BatchRecord, metrics: BatchMetrics) -> None:
        """The batch is committed; its metrics may change the plan of the next one."""
        physical = self.runner.physical
        self.progress = self.progress.after(record, physical, metrics)
        if physical.backfilled:
            self._registry.committed()
        self._registry.note_feeding(physical.partials.feeding)
        self._registry.weigh_classes()
        statistics = self._observer.take(metrics)
        if statistics is not None:
            self._registry.observe(statistics)

    def _fail(self, error: Exception) -> None:
        """A batch without rows failed; `wait` raises the error."""
        log_event(logger, "idle batch fails, the run ends", level=logging.ERROR, error=failure(error))
        self._failure = error
        self.query.stop()

    def _answer_idle(self, quiet: float) -> None:
        """No row has arrived for `quiet` seconds."""
        before = self.progress.record
        due = while_idle(before, quiet, self._job.planner.options.times)
        if due is None:
            return
        physical = self._registry.take_up(before.batch + 1, before)
        if has_open_windows(physical.layout, before):
            batch, seconds = before.batch + 1, round(quiet, 1)
            log_event(
                logger, "idle batch advances the watermark", batch=batch, idle_seconds=seconds, watermark=iso(due)
            )
            self._finish(*self._run_idle(before, due))

    def _run_idle(self, before: BatchRecord, watermark: int) -> tuple[BatchRecord, BatchMetrics]:
        def run(runner: MicroBatchRunner, begun: float) -> tuple[BatchRecord, BatchMetrics]:
            backfilling = runner.physical.layout.backfilling
            if backfilling and watermark == END_OF_STREAM:  # the run was stopped meanwhile
                raise RunFailed(
                    f"the backfill of {', '.join(sorted(backfilling))} is not complete, and this is the last batch; "
                    "drain again, or start again and drain, nothing is lost"
                )
            return runner.run_idle(self._job.stream.sparkSession, before, watermark)

        return self._attempt(before.batch + 1, before, run)


def _begun(writer: DataStreamWriter) -> StreamingQuery:
    try:
        return writer.start()
    except Exception as error:
        if is_full(error):  # Spark's first note is written here
            raise RunFailed(failure(error)) from error
        raise
