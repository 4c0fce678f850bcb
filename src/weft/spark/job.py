"""What users hold first: a job woven from queries."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame

from weft.optimizer.choose_techniques import Latency, known_latency
from weft.plan import Plan, explain, to_fragment, to_html, to_json
from weft.plan.value_memory import warn_of_synopses
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.execution.failing_queries import QueriesFailed, blame
from weft.spark.execution.micro_batch import BatchMetrics, MicroBatchRunner
from weft.spark.files import folder_name
from weft.spark.options import Late, TimeOptions
from weft.spark.partial.hash_tables import TABLE_MEMORY, known_memory
from weft.spark.physical.explain import sharing
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.planner import DEFAULT_TOLERANCE, Planner
from weft.spark.physical.rollup import Phantoms, known_grouping, known_phantoming
from weft.spark.queries.membership import lived, lives_of
from weft.spark.run import NotServed, Run
from weft.spark.session import require_classic, use_this_python
from weft.spark.sinks.base import AnswerListener, Sink
from weft.spark.sinks.late_rows import make_late_sink
from weft.spark.sinks.open import make_sink
from weft.spark.sinks.parquet import ParquetSink
from weft.spark.sinks.side_output import SideOutput
from weft.spark.sources.corrupt_records import make_bad_sink
from weft.sql.inputs import Queries, read_queries

AT_ONCE = "0 seconds"
"""A trigger that Spark reads as no trigger: a batch begins as soon as the one before has ended."""


def weave(
    stream: DataFrame,
    queries: Queries,
    *,
    event_time: str = "ts",
    watermark: str = "0 seconds",
    late: Late = "drop",
    lateness: str | None = None,
    retain: str | None = None,
    max_skew: str | None = None,
    idle_timeout: str | None = None,
    strategy: str = "tri_weave",
    technique: str = "auto",
    latency: Latency = "batch",
    cost: str = "operations",
    rate: float = 10_000,
    buckets: int | None = None,
    tolerance: float | None = DEFAULT_TOLERANCE,
    phantoms: str = "auto",
    groupings: str = "auto",
    table_memory: int = TABLE_MEMORY,
    synopsis_limit: int | None = None,
) -> Job:
    """Weave queries over one stream, or one bounded table, into one job.

    `event_time` is the column that the windows are over; `watermark` is how late a row may come. A row that is later is
    dropped and counted; with `late="update"` it is put into the windows that ended within `lateness`, and their answers
    are sent again, marked; with `late="side"` it is dropped, counted and written to the `late_sink` of `start`.
    `retain="6 hours"` keeps the slices of windows that ended within that time, for queries that come later. A row
    further ahead of the clock than `max_skew` does not move the watermark; when no row has come for `idle_timeout`, the
    watermark goes on with the clock. With `latency="bounded"` no slide of a window takes more than a constant number of
    operations, whatever its range. Plans are compared by the papers' operations, with `cost="seconds"` by what
    `weft calibrate` measured on this machine. When queries have come and gone and the mended plan costs more than
    `tolerance` above what the curve of former plans lets expect, all are planned anew beside the job; None: never.
    Groupings are rolled up from finer ones where that is cheaper by the groups counted on the first rows; with
    `phantoms="never"` each is made from rows, with "always" all are rolled up from one. Spark aggregates them
    (`groupings="native"`), or tables inside its tasks that take no more than `table_memory` bytes each ("lfta"),
    whatever the number of groups; "auto" takes the cheaper of both once `weft calibrate` has measured them. A job whose
    exact percentiles, distinct counts and the like would keep more than `synopsis_limit` bytes of values stops before
    that batch is committed; `explain` warns. `buckets` is how many tasks the final stage has, by default one a core;
    a restart with another number moves the state.
    """
    if buckets is not None and buckets < 1:
        raise NotServed(f"a job has a bucket at least, got buckets={buckets}; leave it out for one a core")
    require_classic(stream)
    use_this_python(stream.sparkSession)
    times = TimeOptions.of(watermark, late, lateness, retain, max_skew, idle_timeout)
    if times.late != "drop" and not stream.isStreaming:
        raise NotServed(f"late={late!r} is for streams: in a bounded table no row comes late")
    planner = Planner(
        stream, event_time, strategy, technique, rate, known_latency(latency), cost, tolerance, times,
        phantoms=Phantoms(known_phantoming(phantoms), known_grouping(groupings), known_memory(table_memory)),
        synopsis_limit=synopsis_limit, buckets=buckets or cores(stream),
    )  # fmt: skip
    plan, physical = planner.weave(read_queries(queries, event_time))
    return Job(planner, plan, physical, buckets)


@dataclass(frozen=True, slots=True)
class Job:
    """Queries woven over a stream; `start` runs them, `answers` does so on a bounded table."""

    planner: Planner
    plan: Plan
    physical: PhysicalPlan
    buckets: int | None = None
    """None: as many as the state has, or the cluster has cores."""

    @property
    def cores(self) -> int:
        """What the session says that it has: so many buckets, where nobody asks for others."""
        return cores(self.stream)

    @property
    def stream(self) -> DataFrame:
        """What the queries are over."""
        return self.planner.stream

    def explain(self, format: Literal["text", "json", "html"] = "text") -> Any:
        """The trees, what they cost with and without sharing, and why the last merge was refused; then the passes over
        rows: what their signatures take, and, once rows were counted, which phantoms feed them and what that saves."""
        shared = sharing(self.physical)
        if format == "json":
            return {**to_json(self.plan), "sharing": shared.to_json()}
        if format == "html":
            return to_html(self.plan, shared.to_html())
        split = _split(self.physical) if len(self.physical.feeds) > len(self.plan.feeds) else []
        values = warn_of_synopses(self.plan, self.planner.synopsis_limit)
        told = [explain(self.plan), *split, *shared.signatures(), *self.physical.phantoms.explain(), *values]
        return "\n".join(told)

    def _repr_html_(self) -> str:
        return to_fragment(self.plan)

    def answers(self) -> dict[str, DataFrame]:
        """The rows of each query over a bounded table, as `spark.sql` would give them."""
        folder = tempfile.mkdtemp(prefix="weft-answers-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.run_bounded(ParquetSink(folder))
        spark = self.stream.sparkSession
        return {
            name: spark.read.parquet(f"{folder}/{folder_name(name)}") for name in (q.name for q in self.plan.workload)
        }

    def run_bounded(self, sink: str | Sink | Callable[[int, Any], object]) -> BatchMetrics:
        """Answer every query over a bounded table, into a sink."""
        if self.stream.isStreaming:
            raise NotServed("this stream has no end; use job.start(sink=..., checkpoint=...)")
        target = make_sink(sink)
        target.open(self.physical.layout)
        limit = self.planner.synopsis_limit
        # Nobody joins a table, so lives of some length do not begin; those that end at a time do end.
        physical = self.physical.with_layout(lived(self.physical.layout, lives_of(self.plan.workload)))
        places = BucketMap(self.buckets or self.cores)
        pipeline = MicroBatchRunner(physical, places, self.planner.times, target, synopsis_limit=limit)
        try:
            return pipeline.run_bounded(self.stream)[1]
        except Exception as error:
            failed = blame(error, self.stream, self.plan.workload, self.planner)
            if failed:
                raise QueriesFailed(failed) from error
            raise

    def start(
        self,
        *,
        sink: str | Sink | Callable[[int, Any], object] = "memory",
        checkpoint: str | Path | None = None,
        trigger: str | None = None,
        available_now: bool = False,
        late_sink: str | SideOutput | None = None,
        tap: AnswerListener | None = None,
        bad_sink: str | SideOutput | None = None,
    ) -> Run:
        """Run until stopped. `trigger` is how often a batch begins ('1 second'; as soon as it can without one);
        `available_now` reads what is there and ends. Without a checkpoint folder the run cannot be resumed.
        With `late="side"`, `late_sink` takes the rows that came too late: `parquet:FOLDER`, or a function of the
        batch's number and a DataFrame. A `tap` watches some of the answers beside the sink.
        `bad_sink` takes the records that could not be read, of a source that was opened with `bad="aside"`.
        """
        if not self.stream.isStreaming:
            raise NotServed("this table is bounded; use job.answers(), or read it with spark.readStream")
        side = make_late_sink(self.planner.times.late, late_sink)
        bad = make_bad_sink(self.stream, bad_sink)
        folder = None if checkpoint is None else str(checkpoint)
        return Run(self, make_sink(sink), folder, trigger or AT_ONCE, available_now, side, tap, bad)


def cores(stream: DataFrame) -> int:
    return max(1, int(stream.sparkSession.sparkContext.defaultParallelism))


def _split(physical: PhysicalPlan) -> list[str]:
    """Where filters are in classes: how many there are of each, by the keys of their grouping."""
    lines = []
    for number, keys in enumerate(physical.groupings):
        sizes = [len(f.signature.filters) for f in physical.feeds if f.layout.grouping.number == number]
        if len(sizes) > 1:
            by = f" by {', '.join(keys)}" if keys else ""
            lines.append(f"  passes{by}  {len(sizes)}, with {', '.join(map(str, sizes))} filters")
    return lines
