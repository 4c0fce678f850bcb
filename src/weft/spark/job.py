"""A job woven from queries, as users see it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from weft.plan import to_fragment
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.errors import NotServed
from weft.spark.execution.failing_queries import QueriesFailed, find_failing_queries
from weft.spark.execution.metrics import BatchMetrics
from weft.spark.execution.micro_batch import MicroBatchRunner
from weft.spark.execution.woven import WovenQueries, cores
from weft.spark.files import folder_name
from weft.spark.keywords import renamed, with_keywords
from weft.spark.options import JobOptions
from weft.spark.partial.statistics import StatisticsCollector
from weft.spark.physical.analyzer import AnalyzedStream
from weft.spark.physical.explain import Format, explain_physical
from weft.spark.physical.planner import Planner
from weft.spark.queries.membership import ttls_of, with_ttls
from weft.spark.run import Run
from weft.spark.session import batch_settings, require_classic, use_this_python
from weft.spark.sinks.base import AnswerListener, Sink
from weft.spark.sinks.corrupt_records import make_corrupt_sink
from weft.spark.sinks.late_rows import make_late_sink
from weft.spark.sinks.open import make_sink
from weft.spark.sinks.parquet import ParquetSink
from weft.spark.sinks.side_output import SideOutput
from weft.sql.inputs import Queries, read_queries

RESERVED = "_weft_"
"""Names of columns that weft adds to the rows begin with it."""

AT_ONCE = "0 seconds"
"""A trigger that Spark reads as no trigger: a batch begins as soon as the one before has ended."""


def plan_job(stream: DataFrame, queries: Queries, options: JobOptions) -> Job:
    """Weave queries over one stream, or one bounded table, into one job.

    Lengths of time are written as in Spark, such as '10 seconds'.
    """
    require_classic(stream)
    _refuse_reserved_names(stream)
    use_this_python(stream.sparkSession)
    if options.late != "drop" and not stream.isStreaming:
        raise NotServed(f"late={options.late!r} is for streams: in a bounded table no row is late")
    planner = Planner(AnalyzedStream(stream), options, options.buckets or cores(stream))
    workload = read_queries(queries, options.event_time)
    collector = StatisticsCollector(options, planner.assumed)
    if not stream.isStreaming:
        collector.sample_table(stream, workload)
    return Job(planner, planner.plan(workload, collector.statistics), collector)


def _refuse_reserved_names(stream: DataFrame) -> None:
    for name in stream.columns:
        if name.lower().startswith(RESERVED):
            raise NotServed(
                f"the stream has a column {name}, and weft adds columns of its own whose names begin with {RESERVED}; "
                f'rename it: stream.withColumnRenamed("{name}", "{name.strip("_")}")'
            )


weave = with_keywords("weave", plan_job, JobOptions)


class Job(WovenQueries):
    """Queries woven over a stream; `start` runs them, `answers` does so on a bounded table."""

    def over(self, stream: DataFrame) -> Job:
        """The same plan over another stream with the same columns."""
        planner = replace(self.planner, source=self.planner.source.over(stream))
        return Job(planner, self.physical, StatisticsCollector(self.options, planner.assumed))

    def explain(self, format: Format = "text") -> Any:
        """The trees, what they cost with and without sharing, and why the last merge was refused; then the passes over
        rows: what their signatures take, and, once rows were counted, which phantoms feed them and what that saves."""
        return explain_physical(self.physical, format)

    def _repr_html_(self) -> str:
        return to_fragment(self.plan)

    def answers(self) -> dict[str, DataFrame]:
        """The rows of each query over a bounded table, as `spark.sql` would give them."""
        folder = tempfile.mkdtemp(prefix="weft-answers-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.run_bounded(ParquetSink(folder))
        spark = self.stream.sparkSession
        # Types are given: what Spark would read from the files depends on settings of the session.
        types = {q.name: from_arrow_schema(q.schema, prefer_timestamp_ntz=True) for q in self.physical.layout.queries}
        return {
            name: spark.read.schema(types[name]).parquet(f"{folder}/{folder_name(name)}")
            for name in (q.name for q in self.plan.workload)
        }

    def run_bounded(self, sink: str | Sink | Callable[[int, Any], object]) -> BatchMetrics:
        """Answer every query over a bounded table, into a sink."""
        if self.stream.isStreaming:
            raise NotServed("this stream has no end; use job.start(sink=..., checkpoint=...)")
        target = make_sink(sink)
        target.open(self.physical.layout)
        bucket_map = BucketMap(self.options.buckets or self.cores)
        begun = time.perf_counter()
        try:
            with batch_settings(self.stream.sparkSession, bucket_map.buckets):
                self.collector.collect(self.stream, self._physical)
            # No query joins a bounded table, so FOR has no begin to count from; UNTIL holds.
            physical = self.physical.with_layout(with_ttls(self.physical.layout, ttls_of(self.plan.workload)))
            pipeline = MicroBatchRunner(
                physical, bucket_map, self.options.times, target, synopsis_limit=physical.synopsis_limit
            )
            return pipeline.run_bounded(self.stream, begun)[1]
        except Exception as error:
            failed = find_failing_queries(error, self.stream, self.plan.workload, self.planner)
            if failed:
                raise QueriesFailed(failed) from error
            raise

    @renamed(tap="listener", bad_sink="corrupt_sink")
    def start(
        self,
        *,
        sink: str | Sink | Callable[[int, Any], object] = "memory",
        checkpoint: str | Path | None = None,
        trigger: str | None = None,
        available_now: bool = False,
        late_sink: str | SideOutput | None = None,
        corrupt_sink: str | SideOutput | None = None,
        listener: AnswerListener | None = None,
    ) -> Run:
        """Run until stopped. `trigger` is the time between the starts of two batches ('1 second'), without it a batch
        starts when the one before ends; `available_now` reads what is there and ends. Without a checkpoint folder the
        run cannot be resumed.

        `late_sink` is the side output for late rows, with `late="side"`; `corrupt_sink` the one for records that cannot
        be read, of a source that was opened with `corrupt="side"`. Both are `parquet:FOLDER`, or a function of the
        batch's number and a DataFrame. A `listener` receives some of the answers beside the sink.
        """
        if not self.stream.isStreaming:
            raise NotServed("this table is bounded; use job.answers(), or read it with spark.readStream")
        side = make_late_sink(self.options.late, late_sink)
        corrupt = make_corrupt_sink(self.stream, corrupt_sink)
        folder = None if checkpoint is None else str(checkpoint)
        return Run(self, make_sink(sink), folder, trigger or AT_ONCE, available_now, side, listener, corrupt)
