"""Where a run goes on from: what its checkpoint says, mended where the last one was killed."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft.spark.checkpoint.batch_log import CHECKPOINT_VERSION, BatchRecord, Checkpoint
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.checkpoint.spark_offsets import SparkOffsets
from weft.spark.execution.micro_batch import MicroBatchRunner
from weft.spark.execution.rescale import move
from weft.spark.options import TimeOptions
from weft.spark.queries.registry import QueryRegistry
from weft.spark.sinks.base import AnswerListener, JobSink, RepeatedSink, Sink
from weft.spark.sinks.side_output import SideOutput

if TYPE_CHECKING:
    from weft.spark.job import Job


@dataclass(frozen=True, slots=True)
class Start:
    checkpoint: Checkpoint
    notes: SparkOffsets
    record: BatchRecord | None
    """Of the last batch that counts."""
    live: QueryRegistry
    pipeline: MicroBatchRunner
    """Of the batch that follows."""
    placed: bool
    """Whether it is known which bucket each group is in; if not, the rows of the first batch say."""


def start(
    job: Job,
    checkpoint: Checkpoint,
    sink: Sink,
    late_sink: SideOutput | None,
    tap: AnswerListener | None,
    bad_sink: SideOutput | None,
    interval: float | None,
    undo: ExitStack,
) -> Start:
    """No batch runs yet, but the plan of the next is written down, the sink knows what will come, and pasts are read
    that queries wait for. `undo` is told how to end that.
    """
    times = job.planner.options.times
    record, notes = _mended(checkpoint, times)
    places, places_file = checkpoint.places(record)
    buckets = job.options.buckets or (job.cores if places is None else places.buckets)
    planner = replace(job.planner, buckets=buckets)
    bound = job.physical if job.planner.buckets == buckets else planner.bind(job.plan, ())
    live = QueryRegistry(planner, job.plan, bound, checkpoint.store, sink.open, buckets)
    undo.callback(live.stop)
    following = 0 if record is None else record.batch + 1
    physical = live.take_up(following, record)
    moving = places is not None and places.buckets != buckets
    if isinstance(sink, RepeatedSink) and (physical.homes or moving):
        sink.undo(following)
    if moving:
        places, places_file = None, ""
        if record is not None:
            record = move(job.stream.sparkSession, checkpoint, record, physical, buckets)
            places, places_file = checkpoint.places(record)
    limit, epoch = planner.options.synopsis_limit, uuid.uuid4().hex
    pipeline = MicroBatchRunner(
        physical, places or BucketMap(buckets), times, sink, checkpoint, late_sink, tap, bad_sink, limit, epoch,
        interval, places_file,
    )  # fmt: skip
    if isinstance(sink, JobSink):
        sink.begin(checkpoint.identity())
    sink.open(physical.layout)
    return Start(checkpoint, notes, record, live, pipeline, placed=places is not None)


def _mended(checkpoint: Checkpoint, times: TimeOptions) -> tuple[BatchRecord | None, SparkOffsets]:
    """The last record, without what was left behind after it."""
    checkpoint.agree({"version": CHECKPOINT_VERSION, **times.agreed()})
    record = checkpoint.newest()
    checkpoint.verify(record)
    checkpoint.repair(record)
    notes = SparkOffsets(checkpoint.store)
    notes.mend(-1 if record is None else record.batch - record.apart)
    return record, notes
