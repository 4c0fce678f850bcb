"""Where a run continues: at the last batch of its checkpoint, repaired if the run before was killed."""

from __future__ import annotations

import logging
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace

from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.checkpoint.checkpoint import Checkpoint, JobSettings
from weft.spark.checkpoint.spark_offsets import SparkOffsets
from weft.spark.execution.micro_batch import MicroBatchRunner
from weft.spark.execution.rescale import rescale
from weft.spark.execution.woven import WovenQueries
from weft.spark.logs import log_event
from weft.spark.options import TimeOptions
from weft.spark.queries.registry import QueryRegistry
from weft.spark.sinks.base import AnswerListener, JobSink, RepeatedSink, Sink
from weft.spark.sinks.side_output import SideOutput

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Start:
    checkpoint: Checkpoint
    offsets: SparkOffsets
    record: BatchRecord
    """Of the last committed batch."""
    registry: QueryRegistry
    runner: MicroBatchRunner
    """Of the batch that follows."""
    placed: bool
    """Whether there is a bucket map; if not, it is made from the rows of the first batch."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where a run sends answers and diverted rows."""

    sink: Sink
    late_sink: SideOutput | None = None
    listener: AnswerListener | None = None
    corrupt_sink: SideOutput | None = None


def start(
    job: WovenQueries, checkpoint: Checkpoint, outputs: Outputs, interval: float | None, undo: ExitStack
) -> Start:
    """Prepare the next batch: its plan is written, the sink is open for its queries, and backfills continue. No batch
    runs yet. Callbacks on `undo` end what was started.
    """
    sink = outputs.sink
    record, offsets = _repaired(checkpoint, job.planner.options.times)
    bucket_map, bucket_map_file = checkpoint.bucket_map(record)
    buckets = job.options.buckets or (job.cores if bucket_map is None else bucket_map.buckets)
    planner = replace(job.planner, buckets=buckets)
    statistics = job.collector.statistics
    bound = job.physical if job.planner.buckets == buckets else planner.bind(job.plan, statistics)
    registry = QueryRegistry(planner, bound, statistics, checkpoint.files, sink.open, buckets)
    undo.callback(registry.stop)
    following = record.batch + 1
    physical = registry.take_up(following, record)
    rescaled = bucket_map is not None and bucket_map.buckets != buckets
    if isinstance(sink, RepeatedSink) and (physical.pinned_buckets or rescaled):
        sink.undo(following)
    if rescaled:
        bucket_map, bucket_map_file = None, ""
        if not record.is_initial:
            record = rescale(job.stream.sparkSession, checkpoint, record, physical, buckets)
            bucket_map, bucket_map_file = checkpoint.bucket_map(record)
    runner = MicroBatchRunner(
        physical,
        bucket_map or BucketMap(buckets),
        planner.options.times,
        sink,
        checkpoint,
        outputs.late_sink,
        outputs.listener,
        outputs.corrupt_sink,
        planner.options.synopsis_limit,
        epoch=uuid.uuid4().hex,
        interval=interval,
        bucket_map_file=bucket_map_file,
    )
    if isinstance(sink, JobSink):
        sink.begin(checkpoint.identity())
    sink.open(physical.layout)
    return Start(checkpoint, offsets, record, registry, runner, placed=bucket_map is not None)


def _repaired(checkpoint: Checkpoint, times: TimeOptions) -> tuple[BatchRecord, SparkOffsets]:
    """The last record, after the files that a killed run left behind it were removed."""
    checkpoint.agree(JobSettings(times.delay, times.allowed_lateness, times.retention))
    record = checkpoint.batches.newest()
    checkpoint.verify(record)
    offsets = SparkOffsets(checkpoint.files)
    if record.is_initial:
        log_event(logger, "run starts with an empty checkpoint", checkpoint=checkpoint.files.uri)
    else:
        log_event(logger, "run continues a checkpoint", checkpoint=checkpoint.files.uri, batch=record.batch)
    for name in (*checkpoint.repair(record), *offsets.repair(record.spark_batch)):
        log_event(logger, "removed a file that a killed run left behind", level=logging.WARNING, file=name)
    return record, offsets
