"""The same queries over the same rows: woven, one Spark stream after the other, and all in one Spark job."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from weft.calibration.measure.events import Events
from weft.spark import weave
from weft_bench.benchmark import Say
from weft_bench.data.queries import BenchQuery, sample_order

LOOK_SECONDS = 0.05
"""Seconds between two checks whether a stream has ended: the most by which its time is too long."""

PATIENCE = 10
"""A running stream may finish, and is cut only beyond this multiple of the budget."""

TABLE_GROUPS = 40_000
"""Groups per hash table of the one-job run: few enough for the caches of a core."""

PROBE = 4
"""An extrapolation is trusted up to this multiple of the measured rows."""

HEADROOM = 0.8
"""The share of the budget for a run whose number of rows is extrapolated from fewer rows."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is measured. `budget` is in seconds; an engine that exceeds it does less, and reports that."""

    spark: SparkSession
    events: Events
    queries: Sequence[BenchQuery]
    batches: int
    budget: float
    folder: Path
    say: Say
    rows: int | None = None
    """The first rows only, where an engine that reads a bounded table is to take fewer."""
    skip: int = 0
    """Queries of the sample that were measured before."""
    small: Events | None = None
    """A small slice, to warm up on what has not run before."""

    @contextmanager
    def scratch(self) -> Iterator[str]:
        """A temporary folder for checkpoints and answers."""
        folder = tempfile.mkdtemp(dir=self.folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The work of `seconds`: `measured` queries, each over `rows` rows."""

    seconds: float
    rows: float
    measured: int
    answers: int
    cut: bool = False
    plan_seconds: float | None = None
    by_query: Mapping[str, int] | None = None
    """Answers per query, if the engine counts them separately."""

    def rows_per_second(self, queries: int) -> float:
        """Extrapolated to all `queries`, which take as long as the measured ones on average."""
        return self.rows * self.measured / self.seconds / queries


Engine = Callable[[Trial], Outcome]


def run_weft(point: Trial, sink: str = "noop") -> Outcome:
    """From the start of the stream to its last answer; weaving is before that, and reported beside it."""
    with point.scratch() as folder:
        begun = time.perf_counter()
        stream = point.events.stream(point.spark, point.batches)
        job = weave(stream, [q.sql for q in point.queries], watermark="0 seconds", rate=point.events.rate)
        planned = time.perf_counter()
        target = sink if sink == "noop" else f"{sink}:{folder}/answers"
        run = job.start(sink=target, checkpoint=f"{folder}/state", available_now=True)
        run.wait()
        run.drain()
        seconds = time.perf_counter() - planned
        metrics = run.metrics()
    return Outcome(
        seconds=seconds,
        rows=metrics["rows"],
        measured=len(point.queries),
        answers=metrics["answers"],
        plan_seconds=planned - begun,
        by_query=metrics["answers_by_query"],
    )


def run_weft_parquet(point: Trial) -> Outcome:
    return run_weft(point, "parquet")


def run_spark(point: Trial) -> Outcome:
    """A stream for each query, one after the other, until the budget is used up; warmed up as weft is, off the clock.

    Append mode never answers the windows that are open when the stream ends: Spark gives fewer answers than weft.
    """
    order = sample_order(point.queries)
    skip = point.skip % len(order)
    outcomes: list[Outcome] = []
    for query in order[skip:] + order[:skip]:
        if sum(o.seconds for o in outcomes) >= point.budget:
            break
        if point.small is not None:
            _stream_one(replace(point, events=point.small), query)
        outcomes.append(_stream_one(point, query))
        if len(order) > 1:
            point.say(f"  plain Spark  {query.name}  {outcomes[-1].seconds:.1f} s")
    return Outcome(
        seconds=sum(o.seconds for o in outcomes),
        rows=sum(o.rows for o in outcomes) / len(outcomes),
        measured=len(outcomes),
        answers=sum(o.answers for o in outcomes),
        cut=any(o.cut for o in outcomes),
    )


def _stream_one(point: Trial, query: BenchQuery) -> Outcome:
    with point.scratch() as folder:
        stream = point.events.stream(point.spark, point.batches).withWatermark("ts", "0 seconds")
        stream.createOrReplaceTempView("events")
        writer = (
            point.spark.sql(query.sql)
            .writeStream.format("noop")
            .outputMode("append")
            .option("checkpointLocation", folder)
            .trigger(availableNow=True)
        )
        begun = time.perf_counter()
        running = writer.start()
        cut = _await(running, begun + PATIENCE * point.budget)
        seconds = time.perf_counter() - begun
        progress: list[Any] = list(running.recentProgress)
        if cut:
            _stop(point.spark, running)
    answers = sum(operator["numRowsRemoved"] for p in progress for operator in p["stateOperators"])
    if not cut:
        return Outcome(seconds, point.events.rows, 1, answers)
    # An unfinished batch counts neither as rows nor as time.
    seconds = sum(p["durationMs"]["triggerExecution"] for p in progress) / 1000
    return Outcome(seconds, sum(p["numInputRows"] for p in progress), 1, answers, cut=True)


def _await(running: StreamingQuery, deadline: float) -> bool:
    """Whether the stream was cut: it is cut after a batch with rows if it runs beyond the deadline."""
    while not running.awaitTermination(LOOK_SECONDS):
        if time.perf_counter() > deadline and any(p["numInputRows"] for p in running.recentProgress):
            return True
    return False


def _stop(spark: SparkSession, running: StreamingQuery) -> None:
    """A stream that is stopped within a batch logs errors; here that is intended."""
    spark.sparkContext.setLogLevel("OFF")
    try:
        running.stop()
        # Its tasks end a little later, and their checkpoint must still be there.
        time.sleep(1)
    finally:
        spark.sparkContext.setLogLevel("ERROR")


def run_spark_one_job(point: Trial) -> Outcome:
    """All queries in one batch aggregation: a row for each (query, window) that covers it, then one GROUP BY.

    Of the ways tried this was the fastest. On a busy machine, so roughly: a UNION ALL of 20 queries took 2 to 3 times
    as long as one explode; with 100 queries, shuffling partial groups instead of rows took 3 times as long, and few
    large hash tables instead of many small ones 2 to 4 times.
    """
    rows = point.events.rows if point.rows is None else min(point.rows, point.events.rows)
    windows = sum(rows / point.events.rate / q.slide + q.overlap for q in point.queries)
    partitions = max(point.spark.sparkContext.defaultParallelism, round(windows * point.events.keys / TABLE_GROUPS))
    counted = Observation()
    frame = explode_windows(point.events.table(point.spark, rows).repartition(partitions, "k"), point.queries)
    frame = frame.observe(counted, F.count(F.lit(1)).alias("answers"))
    begun = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - begun
    return Outcome(seconds, rows, len(point.queries), int(counted.get["answers"]))


def rows_for_one_job(point: Trial) -> int:
    """How many rows one Spark job can take in the budget. Tried on ever more: few rows only show what a job costs."""
    rows = min(point.events.rows, point.small.rows if point.small is not None else point.events.rows)
    run_spark_one_job(replace(point, rows=rows))
    while True:
        seconds = run_spark_one_job(replace(point, rows=rows)).seconds
        fitting = min(point.events.rows, max(1, int(rows * HEADROOM * point.budget / seconds)))
        if fitting <= PROBE * rows:
            return fitting
        rows = fitting // PROBE


def explode_windows(rows: DataFrame, queries: Sequence[BenchQuery]) -> DataFrame:
    """rows     (ts, k, v)            partitioned by k, so that groups need no shuffle
    pairs    (query, begin, k, v)     one for each window of a query that covers the row
    answers  (query, begin, k, sum, count, max)
    """
    windows = ", ".join(
        f"named_struct('query', {i}, 'slide', {q.slide * 1_000_000}L, 'back', {j * q.slide * 1_000_000}L)"
        for i, q in enumerate(queries)
        for j in range(q.overlap)
    )
    return (
        rows.selectExpr("unix_micros(ts) AS t", "k", "v", f"inline(array({windows}))")
        .selectExpr("query", "t - pmod(t, slide) - back AS begin", "k", "v")
        .groupBy("query", "begin", "k")
        .agg(F.sum("v").alias("sum"), F.count(F.lit(1)).alias("count"), F.max("v").alias("max"))
    )


def count_in_batch(point: Trial, queries: Sequence[BenchQuery]) -> dict[str, int]:
    """How many rows `spark.sql` gives for each of the queries over all rows as a bounded table."""
    point.events.table(point.spark).createOrReplaceTempView("events")
    counts = [f"(SELECT '{q.name}' AS name, count(*) AS answers FROM ({q.sql}))" for q in queries]
    counted = point.spark.sql(" UNION ALL ".join(counts)).collect()
    return {row["name"]: row["answers"] for row in counted}
