"""Partials to answers: each bucket advances its state in an executor, writes its answers, and reports."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from weft.aggregates import learn
from weft.engine import Layout, State, Step, advance, to_table
from weft.spark.checkpoint import Checkpoint, Segment
from weft.spark.memory import keep_freed_memory
from weft.spark.sink import BucketSink, decoded, serialise
from weft.spark.sub_aggregate import LATEST

REPORT = "bucket int, query string, payload binary"
"""A row with the bucket's own report as JSON (query NULL), and a row for each query whose answers the driver takes."""


@dataclass(frozen=True, slots=True)
class BucketTask:
    """Everything a bucket needs for one batch; `sink` is None where the driver takes the answers."""

    layout: Layout
    batch: int
    before: int | None
    """The watermark that the state has reached; None: no batch yet."""
    until: int
    segments: dict[str, tuple[Segment, ...]]
    checkpoint: Checkpoint | None
    sink: BucketSink | None
    epoch: str = ""
    """Changes when a batch that some buckets have run is run anew: what workers remember from before is of no use."""
    tapped: int = 0
    """Rows of each query's answers that the driver gets beside the sink."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        bucket = context.partitionId()
        clock = _Clock()
        keep_freed_memory()
        learn(self.layout.users)
        received = list(batches)
        clock.lap("receive")
        segments = self.segments.get(str(bucket), ())
        state = self._state(bucket, segments)
        clock.lap("load")
        partials = pa.Table.from_batches(received) if received else None
        step = advance(state, partials, self.until, self.layout, self.batch)
        clock.lap("advance")
        if step.failed:  # the batch is run again without them
            yield _report(bucket, None, json.dumps({"failed": step.failed}).encode())
            return
        if self.sink is not None:
            self.sink.write(self.batch, bucket, step.answers)
        clock.lap("sink")
        segments, written = self._keep(bucket, segments, step)
        clock.lap("state")
        report = {
            "segments": [asdict(s) for s in segments],
            "state_bytes": written,
            "answers": {name: table.num_rows for name, table in step.answers.items()},
            "late": dict(step.late),
            "matched": dict(step.matched),
            "trees": {number: [kept.slice_count(), len(kept)] for number, kept in step.state.trees.items()},
            "synopses": step.synopses,
            "scans": dict(step.scans),
            "refreshes": dict(step.refreshes),
            "seconds": clock.laps,
            "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        yield _report(bucket, None, json.dumps(report).encode())
        if self.sink is None or self.tapped:
            schemas = {q.name: q.schema for q in self.layout.queries}
            for name, whole in step.answers.items():
                table = whole if self.sink is None else whole.slice(0, self.tapped)
                for start in range(0, table.num_rows, MAX_PAYLOAD_ROWS):
                    part = decoded(table.slice(start, MAX_PAYLOAD_ROWS), schemas[name])
                    yield _report(bucket, name, serialise(part))

    def _state(self, bucket: int, segments: tuple[Segment, ...]) -> State:
        """The state before this batch: what this worker remembers of it, completed from the segments."""
        if self.checkpoint is None:
            return State(self.before)
        epoch, known, state = _REMEMBERED.pop((self.checkpoint.store.uri, bucket), ("", -1, State()))
        if epoch != self.epoch or known >= self.batch or any(s.first <= known < s.last for s in segments):
            known, state = -1, State()
        return self.checkpoint.load(self.layout, segments, self.before, state, known)

    def _keep(self, bucket: int, segments: tuple[Segment, ...], step: Step) -> tuple[tuple[Segment, ...], int]:
        if self.checkpoint is None:
            return (), 0
        grouping = {tree.number: tree.grouping.number for tree in self.layout.trees}
        tables = {n: to_table(added, step.groups[grouping[n]]) for n, added in step.added.items() if len(added)}
        grown = self.checkpoint.grow(bucket, self.batch, segments, tables, self.layout.horizons(self.until))
        _REMEMBERED[(self.checkpoint.store.uri, bucket)] = (self.epoch, self.batch, step.state)
        return grown


_REMEMBERED: dict[tuple[str, int], tuple[str, int, State]] = {}
"""The newest state of each bucket that this worker has seen, with its epoch and batch; rebuilt where it is missing."""

MAX_PAYLOAD_ROWS = 1_000_000
"""Rows in one message to the driver: a message must stay below 2 GiB."""


def final_aggregate(partials: DataFrame, task: BucketTask) -> list[Any]:
    """partials  (bucket, feed, slice, words..., keys..., latest, components...), a partition for each bucket
    reports   (bucket, query, payload), a job for all buckets; a bucket without partials is called too
    """
    reports: list[Any] = partials.drop("bucket", LATEST).mapInArrow(task.run, REPORT).collect()
    return reports


def _report(bucket: int, query: str | None, payload: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([bucket], pa.int32()), pa.array([query], pa.string()), pa.array([payload], pa.binary())],
        names=["bucket", "query", "payload"],
    )


class _Clock:
    """Where a bucket's time goes."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now
