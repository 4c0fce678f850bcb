"""Another number of buckets: one Spark job between two runs divides the state of each bucket among the new ones.

A group moves with all of its partials, in the order of their arrival, so answers do not change.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from weft.aggregates import learn
from weft.engine import Layout, State, to_table
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.bucket_map import BucketMap, group_hash, slot
from weft.spark.checkpoint.checkpoint import Checkpoint
from weft.spark.checkpoint.state_store import Segment, StateStore
from weft.spark.logs import log_event
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.session import batch_settings

logger = logging.getLogger(__name__)

REPORT = "bucket int, segment string"


@dataclass(frozen=True, slots=True)
class _OldState:
    """The state of a record, read a bucket at a time in executors."""

    layout: Layout
    state_store: StateStore
    batch: int
    segments: Mapping[int, tuple[Segment, ...]]
    columns: Mapping[int, tuple[str, ...]]
    """The physical columns of each grouping's keys."""
    schema: pa.Schema
    """Of `groups`."""

    def groups(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """(old) -> (old, grouping, number, weight, keys...): each group of a bucket, and how much is kept of it."""
        for old in [int(number) for batch in batches for number in batch.column("old").to_pylist()]:
            state = self._read(old)
            for grouping, columns in self.columns.items():
                index = state.groups.get(grouping)
                if index is None:
                    continue
                numbers = np.arange(len(index), dtype=np.int32)
                trees = (t.number for t in self.layout.trees if t.grouping.number == grouping)
                kept = [state.trees[number].groups for number in trees if number in state.trees]
                weights = np.bincount(np.concatenate(kept), minlength=len(index))
                arrays = {
                    "old": pa.array(np.full_like(numbers, old)),
                    "grouping": pa.array(np.full_like(numbers, grouping)),
                    "number": pa.array(numbers),
                    "weight": pa.array(weights, pa.int64()),
                    **dict(zip(columns, index.columns, strict=True)),
                }
                yield pa.RecordBatch.from_arrays(
                    [arrays.get(field.name, pa.nulls(len(index), field.type)) for field in self.schema],
                    schema=self.schema,
                )

    def divide(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """(old, grouping, number, bucket) -> (bucket, segment), one for each bucket that gets some of the old one."""
        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        groups = pa.Table.from_batches(received)
        state = self._read(int(groups.column("old")[0].as_py()))
        bucket_of = {}
        for grouping in self.columns:
            of_grouping = groups.filter(pc.equal(groups.column("grouping"), grouping))
            bucket_of[grouping] = np.empty(of_grouping.num_rows, np.int32)
            bucket_of[grouping][of_grouping.column("number").to_numpy()] = of_grouping.column("bucket").to_numpy()
        for bucket in sorted(set(groups.column("bucket").to_pylist())):
            tables = {}
            for tree in self.layout.trees:
                kept = state.trees.get(tree.number)
                if kept is not None:
                    here = kept.where(bucket_of[tree.grouping.number][kept.groups] == bucket)
                    tables[tree.number] = to_table(here, state.groups[tree.grouping.number])
            segment = self.state_store.write(bucket, self.batch, tables)
            if segment is not None:
                yield pa.RecordBatch.from_arrays(
                    [pa.array([bucket], pa.int32()), pa.array([json.dumps(segment.to_json())])], ["bucket", "segment"]
                )

    def _read(self, old: int) -> State:
        learn(self.layout.kinds)
        segments = self.segments.get(old, ())
        return State().with_tables(self.layout, [self.state_store.read(s) for s in segments])


def rescale(
    spark: SparkSession, checkpoint: Checkpoint, record: BatchRecord, physical: PhysicalPlan, buckets: int
) -> BatchRecord:
    """The record with its state in `buckets` buckets, assigned by the size of each slot; it is committed.

    If the run is killed before the commit, the old state still counts.
    """
    keyed = {feed.layout.grouping.number: feed for feed in physical.feeds}
    trees = tuple(tree for tree in physical.layout.trees if tree.grouping.number in keyed)
    types = {"old": "int", "grouping": "int", "number": "int", "weight": "bigint", **physical.columns.key_types}
    schema = pa.schema([(name, pa.int32()) for name in ("old", "grouping", "number")] + [("weight", pa.int64())])
    for feed in keyed.values():
        for name, field in zip(feed.layout.key_columns, feed.layout.grouping.keys, strict=True):
            if name not in schema.names:
                schema = schema.append(pa.field(name, field.type))
    old = _OldState(
        replace(physical.layout, feeds=(), older=trees),
        checkpoint.state,
        record.batch,
        record.segments,
        {number: feed.layout.key_columns for number, feed in keyed.items()},
        schema,
    )
    branches = " ".join(f"WHEN {number} THEN {group_hash(list(feed.keys))}" for number, feed in keyed.items())
    hashed = f"CASE grouping {branches} END"
    count = max(1, len(record.segments))
    with batch_settings(spark, buckets):
        numbers = spark.range(0, count, 1, count).selectExpr("CAST(id AS INT) AS old")
        groups = numbers.mapInArrow(old.groups, ", ".join(f"{name} {types[name]}" for name in schema.names))
        placed = groups.where(f"grouping IN ({', '.join(str(n) for n, feed in keyed.items() if feed.keys) or -1})")
        weights = placed.selectExpr(f"{slot(hashed)} AS slot", "weight").groupBy("slot").sum("weight").collect()
        bucket_map = BucketMap.weighed(buckets, {row[0]: float(row[1]) for row in weights})
        assigned = groups.selectExpr("old", "grouping", "number", f"{bucket_map.bucket(hashed)} AS bucket")
        written = assigned.mapInArrow(old.divide, REPORT).collect()
    segments: dict[int, list[Segment]] = {bucket: [] for bucket in range(buckets)}
    for row in written:
        segments[row["bucket"]].append(Segment.from_json(json.loads(row["segment"])))
    name = checkpoint.write_bucket_map(bucket_map, f"places/{uuid.uuid4().hex[:8]}.json")
    moved = replace(record, segments={bucket: tuple(named) for bucket, named in segments.items()}, bucket_map_file=name)
    moved, _ = checkpoint.batches.commit(moved, BatchRecord.initial())  # it names every segment
    checkpoint.repair(moved)
    log_event(logger, "state is divided among other buckets", batch=record.batch, before=count, buckets=buckets)
    return moved
