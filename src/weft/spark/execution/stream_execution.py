"""Driving batches, one at a time: Spark asks for them as rows come, the clock while none do, `drain` for the last."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from weft.engine import FOREVER
from weft.optimizer import Stream
from weft.spark.checkpoint.batch_log import FIRST_PLACES, BatchRecord, CheckpointMismatch
from weft.spark.errors import RunFailed, failure, is_full
from weft.spark.execution.failing_queries import blame
from weft.spark.execution.micro_batch import BatchMetrics, MicroBatchRunner
from weft.spark.execution.progress import Progress
from weft.spark.execution.recovery import Start
from weft.spark.execution.statistics import Observer
from weft.spark.partial.skew import weigh
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.session import batch_settings
from weft.spark.sinks.base import RepeatedSink

if TYPE_CHECKING:
    from weft.spark.job import Job


class StreamExecution:
    """Spark's query, and all that runs batches beside it. `done` is what others may look at, at any time."""

    def __init__(self, job: Job, start: Start, trigger: str | None, available_now: bool) -> None:
        self._job = job
        self._live = start.live
        self._checkpoint = start.checkpoint
        self._notes = start.notes
        self._placed = start.placed
        self._observer = Observer(Stream())
        self._busy = threading.Lock()  # held while a batch runs
        self._ending = threading.Event()  # once set, the clock begins no batch
        self._idle: threading.Thread | None = None
        self._failure: Exception | None = None
        self.pipeline = start.pipeline
        self.done = Progress(start.record, start.pipeline.physical)
        writer = (
            job.stream.writeStream.foreachBatch(self._batch)
            .queryName(f"weft-{uuid.uuid4().hex[:8]}")
            .option("checkpointLocation", f"{self._checkpoint.store.uri.rstrip('/')}/spark")
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        self.query: StreamingQuery = _begun(writer)
        self._rows_came = time.monotonic()
        idle = job.planner.options.times.idle_timeout
        if idle is not None:
            self._idle = threading.Thread(target=self._go_on_when_idle, args=(idle / 1e6,), daemon=True)
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
        if self._failure is not None:  # between two batches of Spark, which knows nothing of it
            raise RunFailed(failure(self._failure)) from self._failure
        return True if ended is None else bool(ended)

    def stop(self) -> None:
        """After the batch that runs."""
        self._end_batches()
        self._live.stop()

    def drain(self) -> None:
        """One batch more, which answers every window that is open."""
        if self.query.isActive:
            with suppress(StreamingQueryException):  # told below, in a sentence
                self.query.processAllAvailable()
        self._end_batches()
        error = self._failure or self.query.exception()
        if error is not None:
            raise RunFailed(failure(error))
        self._live.wait_for_plan()
        record = self._checkpoint.newest()
        if record is not None and not record.drained:
            try:
                self._live.take_up_last(record.batch + 1, record)
                # Whoever joined with the last batch has answered by now what was open to it then.
                with self._busy:
                    self._finish(*self._run_idle(record, FOREVER))
            except PySparkException as failed:
                raise RunFailed(failure(failed)) from failed

    def _end_batches(self) -> None:
        """Wait for the one that runs; neither the clock nor Spark begins another."""
        self._ending.set()
        if self._idle is not None:
            self._idle.join()
        # Held no longer than that: Spark's stop waits for a batch that has just begun, and that one for the lock.
        with self._busy:
            pass
        self.query.stop()

    def _batch(self, rows: DataFrame, number: int) -> None:
        with self._busy:
            self._run_batch(rows, number)

    def _run_batch(self, rows: DataFrame, number: int) -> None:
        """Spark repeats a batch whose commit it missed; one that has a record is done already.

        weft numbers batches on where Spark does not, when it runs some without rows.
        """
        before = self.done.record
        last, apart = (-1, 0) if before is None else (before.batch, before.apart)
        batch = number + apart
        self._notes.make_durable()
        read = self._notes.rows(number)
        store = self._checkpoint.store
        if batch == last:
            if before is not None and before.read not in ("", read):
                raise CheckpointMismatch(
                    f"{store.path(f'spark/offsets/{number}')} names other rows than batch {number} had "
                    "when it was done: some would be in no answer, or in two; bring it back from a copy, or start with "
                    "an empty checkpoint folder"
                )
            return
        if batch != last + 1:
            raise CheckpointMismatch(
                f"Spark goes on with batch {number}, but the records of the checkpoint {store.uri} end "
                f"with {f'batch {last - apart}' if last >= 0 else 'none'}: files were removed from its folder spark or "
                "batches; bring them back, or start with an empty checkpoint folder"
            )
        try:
            run = self._attempt(batch, before, lambda pipeline: pipeline.run_batch(rows, batch, before, read), rows)
        except Exception as error:
            self._failure = error  # Spark passes on only its text
            raise
        self._finish(*run)
        if run[1].rows:
            self._rows_came = time.monotonic()

    def _attempt(
        self,
        batch: int,
        before: BatchRecord | None,
        run: Callable[[MicroBatchRunner], tuple[BatchRecord, BatchMetrics]],
        rows: DataFrame | None = None,
    ) -> tuple[BatchRecord, BatchMetrics]:
        """Run a batch by the newest plan; once more without the queries that it fails for, if there are others."""
        while True:
            physical = self._live.take_up(batch, before)
            self.pipeline = replace(self.pipeline, physical=physical)
            try:
                if rows is not None and not self._placed:
                    self._place(rows, physical)
                return run(self.pipeline)
            except Exception as error:
                present = self._live.plan.workload.by_name
                queries = [present[q.name] for q in physical.layout.queries if q.name in present]
                if not self._live.expel(blame(error, rows, queries, self._job.planner)):
                    raise
                # Some buckets may have run it: what their workers remember of that is of another plan.
                self.pipeline = replace(self.pipeline, epoch=uuid.uuid4().hex)
                if isinstance(self.pipeline.sink, RepeatedSink):
                    self.pipeline.sink.undo(batch)

    def _place(self, rows: DataFrame, physical: PhysicalPlan) -> None:
        """Before the first batch: which bucket each group is in, written down, as the batch may be repeated."""
        buckets = self.pipeline.places.buckets
        with batch_settings(rows.sparkSession, buckets):
            places = weigh(rows, physical, buckets)
        name = self._checkpoint.write_places(places, FIRST_PLACES)
        self.pipeline = replace(self.pipeline, places=places, places_file=name)
        self._placed = True

    def _finish(self, record: BatchRecord, metrics: BatchMetrics) -> None:
        """The batch counts: what it showed may change the plan of the next."""
        physical = self.pipeline.physical
        self.done = self.done.and_then(record, physical, metrics)
        if physical.replayed:
            self._live.committed()
        self._live.tell_of_phantoms(physical.phantoms.told, physical.phantoms.flow)
        self._live.weigh_classes()
        seen = self._observer.take(metrics)
        if seen is not None:
            self._live.observe(seen)

    def _go_on_when_idle(self, timeout: float) -> None:
        """In a thread of its own: while no row comes the watermark follows the clock, as long as windows are open."""
        looked = time.monotonic()
        while self.active and not self._ending.is_set():
            now = time.monotonic()
            if now - max(looked, self._rows_came) < timeout:
                self._ending.wait(min(timeout / 4, 0.5))
                continue
            looked = now
            try:
                with self._busy:
                    quiet = time.monotonic() - self._rows_came
                    if self.active and not self._ending.is_set() and quiet >= timeout:
                        self._answer_idle(quiet)
            except Exception as error:
                self._failure = error  # whoever waits is told
                self.query.stop()

    def _answer_idle(self, quiet: float) -> None:
        before = self.done.record
        if before is None or before.latest is None or before.watermark is None or before.drained:
            return
        due = before.latest - self._job.planner.options.times.delay + int(quiet * 1e6)
        physical = self._live.take_up(before.batch + 1, before)
        opened = replace(physical.layout, lateness=0, retain=0).horizons(before.watermark)
        if due > before.watermark and any(before.newest.get(n, -FOREVER) >= first for n, first in opened.items()):
            self._finish(*self._run_idle(before, due))

    def _run_idle(self, before: BatchRecord, watermark: int) -> tuple[BatchRecord, BatchMetrics]:
        def run(pipeline: MicroBatchRunner) -> tuple[BatchRecord, BatchMetrics]:
            held = pipeline.physical.layout.held
            if held and watermark == FOREVER:  # somebody stops the run meanwhile
                raise RunFailed(
                    f"{', '.join(sorted(held))} did not get the rows of the past, and no batch comes after this one; "
                    "drain again, or start again and drain, nothing is lost"
                )
            return pipeline.run_idle(self._job.stream.sparkSession, before, watermark)

        return self._attempt(before.batch + 1, before, run)


def _begun(writer: DataStreamWriter) -> StreamingQuery:
    try:
        return writer.start()
    except Exception as error:
        if is_full(error):  # Spark's first note is written here
            raise RunFailed(failure(error)) from error
        raise
