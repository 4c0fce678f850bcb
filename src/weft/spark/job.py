"""What users hold: a job woven from queries, and a run of it."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from weft.engine import FOREVER
from weft.model import WeftError
from weft.optimizer import optimize
from weft.plan import Plan, explain, to_html, to_json
from weft.spark.bind import Binding, bind_plan
from weft.spark.checkpoint import Checkpoint
from weft.spark.pipeline import BatchMetrics, Pipeline
from weft.spark.session import use_this_python
from weft.spark.sink import MemorySink, ParquetSink, Sink, folder_of, make_sink
from weft.spark.store import Store
from weft.sql import duration, refuse
from weft.sql.read import Queries, read_queries

CHECKPOINT_VERSION = 1


class NotServed(WeftError):
    """Something that this job cannot do."""


class RunFailed(WeftError):
    """The stream stopped on an error; a restart repeats the batch that failed."""


def weave(
    stream: DataFrame,
    queries: Queries,
    *,
    event_time: str = "ts",
    watermark: str = "0 seconds",
    strategy: str = "tri_weave",
    technique: str = "blocks",
    rate: float = 10_000,
    buckets: int | None = None,
) -> Job:
    """Weave queries over one stream, or one bounded table, into one job.

    `event_time` is the column that the windows are over; `watermark` is how late a row may come.
    """
    workload = read_queries(queries, event_time)
    for acq in workload:
        if acq.source != workload[0].source:
            raise refuse(
                acq,
                f"this query reads {acq.source}, another {workload[0].source}: a job weaves the queries of one stream",
                "Weave the queries of each stream by themselves.",
                fragment=acq.source,
            )
        if acq.event_time.strip("`").lower() != event_time.strip("`").lower():
            raise refuse(
                acq,
                f"its window is over {acq.event_time}, but the stream's event time is {event_time}",
                f"Use window({event_time}, ...), or weave with event_time={acq.event_time!r}.",
                fragment=acq.event_time,
            )
        if acq.refresh != "exact":
            raise refuse(
                acq, "SLIDE AT MOST cannot be run yet", "Use SLIDE, which answers every window.", fragment="AT MOST"
            )
    use_this_python(stream.sparkSession)
    plan = optimize(workload, rate=rate, strategy=strategy, technique=technique)
    return Job(stream, plan, bind_plan(plan, stream, event_time), duration(watermark), buckets)


class Job:
    """Queries woven over a stream; `start` runs them, `answers` does so on a bounded table."""

    def __init__(self, stream: DataFrame, plan: Plan, binding: Binding, delay: int, buckets: int | None) -> None:
        self.stream = stream
        self.plan = plan
        self.binding = binding
        self.delay = delay
        self.buckets = buckets or max(1, stream.sparkSession.sparkContext.defaultParallelism)

    def explain(self, format: Literal["text", "json", "html"] = "text") -> Any:
        """The trees, what they cost with and without sharing, and why the last merge was refused."""
        show: dict[str, Callable[[Plan], Any]] = {"text": explain, "json": to_json, "html": to_html}
        return show[format](self.plan)

    def _repr_html_(self) -> str:
        return to_html(self.plan)

    def answers(self) -> dict[str, DataFrame]:
        """The rows of each query over a bounded table, as `spark.sql` would give them."""
        folder = tempfile.mkdtemp(prefix="weft-answers-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.run_bounded(ParquetSink(folder))
        spark = self.stream.sparkSession
        return {
            name: spark.read.parquet(f"{folder}/{folder_of(name)}")
            for name in (q.name for q in self.plan.workload)
        }

    def run_bounded(self, sink: str | Sink | Callable[[int, Any], object]) -> BatchMetrics:
        """Answer every query over a bounded table, into a sink."""
        if self.stream.isStreaming:
            raise NotServed("this stream has no end; use job.start(sink=..., checkpoint=...)")
        target = make_sink(sink)
        target.open(self.binding.layout)
        _, metrics = Pipeline(self.binding, self.buckets, self.delay, target).run_bounded(self.stream)
        return metrics

    def start(
        self,
        *,
        sink: str | Sink | Callable[[int, Any], object] = "memory",
        checkpoint: str | Path | None = None,
        trigger: str | None = None,
        available_now: bool = False,
    ) -> Run:
        """Run until stopped. `trigger` is how often a batch begins ('1 second'; as fast as it can without one);
        `available_now` reads what is there and ends. Without a checkpoint folder the run cannot be resumed.
        """
        if not self.stream.isStreaming:
            raise NotServed("this table is bounded; use job.answers(), or read it with spark.readStream")
        return Run(self, make_sink(sink), None if checkpoint is None else str(checkpoint), trigger, available_now)


class Run:
    """A running job, like a StreamingQuery."""

    def __init__(
        self, job: Job, sink: Sink, folder: str | None, trigger: str | None, available_now: bool
    ) -> None:
        self.job = job
        self.sink = sink
        self.started = time.time()
        self._temporary = None if folder else tempfile.mkdtemp(prefix="weft-state-")
        self.checkpoint = Checkpoint(Store(folder or str(self._temporary)))
        buckets = self.checkpoint.buckets() or job.buckets
        self.checkpoint.agree(
            {
                "version": CHECKPOINT_VERSION,
                "buckets": buckets,
                "watermark": job.delay,
                "plan": [[*t.queries] for t in job.plan.trees],
                "queries": {q.name: q.spark_sql for q in job.plan.workload},
            }
        )
        self._pipeline = Pipeline(job.binding, buckets, job.delay, sink, self.checkpoint)
        self._record = self.checkpoint.newest()
        self._history: deque[BatchMetrics] = deque(maxlen=1000)
        self._lock = threading.Lock()
        self._busy = threading.Lock()
        self._failure: Exception | None = None
        sink.open(job.binding.layout)
        writer = (
            job.stream.writeStream.foreachBatch(self._batch)
            .queryName(f"weft-{uuid.uuid4().hex[:8]}")
            .option("checkpointLocation", f"{self.checkpoint.store.uri.rstrip('/')}/spark")
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        self.query: StreamingQuery = writer.start()

    def _batch(self, rows: DataFrame, batch: int) -> None:
        with self._busy:
            self._run_batch(rows, batch)

    def _run_batch(self, rows: DataFrame, batch: int) -> None:
        """Spark repeats a batch whose commit it missed; one that has a record is done already."""
        done = self.checkpoint.record(batch)
        if done is not None and not done.drained:
            with self._lock:
                self._record = done
            return
        before = done or (self.checkpoint.record(batch - 1) if batch else None)
        try:
            record, metrics = self._pipeline.run_batch(rows, batch, before)
        except Exception as error:
            self._failure = error  # Spark passes on only its text
            raise
        with self._lock:
            self._record = record
            self._history.append(metrics)

    @property
    def active(self) -> bool:
        return bool(self.query.isActive)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the run to end; whether it has. An error of the stream is raised here."""
        try:
            ended = self.query.awaitTermination(None if seconds is None else seconds)
        except StreamingQueryException as error:
            raise RunFailed(failure(self._failure or error)) from error
        return True if ended is None else bool(ended)

    def stop(self) -> None:
        """End after the batch that runs; the checkpoint holds what is needed to go on."""
        # Held no longer than that: Spark's stop waits for a batch that has just begun, and that one for the lock.
        with self._busy:
            pass
        self.query.stop()
        self._forget()

    def drain(self) -> None:
        """The stream has ended: answer the windows that are still open. Nothing can be read afterwards."""
        if self.query.isActive:
            self.query.processAllAvailable()
            self.query.stop()
        error = self.query.exception()
        if error is not None:
            raise RunFailed(failure(self._failure or error))
        record = self.checkpoint.newest()
        if record is not None and not record.drained:
            record, metrics = self._pipeline.drain(self.job.stream.sparkSession, record)
            with self._lock:
                self._record = record
                self._history.append(metrics)
        self._forget()

    def _forget(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def answers(self) -> dict[str, pa.Table]:
        """What the memory sink holds."""
        if not isinstance(self.sink, MemorySink):
            raise NotServed('this run has another sink; start it with sink="memory", or read where it writes')
        return self.sink.tables()

    def queries(self) -> list[str]:
        return [q.name for q in self.job.plan.workload]

    def plan(self) -> Plan:
        return self.job.plan

    def batches(self) -> list[BatchMetrics]:
        """The latest batches, oldest first."""
        with self._lock:
            return list(self._history)

    def metrics(self) -> dict[str, Any]:
        """Where the run stands: counters from the start of the job, rates over its latest batches."""
        with self._lock:
            record, recent = self._record, list(self._history)[-10:]
        busy = sum(m.seconds for m in recent) or None
        mark = None if record is None or record.watermark in (None, FOREVER) else record.watermark
        latest = None if record is None else record.latest
        return {
            "batch": None if record is None else record.batch,
            "rows": 0 if record is None else record.rows,
            "rows_per_second": sum(m.rows for m in recent) / busy if busy else 0.0,
            "watermark": None if mark is None else _iso(mark),
            "lag_seconds": None if latest is None else max(0.0, time.time() - latest / 1e6),
            "answers": 0 if record is None else sum(record.answers.values()),
            "answers_per_second": sum(m.answers for m in recent) / busy if busy else 0.0,
            "late": 0 if record is None else sum(record.late.values()),
            "late_by_query": {} if record is None else dict(record.late),
            "answers_by_query": {} if record is None else dict(record.answers),
            "state_bytes_written": 0 if record is None else record.state_bytes,
            "queries": len(self.job.plan.workload),
            "trees": len(self.job.plan.trees),
        }


def failure(error: BaseException) -> str:
    """The sentence inside a failure that a person can use: weft's own, or what the innermost traceback ends with."""
    if isinstance(error, WeftError):
        return str(error)
    lines = str(error).splitlines()
    raised = [
        (match[1], match[2])
        for above, line in pairwise(lines)
        if above.startswith(" ") and (match := re.match(r"([A-Za-z_][\w.]*): (.+)", line))
    ]
    if not raised:
        return f"{type(error).__name__}: {next((line for line in lines if line.strip()), 'no more is known')}"
    name, said = raised[-1]
    return said if name.startswith("weft.") else f"{name}: {said}"


def _iso(micros: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(micros // 1_000_000)) + f".{micros % 1_000_000:06d}Z"
