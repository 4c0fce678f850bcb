"""The options of every command that runs a stream."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from weft.model import Workload
from weft.optimizer.serving import known_latency

if TYPE_CHECKING:
    from weft.spark import Job
    from weft.spark.times import Late

BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_seconds(text: str | float) -> float:
    """A length of wall-clock time. An option's default, a number already, comes through here as well.

    >>> parse_seconds("30s"), parse_seconds("1.5 m"), parse_seconds("20")
    (30.0, 90.0, 20.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)?\s*", str(text))
    if match is None or float(match[1]) == 0:
        raise typer.BadParameter(f"{text!r} is not a length of time, such as 30s, 5m or 1h")
    return float(match[1]) * UNITS[match[2] or "s"]


def parse_bytes(text: str | int) -> int:
    """
    >>> parse_bytes("500"), parse_bytes("2 GB"), parse_bytes("1.5MiB")
    (500, 2147483648, 1572864)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", str(text).lower())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a number of bytes, such as 500MB or 20 GB")
    return int(float(match[1]) * BYTES[match[2]])


Source = Annotated[
    str,
    typer.Option(
        metavar="SRC", help="parquet:DIR, json:DIR, csv:DIR, orc:DIR, kafka:HOST:PORT/TOPIC, or rate:ROWS_A_SECOND."
    ),
]
Sink = Annotated[str, typer.Option(metavar="SINK", help="parquet:DIR, kafka:HOST:PORT/TOPIC, console or noop.")]
CheckpointFolder = Annotated[Path, typer.Option(metavar="DIR", help="Where state and batch records are kept.")]
Watermark = Annotated[str, typer.Option(metavar="INTERVAL", help="How late a row may be.")]
Schema = Annotated[
    str | None,
    typer.Option(metavar="DDL", help="Columns of the files or records, if not in them; an .avsc file for Avro."),
]
FilesABatch = Annotated[int | None, typer.Option(metavar="N", help="Files that one batch reads at most.")]
RowsABatch = Annotated[int | None, typer.Option(metavar="N", help="Records that one batch reads of a topic at most.")]
BadSinkOption = Annotated[
    str | None,
    typer.Option(metavar="SINK", help="parquet:DIR for records that cannot be read; without it they stop the job."),
]
Trigger = Annotated[str, typer.Option(metavar="INTERVAL", help="Between the starts of two batches.")]
LateOption = Annotated[
    str, typer.Option(metavar="drop|update|side", help="Rows that are later: dropped, put in, or written aside.")
]
Lateness = Annotated[
    str | None, typer.Option(metavar="INTERVAL", help="With --late update: how long answers are sent again.")
]
LateSink = Annotated[str | None, typer.Option(metavar="SINK", help="With --late side: parquet:DIR for those rows.")]
Retain = Annotated[
    str | None, typer.Option(metavar="INTERVAL", help="Keep the slices of windows that ended so long ago.")
]
Buckets = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Tasks of the final stage; a restart with others moves the state to them."),
]
MaxSkew = Annotated[
    str | None, typer.Option(metavar="INTERVAL", help="Rows further ahead of the clock do not move the watermark.")
]
IdleTimeout = Annotated[
    str | None, typer.Option(metavar="INTERVAL", help="Without rows for so long, the watermark follows the clock.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print progress as JSON, an object a line.")]
ForSeconds = Annotated[
    float | None, typer.Option("--for", parser=parse_seconds, metavar="TIME", help="Stop after, such as 30s.")
]
SynopsisLimit = Annotated[
    int | None,
    typer.Option(
        parser=parse_bytes,
        metavar="BYTES",
        help="Values that exact percentiles and the like may keep, such as 2GB; the job stops rather than pass it.",
    ),
]


def weave_stream(
    workload: Workload,
    source: str,
    sink: str,
    *,
    event_time: str,
    watermark: str,
    schema: str | None,
    files_a_batch: int | None,
    rows_a_batch: int | None,
    bad_sink: str | None,
    late: str,
    lateness: str | None,
    retain: str | None,
    buckets: int | None,
    max_skew: str | None,
    idle_timeout: str | None,
    strategy: str,
    technique: str,
    latency: str,
    synopsis_limit: int | None,
) -> Job:
    """The queries woven over the source that the options name."""
    from weft.spark import connectors, local_session, open_source, weave

    stream = open_source(
        local_session(connectors(source, sink)),
        source,
        schema=schema,
        files_a_batch=files_a_batch,
        rows_a_batch=rows_a_batch,
        event_time=event_time,
        bad="stop" if bad_sink is None else "aside",
    )
    return weave(
        stream,
        workload,
        event_time=event_time,
        watermark=watermark,
        late=cast("Late", late),
        lateness=lateness,
        retain=retain,
        buckets=buckets,
        max_skew=max_skew,
        idle_timeout=idle_timeout,
        strategy=strategy,
        technique=technique,
        latency=known_latency(latency),
        synopsis_limit=synopsis_limit,
    )
