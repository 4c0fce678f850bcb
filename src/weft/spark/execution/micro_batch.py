"""A batch from rows to committed answers. Two Spark jobs, whatever the number of queries and trees."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.engine import FOREVER
from weft.engine.partial.from_rows import Scattered
from weft.engine.plan_transition import keep_on
from weft.model import RunError
from weft.spark.checkpoint.batch_log import BatchRecord, Checkpoint, segment_from
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.execution.failing_queries import QueriesFailed
from weft.spark.execution.refresh import choose_refreshes
from weft.spark.execution.watermark import look_at
from weft.spark.final.report import deserialise
from weft.spark.final.task import BucketTask, final_aggregate
from weft.spark.options import TimeOptions
from weft.spark.partial.aggregate import place, sub_aggregate, sub_aggregate_whole
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.session import batch_settings
from weft.spark.sinks.base import AnswerListener, Answers, BucketSink, DriverSink, Sink
from weft.spark.sinks.late_rows import late_rows
from weft.spark.sinks.side_output import SideOutput
from weft.spark.sources.corrupt_records import set_aside


class TooManyValues(RunError):
    """Exact aggregates that would keep more values than the job may."""


class Drained(RunError):
    """Rows came after the end of the stream was declared."""


@dataclass(frozen=True, slots=True)
class KeptTreeState:
    """What is kept of a tree."""

    slices: int
    """Different slices, in the bucket that has the most."""
    partials: int
    """In all buckets."""


@dataclass(frozen=True, slots=True)
class BatchMetrics:
    """What a batch did and where its time went."""

    batch: int
    rows: int
    partials: int
    answers: int
    late: int
    state_bytes: int
    record_bytes: int
    watermark: int | None
    latest: int | None
    seconds: float
    phases: Mapping[str, float]
    worker_memory: int
    trees: Mapping[int, KeptTreeState]
    """By tree; trees of former plans are there until no open window needs them."""
    selectivity: float = 1.0
    """The share of the rows that a pass makes partials of: some query wants them."""
    refreshes: int = 0
    """Windows that queries were answered for which are answered at most so often."""
    synopsis_bytes: int = 0
    """What partials of no fixed size held when windows were answered: values, or samples of them."""


@dataclass(frozen=True, slots=True)
class MicroBatchRunner:
    """A bound plan with its sink and checkpoint; without a checkpoint nothing is kept between batches."""

    physical: PhysicalPlan
    places: BucketMap
    times: TimeOptions
    sink: Sink
    checkpoint: Checkpoint | None = None
    late_sink: SideOutput | None = None
    tap: AnswerListener | None = None
    bad_sink: SideOutput | None = None
    synopsis_limit: int | None = None
    epoch: str = ""
    """Of what workers may remember: see `BucketTask`."""
    interval: float | None = None
    """Seconds from the begin of a batch to that of the next, at least: 0 where one follows the other as soon as it can;
    None: nobody waits for the next, a batch takes the time that it takes."""
    places_file: str = ""
    """Where the checkpoint has the places."""

    def run_batch(
        self, rows: DataFrame, batch: int, before: BatchRecord | None, read: str = ""
    ) -> tuple[BatchRecord, BatchMetrics]:
        """rows      (columns...)
        partials  (bucket, feed, slice, words..., keys..., latest, components...)
        answers   (query, window, keys, values...), in the sink

        `read` stands for the rows, and goes into the record.
        """
        if before is not None and before.drained:
            raise Drained(
                "this checkpoint was drained: the end of its stream was declared and every window answered; "
                "start with an empty checkpoint folder to read on"
            )
        begun = time.perf_counter()
        with batch_settings(rows.sparkSession, self.places.buckets):
            bad = 0 if self.bad_sink is None else set_aside(batch, rows, self.bad_sink)
            skew = self.times.max_skew
            ahead = None if skew is None else time.time_ns() // 1000 + skew
            partials = sub_aggregate(rows, self.physical, self.places, ahead).persist()
            try:
                # The watermark must be known before a window is answered, and it comes from the whole batch.
                seen = look_at(partials, self._rows)
                native = time.perf_counter() - begun
                latest = _later(None if before is None else before.latest, seen.latest)
                mark = None if latest is None else latest - self.times.delay
                mark = _later(None if before is None else before.watermark, mark)
                passed = None if before is None else before.watermark
                if self.late_sink is not None and passed is not None and (seen.earliest or 0) < passed:
                    answered = {} if before is None else before.schedule.answered
                    self.late_sink(batch, late_rows(rows, self.physical, passed, answered))
                rest = (latest, seen.rows, begun)
                record, measured = self._advance(partials, batch, before, mark, *rest, bad=bad, read=read)
            finally:
                partials.unpersist()
        whole = time.perf_counter() - begun
        phases = {"native": native, "final": whole - native, **measured.pop("phases")}
        return record, _metrics(
            record, before, seen.partials, whole, phases=phases, selectivity=seen.selectivity, **measured
        )

    def run_bounded(self, rows: DataFrame) -> tuple[BatchRecord, BatchMetrics]:
        """All rows are there: one batch that answers every window."""
        begun = time.perf_counter()
        with batch_settings(rows.sparkSession, self.places.buckets):
            partials, scattered = sub_aggregate_whole(rows, self.physical, self.places)
            record, measured = self._advance(partials, 0, None, FOREVER, None, 0, begun, scattered=scattered)
        return record, _metrics(record, None, 0, time.perf_counter() - begun, **measured)

    def run_idle(self, spark: SparkSession, before: BatchRecord, watermark: int) -> tuple[BatchRecord, BatchMetrics]:
        """A batch without rows: answer the windows that end by the watermark. FOREVER: the stream has ended."""
        begun = time.perf_counter()
        with batch_settings(spark, self.places.buckets):
            nothing = place(spark.range(0, 0, 1, 1).selectExpr("CAST(id AS INT) AS bucket"), self.places.buckets)
            record, measured = self._advance(
                nothing, before.batch + 1, before, watermark, before.latest, 0, begun, apart=before.apart + 1,
                read=before.read,
            )  # fmt: skip
        return record, _metrics(record, before, 0, time.perf_counter() - begun, **measured)

    @property
    def _rows(self) -> Column:
        """How many rows a partial is of; those of a feed that is sent to several homes count in the first."""
        slots = {feed.number: feed.columns[0][0] for feed in self.physical.layout.feeds}
        again = " ".join(f"WHEN feed = {n} AND bucket <> {homes[0]} THEN 0" for n, homes in self.physical.homes.items())
        counted = " ".join(f"WHEN feed = {n} THEN {slot}" for n, slot in slots.items())
        return F.expr(f"CASE {again} {counted} END")

    def _advance(
        self,
        partials: DataFrame,
        batch: int,
        before: BatchRecord | None,
        watermark: int | None,
        latest: int | None,
        rows: int,
        begun: float,
        apart: int | None = None,
        bad: int = 0,
        read: str = "",
        scattered: tuple[Scattered, ...] = (),
    ) -> tuple[BatchRecord, dict[str, Any]]:
        until = -FOREVER if watermark is None else watermark
        layout = self.physical.layout
        for past in self.physical.replayed:
            earlier = past.read(partials.sparkSession, self.places, layout)
            partials = partials.unionByName(earlier, allowMissingColumns=True)
            layout = past.into(layout)
        if self.physical.replayed:
            partials = place(partials, self.places.buckets)
        chosen = choose_refreshes(layout, before, until)
        layout = replace(layout, refresh=chosen.refresh, answered=chosen.before.answered)
        task = BucketTask(
            layout=layout,
            batch=batch,
            before=None if before is None else before.watermark,
            until=until,
            segments={} if before is None else dict(before.segments),
            checkpoint=self.checkpoint,
            epoch=self.epoch,
            sink=self.sink if isinstance(self.sink, BucketSink) else None,
            tapped=0 if self.tap is None else self.tap.rows,
            scattered=scattered,
        )
        reports = final_aggregate(partials, task)
        buckets = {r["bucket"]: json.loads(bytes(r["payload"])) for r in reports if r["query"] is None}
        failed = {name: reason for r in buckets.values() for name, reason in r.get("failed", {}).items()}
        if failed:
            raise QueriesFailed(failed)
        answers = _payloads(reports)
        if isinstance(self.sink, DriverSink):
            self.sink.take(batch, answers)
        synopses = sum(r["synopses"] for r in buckets.values())
        if self.synopsis_limit is not None and synopses > self.synopsis_limit:
            raise TooManyValues(
                f"the values that exact aggregates keep take {synopses:,} bytes, above synopsis_limit="
                f"{self.synopsis_limit:,}; weave with a higher one, or use the approximate forms that explain() names"
            )
        cores = min(self.places.buckets, partials.sparkSession.sparkContext.defaultParallelism)
        record = BatchRecord(
            batch=batch,
            watermark=watermark,
            latest=latest,
            segments={str(b): tuple(map(segment_from, r["segments"])) for b, r in buckets.items()},
            rows=rows + (0 if before is None else before.rows),
            answers=_add({} if before is None else before.answers, (r["answers"] for r in buckets.values())),
            late=_add({} if before is None else before.late, (r["late"] for r in buckets.values())),
            matched=_add({} if before is None else before.matched, (r["matched"] for r in buckets.values())),
            bad=bad + (0 if before is None else before.bad),
            state_bytes=sum(r["state_bytes"] for r in buckets.values()),
            drained=watermark == FOREVER,
            apart=(0 if before is None else before.apart) if apart is None else apart,
            schedule=chosen.measured(
                buckets.values(), time.perf_counter() - begun, _advanced(before, latest, rows), self.interval, cores
            ),
            kept={} if watermark is None else keep_on({} if before is None else before.kept, layout, watermark),
            read=read,
            places=self.places_file,
        )
        record_bytes = 0
        if self.checkpoint is not None:
            record, record_bytes = self.checkpoint.commit(record, before)
        if self.tap is not None:
            counts = _add({}, (r["answers"] for r in buckets.values()))
            self.tap.take(batch, _first_rows(answers, self.tap.rows), counts)
        laps: Counter[str] = Counter()
        for r in buckets.values():
            for name, seconds in r["seconds"].items():
                laps[f"bucket {name}"] = max(laps[f"bucket {name}"], seconds)
        memory = sum(r["memory"] for r in buckets.values())
        trees = _trees(r["trees"] for r in buckets.values())
        return record, {
            "phases": dict(laps),
            "worker_memory": memory,
            "record_bytes": record_bytes,
            "synopsis_bytes": synopses,
            "refreshes": sum(refresh.count for refresh in chosen.refresh.values()),
            "trees": trees,
        }


def _payloads(reports: Iterable[Any]) -> dict[str, pa.Table]:
    tables: dict[str, list[pa.Table]] = {}
    for report in reports:
        if report["query"] is not None:
            tables.setdefault(report["query"], []).append(deserialise(bytes(report["payload"])))
    return {name: pa.concat_tables(parts) for name, parts in tables.items()}


def _first_rows(answers: Answers, rows: int) -> Answers:
    return {name: table.slice(0, rows) for name, table in answers.items()}


def _trees(reports: Iterable[Mapping[str, Sequence[int]]]) -> dict[int, KeptTreeState]:
    trees: dict[int, KeptTreeState] = {}
    for report in reports:
        for tree, (slices, partials) in report.items():
            other = trees.get(int(tree), KeptTreeState(0, 0))
            trees[int(tree)] = KeptTreeState(max(slices, other.slices), partials + other.partials)
    return trees


def _advanced(before: BatchRecord | None, latest: int | None, rows: int) -> float:
    """Seconds by which a batch moved event time on; one without rows says that the stream has been read to its end."""
    if before is None or before.latest is None or latest is None or not rows:
        return inf
    return (latest - before.latest) / 1e6


def _later(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _add(before: Mapping[str, int], more: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = Counter(dict(before))
    for counts in more:
        total.update(counts)
    return dict(total)


def _metrics(
    record: BatchRecord, before: BatchRecord | None, partials: int, seconds: float, **measured: Any
) -> BatchMetrics:
    old_answers, old_late, old_rows = (
        (0, 0, 0) if before is None else (sum(before.answers.values()), sum(before.late.values()), before.rows)
    )
    return BatchMetrics(
        batch=record.batch,
        rows=record.rows - old_rows,
        partials=partials,
        answers=sum(record.answers.values()) - old_answers,
        late=sum(record.late.values()) - old_late,
        state_bytes=record.state_bytes,
        watermark=record.watermark,
        latest=record.latest,
        seconds=seconds,
        **measured,
    )
