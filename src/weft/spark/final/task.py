"""Partials to answers: each bucket advances its state in an executor, writes its answers, and reports."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame

from weft.aggregates import learn
from weft.engine import FOREVER, Layout, State, Step, advance, to_table
from weft.engine.partial.from_rows import RowFeed, RowGrouping
from weft.spark.checkpoint.state_store import Segment, StateStore
from weft.spark.final.report import (
    MAX_PAYLOAD_ROWS,
    SCHEMA,
    BucketReport,
    KeptTreeState,
    Reports,
    answers_row,
    report_row,
)
from weft.spark.physical.columns import LATEST
from weft.spark.sinks.base import BucketSink
from weft.spark.worker import freeze_what_stays, keep_freed_memory


@dataclass(frozen=True, slots=True)
class BucketTask:
    """Everything a bucket needs for one batch; `sink` is None if the driver writes the answers."""

    layout: Layout
    batch: int
    before: int | None
    """The watermark that the state has reached; None: no batch yet."""
    until: int
    segments: Mapping[int, tuple[Segment, ...]]
    """The state before the batch, by bucket."""
    state_store: StateStore | None
    """None: the state is not kept."""
    sink: BucketSink | None
    epoch: str = ""
    """Changes when a batch that some buckets have run is run again: then the state that workers remember is invalid."""
    listener_rows: int = 0
    """Rows per query that the driver receives beside the sink, for a listener."""
    row_feeds: tuple[RowFeed, ...] = ()
    """Feeds that arrive as rows, beside the partials of the others."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        bucket = context.partitionId()
        clock = _Clock()
        keep_freed_memory()
        learn(self.layout.kinds)
        received = list(batches)
        clock.lap("receive")
        here = self.layout.at(bucket)
        state = self._state(bucket, here)
        clock.lap("load")
        partials, rows = self._partials_and_rows(pa.Table.from_batches(received) if received else None, here)
        received.clear()
        bounded = self.state_store is None and self.before is None and self.until == FOREVER
        step = advance(state, partials, self.until, here, self.batch, bounded, rows)
        clock.lap("advance")
        if step.failed:  # the batch is run again without them
            yield report_row(BucketReport(bucket, failed=step.failed))
            return
        if self.sink is not None:
            self.sink.write(self.batch, bucket, step.answers)
        clock.lap("sink")
        segments, written = self._keep(bucket, here, step)
        clock.lap("state")
        yield report_row(_report(bucket, segments, written, step, clock.laps))
        yield from self._to_driver(bucket, here, step.answers)
        freeze_what_stays()

    def _to_driver(self, bucket: int, here: Layout, answers: Mapping[str, pa.Table]) -> Iterator[pa.RecordBatch]:
        """All answers for a sink of the driver, or the first of each query for a listener."""
        if self.sink is not None and not self.listener_rows:
            return
        schemas = {query.name: query.schema for query in here.queries}
        for name, table in answers.items():
            sent = table if self.sink is None else table.slice(0, self.listener_rows)
            for start in range(0, sent.num_rows, MAX_PAYLOAD_ROWS):
                # Keys may be dictionaries, which only save space on the way: the answer has its query's own types.
                yield answers_row(bucket, name, sent.slice(start, MAX_PAYLOAD_ROWS).cast(schemas[name]))

    def _partials_and_rows(self, received: pa.Table | None, here: Layout) -> tuple[pa.Table | None, RowGrouping | None]:
        """The received partials, and the received rows of the row exchange, which belong to several feeds."""
        if received is None or not self.row_feeds:
            return received, None
        if "feed" not in received.column_names:
            return None, RowGrouping(received, self.row_feeds, here.feeds)
        rows = pc.is_null(received.column("feed"))
        return received.filter(pc.invert(rows)), RowGrouping(received.filter(rows), self.row_feeds, here.feeds)

    def _state(self, bucket: int, here: Layout) -> State:
        """The state before this batch: what this worker remembers of it, completed from the segments.

        Trees without keys are read from the segments of all buckets: they may have been pinned to another bucket
        before, or have readers in several.
        """
        if self.state_store is None:
            return State(self.before)
        ungrouped = {tree.number for tree in here.trees if not tree.grouping.keys}
        own = {tree.number for tree in here.trees}
        needed = [
            (segment, trees)
            for other, segments in self.segments.items()
            for segment in segments
            if (trees := own if other == bucket else ungrouped) & segment.parts.keys()
        ]
        memory = _REMEMBERED.pop((self.state_store.files.uri, bucket), _Memory())
        if (
            memory.epoch != self.epoch
            or memory.batch >= self.batch
            or any(s.first <= memory.batch < s.last for s, _ in needed)
        ):
            memory = _Memory()
        state, unread = memory.state, [(s, trees) for s, trees in needed if s.last > memory.batch]
        if memory.batch >= 0 and memory.ungrouped_readers != _ungrouped_readers(here):
            # Other queries read these trees now, and may need slices that were of no use before.
            state = replace(state, trees={n: kept for n, kept in state.trees.items() if n in own - ungrouped})
            unread = [(s, trees if s.last > memory.batch else ungrouped) for s, trees in needed]
        unread.sort(key=lambda segment_and_trees: segment_and_trees[0].last)
        return self.state_store.load(here, unread, self.before, state)

    def _keep(self, bucket: int, here: Layout, step: Step) -> tuple[tuple[Segment, ...], int]:
        if self.state_store is None:
            return (), 0
        segments = self.segments.get(bucket, ())
        grouping = {tree.number: tree.grouping.number for tree in self.layout.trees}
        tables = {n: to_table(added, step.groups[grouping[n]]) for n, added in step.added.items() if len(added)}
        grown = self.state_store.grow(bucket, self.batch, segments, tables, self.layout.horizons(self.until))
        memory = _Memory(self.epoch, self.batch, _ungrouped_readers(here), step.state)
        _REMEMBERED[(self.state_store.files.uri, bucket)] = memory
        return grown


UngroupedReaders = tuple[tuple[Any, ...], ...]


def _ungrouped_readers(here: Layout) -> UngroupedReaders:
    """The queries of this bucket that read trees without keys: what these trees must keep depends on them."""
    return tuple(
        (tree.number, query.name, query.window, query.since, query.older)
        for tree in here.current
        if not tree.grouping.keys
        for query in tree.queries
    )


@dataclass(frozen=True, slots=True)
class _Memory:
    """What a worker remembers of a bucket."""

    epoch: str = ""
    batch: int = -1
    ungrouped_readers: UngroupedReaders = ()
    state: State = field(default_factory=State)


_REMEMBERED: dict[tuple[str, int], _Memory] = {}
"""The newest state of each bucket that this worker had; rebuilt if it is missing."""


def final_aggregate(partials: DataFrame, task: BucketTask) -> Reports:
    """partials  (bucket, feed, slice, words..., keys..., latest, components...), a partition for each bucket
    reports   (bucket, query, payload), one job for all buckets; a bucket without partials is called too
    """
    return Reports.of(partials.drop("bucket", LATEST).mapInArrow(task.run, SCHEMA).collect())


def _report(
    bucket: int, segments: tuple[Segment, ...], written: int, step: Step, laps: Mapping[str, float]
) -> BucketReport:
    return BucketReport(
        bucket=bucket,
        segments=segments,
        state_bytes=written,
        answers={name: table.num_rows for name, table in step.answers.items()},
        late=step.late,
        matched=step.matched,
        trees={number: KeptTreeState(kept.slice_count(), len(kept)) for number, kept in step.state.trees.items()},
        value_bytes=step.synopses,
        scans=step.scans,
        refreshes=step.refreshes,
        seconds=laps,
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
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
