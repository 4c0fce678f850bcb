"""The options of every command that runs a stream."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, cast, get_type_hints

import typer

from weft.cli.query_options import EventTime, LatencyOption, QueryFile, Strategy, Technique
from weft.model import Workload
from weft.optimizer.choose_techniques import known_latency

if TYPE_CHECKING:
    from weft.spark import Job, Run
    from weft.spark.options import Late

P = ParamSpec("P")

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
Sink = Annotated[
    str,
    typer.Option(
        metavar="SINK", help="parquet:DIR, kafka:HOST:PORT/TOPIC, postgresql://HOST/DATABASE, console or noop."
    ),
]
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


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a command is told of its queries, their stream and where answers go, in the order of the help."""

    file: QueryFile
    source: Source
    sink: Sink
    checkpoint: CheckpointFolder
    event_time: EventTime = "ts"
    watermark: Watermark = "10 seconds"
    schema: Schema = None
    files_a_batch: FilesABatch = None
    rows_a_batch: RowsABatch = None
    bad_sink: BadSinkOption = None
    trigger: Trigger = "1 second"
    late: LateOption = "drop"
    lateness: Lateness = None
    late_sink: LateSink = None
    retain: Retain = None
    buckets: Buckets = None
    max_skew: MaxSkew = None
    idle_timeout: IdleTimeout = None
    strategy: Strategy = "tri_weave"
    technique: Technique = "auto"
    latency: LatencyOption = "batch"
    synopsis_limit: SynopsisLimit = None

    def weave(self, workload: Workload) -> Job:
        """The queries woven over the source that the options name."""
        from weft.spark import connectors, local_session, open_source, weave

        stream = open_source(
            local_session(connectors(self.source, self.sink)),
            self.source,
            schema=self.schema,
            files_a_batch=self.files_a_batch,
            rows_a_batch=self.rows_a_batch,
            event_time=self.event_time,
            bad="stop" if self.bad_sink is None else "aside",
        )
        return weave(
            stream,
            workload,
            event_time=self.event_time,
            watermark=self.watermark,
            late=cast("Late", self.late),
            lateness=self.lateness,
            retain=self.retain,
            buckets=self.buckets,
            max_skew=self.max_skew,
            idle_timeout=self.idle_timeout,
            strategy=self.strategy,
            technique=self.technique,
            latency=known_latency(self.latency),
            synopsis_limit=self.synopsis_limit,
        )

    def start(self, job: Job, **more: Any) -> Run:
        """The job begun, with what else the command has to say to it."""
        return job.start(
            sink=self.sink,
            checkpoint=self.checkpoint,
            trigger=self.trigger,
            late_sink=self.late_sink,
            bad_sink=self.bad_sink,
            **more,
        )


def takes_stream(command: Callable[Concatenate[StreamOptions, P], None]) -> Callable[..., None]:
    """A command that has all of `StreamOptions` before its own options; Typer reads them from its signature."""

    def run(**given: Any) -> None:
        stream = StreamOptions(**{field.name: given.pop(field.name) for field in fields(StreamOptions)})
        command(stream, **given)  # type: ignore[call-arg]

    hints = get_type_hints(StreamOptions, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(StreamOptions)
    ]
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*shared, *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own)]
    )
    run.__doc__ = command.__doc__
    return run
