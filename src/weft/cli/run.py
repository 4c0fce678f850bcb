"""`weft run`: queries from a file, answered over a stream until it ends or is stopped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, cast

import typer

from weft.cli.progress import Metrics, Progress
from weft.cli.queries import EventTime, LatencyOption, QueryFile, Strategy, Technique, read_queries
from weft.cli.stream import (
    AsJson,
    BadSinkOption,
    Buckets,
    CheckpointFolder,
    FilesABatch,
    ForSeconds,
    IdleTimeout,
    Lateness,
    LateOption,
    LateSink,
    MaxSkew,
    Retain,
    RowsABatch,
    Schema,
    Sink,
    Source,
    SynopsisLimit,
    Trigger,
    Watermark,
    weave_stream,
)

if TYPE_CHECKING:
    from weft.spark import Run

LOOK_SECONDS = 0.5
"""How often a run is looked at for the progress line."""


def run(
    file: QueryFile,
    source: Source,
    sink: Sink,
    checkpoint: CheckpointFolder,
    event_time: EventTime = "ts",
    watermark: Watermark = "10 seconds",
    drain: Annotated[bool, typer.Option("--drain", help="Read what is there, answer every window, end.")] = False,
    schema: Schema = None,
    files_a_batch: FilesABatch = None,
    rows_a_batch: RowsABatch = None,
    bad_sink: BadSinkOption = None,
    trigger: Trigger = "1 second",
    late: LateOption = "drop",
    lateness: Lateness = None,
    late_sink: LateSink = None,
    retain: Retain = None,
    buckets: Buckets = None,
    max_skew: MaxSkew = None,
    idle_timeout: IdleTimeout = None,
    strategy: Strategy = "tri_weave",
    technique: Technique = "auto",
    latency: LatencyOption = "batch",
    synopsis_limit: SynopsisLimit = None,
    as_json: AsJson = False,
    seconds: ForSeconds = None,
) -> None:
    """Answer the queries over a stream, until stopped."""
    workload = read_queries(file, event_time)
    job = weave_stream(
        workload,
        source,
        sink,
        event_time=event_time,
        watermark=watermark,
        schema=schema,
        files_a_batch=files_a_batch,
        rows_a_batch=rows_a_batch,
        bad_sink=bad_sink,
        late=late,
        lateness=lateness,
        retain=retain,
        buckets=buckets,
        max_skew=max_skew,
        idle_timeout=idle_timeout,
        strategy=strategy,
        technique=technique,
        latency=latency,
        synopsis_limit=synopsis_limit,
    )
    started = job.start(
        sink=sink, checkpoint=checkpoint, trigger=trigger, available_now=drain, late_sink=late_sink, bad_sink=bad_sink
    )
    with Progress(as_json=as_json) as progress:
        watch(started, progress, seconds)
        if drain:
            started.drain()
            show(started, progress)


def watch(run: Run, progress: Progress, seconds: float | None) -> None:
    """Show the run until it ends, or stop it after `seconds` or at Ctrl-C."""
    begun = time.monotonic()
    try:
        while not run.wait(LOOK_SECONDS):
            show(run, progress)
            if seconds is not None and time.monotonic() - begun >= seconds:
                run.stop()
                break
    except KeyboardInterrupt:
        run.stop()
    show(run, progress)


def show(run: Run, progress: Progress) -> None:
    metrics = run.metrics()
    if metrics["batch"] is not None:
        progress.update(cast(Metrics, metrics))
