"""`weft run`: queries from a file, answered over a stream until it ends or is stopped."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from weft.cli.progress import Metrics, Progress
from weft.cli.queries import EventTime, LatencyOption, QueryFile, Strategy, Technique, read_queries
from weft.optimizer.serving import known_latency

if TYPE_CHECKING:
    from weft.spark import Run
    from weft.spark.times import Late

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

LOOK_SECONDS = 0.5
"""How often a run is looked at for the progress line."""


def parse_seconds(text: str | float) -> float:
    """A length of wall-clock time. An option's default, a number already, comes through here as well.

    >>> parse_seconds("30s"), parse_seconds("1.5 m"), parse_seconds("20")
    (30.0, 90.0, 20.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)?\s*", str(text))
    if match is None or float(match[1]) == 0:
        raise typer.BadParameter(f"{text!r} is not a length of time, such as 30s, 5m or 1h")
    return float(match[1]) * UNITS[match[2] or "s"]


def run(
    file: QueryFile,
    source: Annotated[
        str, typer.Option(metavar="SRC", help="parquet:DIR, json:DIR, csv:DIR, orc:DIR, or rate:ROWS_A_SECOND.")
    ],
    sink: Annotated[str, typer.Option(metavar="SINK", help="parquet:DIR, console or noop.")],
    checkpoint: Annotated[Path, typer.Option(metavar="DIR", help="Where state and batch records are kept.")],
    event_time: EventTime = "ts",
    watermark: Annotated[str, typer.Option(metavar="INTERVAL", help="How late a row may be.")] = "10 seconds",
    drain: Annotated[bool, typer.Option("--drain", help="Read what is there, answer every window, end.")] = False,
    schema: Annotated[str | None, typer.Option(metavar="DDL", help="Columns of the files, if not in them.")] = None,
    files_a_batch: Annotated[int | None, typer.Option(metavar="N", help="Files that one batch reads at most.")] = None,
    trigger: Annotated[str, typer.Option(metavar="INTERVAL", help="Between the starts of two batches.")] = "1 second",
    late: Annotated[
        str, typer.Option(metavar="drop|update|side", help="Rows that are later: dropped, put in, or written aside.")
    ] = "drop",
    lateness: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="With --late update: how long answers are sent again.")
    ] = None,
    late_sink: Annotated[
        str | None, typer.Option(metavar="SINK", help="With --late side: parquet:DIR for those rows.")
    ] = None,
    retain: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Keep the slices of windows that ended so long ago.")
    ] = None,
    max_skew: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Rows further ahead of the clock do not move the watermark.")
    ] = None,
    idle_timeout: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Without rows for so long, the watermark follows the clock.")
    ] = None,
    strategy: Strategy = "tri_weave",
    technique: Technique = "auto",
    latency: LatencyOption = "batch",
    as_json: Annotated[bool, typer.Option("--json", help="Print progress as JSON, an object a line.")] = False,
    seconds: Annotated[
        float | None, typer.Option("--for", parser=parse_seconds, metavar="TIME", help="Stop after, such as 30s.")
    ] = None,
) -> None:
    """Answer the queries over a stream, until stopped."""
    workload = read_queries(file, event_time)
    from weft.spark import local_session, open_source, weave

    stream = open_source(local_session(), source, schema=schema, files_a_batch=files_a_batch)
    job = weave(
        stream,
        workload,
        event_time=event_time,
        watermark=watermark,
        late=cast("Late", late),
        lateness=lateness,
        retain=retain,
        max_skew=max_skew,
        idle_timeout=idle_timeout,
        strategy=strategy,
        technique=technique,
        latency=known_latency(latency),
    )
    started = job.start(
        sink=sink, checkpoint=checkpoint, trigger=trigger, available_now=drain, late_sink=late_sink
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
