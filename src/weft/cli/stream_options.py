"""The options of every command that runs a stream."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Literal, ParamSpec, get_origin, get_type_hints

import typer

from weft.cli.query_options import QueryFile, flag, job_option
from weft.model import Workload
from weft.spark.options import RENAMED, JobOptions, declarations

if TYPE_CHECKING:
    from weft.spark import Job, Run

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
Schema = Annotated[
    str | None,
    typer.Option(metavar="DDL", help="Columns of the files or records, if not in them; an .avsc file for Avro."),
]
FilesABatch = Annotated[int | None, typer.Option(metavar="N", help="Files that one batch reads at most.")]
RowsABatch = Annotated[int | None, typer.Option(metavar="N", help="Records that one batch reads of a topic at most.")]
CorruptSink = Annotated[
    str | None,
    typer.Option(metavar="SINK", help="parquet:DIR for records that cannot be read; without it they stop the job."),
]
LateSink = Annotated[str | None, typer.Option(metavar="SINK", help="With --late side: parquet:DIR for late rows.")]
Trigger = Annotated[str, typer.Option(metavar="INTERVAL", help="Time between the starts of two batches.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print progress as JSON, one object per line.")]
ForSeconds = Annotated[
    float | None, typer.Option("--for", parser=parse_seconds, metavar="TIME", help="Stop after, such as 30s.")
]
RENAMED_FLAGS: Mapping[str, str] = {**RENAMED, "bad_sink": "corrupt_sink"}
"""Earlier names of options, which still work and are not in the help."""


def command_options() -> JobOptions:
    """The options of a job that a command runs without saying more."""
    differing: dict[str, Any] = {
        name: o.command_default for name, (_, o) in declarations().items() if o.command_default
    }
    return JobOptions(**differing)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a command is told of its queries, their stream and where answers go, in the order of the help."""

    file: QueryFile
    source: Source
    sink: Sink
    checkpoint: CheckpointFolder
    schema: Schema = None
    files_a_batch: FilesABatch = None
    rows_a_batch: RowsABatch = None
    trigger: Trigger = "1 second"
    late_sink: LateSink = None
    corrupt_sink: CorruptSink = None
    options: JobOptions = field(default_factory=command_options)
    """Each is an option of the command, too."""

    def weave(self, workload: Workload) -> Job:
        """The queries woven over the source that the options name."""
        from weft.spark import connectors, local_session, open_source
        from weft.spark.job import plan_job

        stream = open_source(
            local_session(connectors(self.source, self.sink)),
            self.source,
            schema=self.schema,
            files_a_batch=self.files_a_batch,
            rows_a_batch=self.rows_a_batch,
            event_time=self.options.event_time,
            corrupt="stop" if self.corrupt_sink is None else "side",
        )
        return plan_job(stream, workload, self.options)

    def start(self, job: Job, **more: Any) -> Run:
        """The job begun, with what else the command has to say to it."""
        return job.start(
            sink=self.sink,
            checkpoint=self.checkpoint,
            trigger=self.trigger,
            late_sink=self.late_sink,
            corrupt_sink=self.corrupt_sink,
            **more,
        )


def takes_stream(command: Callable[Concatenate[StreamOptions, P], None]) -> Callable[..., None]:
    """A command that has all of `StreamOptions` before its own options; Typer reads them from its signature."""
    stream_fields = [field for field in fields(StreamOptions) if field.name != "options"]

    def run(**arguments: Any) -> None:
        for old, new in RENAMED_FLAGS.items():
            value = arguments.pop(old)
            if value is not None:
                typer.echo(f"{flag(old)} is deprecated; use {flag(new)}", err=True)
                arguments[new] = value
        options = JobOptions(**{name: arguments.pop(name) for name in declarations()})
        own = {field.name: arguments.pop(field.name) for field in stream_fields}
        command(StreamOptions(**own, options=options), **arguments)  # type: ignore[call-arg]

    hints = get_type_hints(StreamOptions, include_extras=True)
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(_parameter(field.name, hints[field.name], field.default) for field in stream_fields),
            *_job_parameters(),
            *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own),
            *(_parameter(old, Annotated[str | None, typer.Option(hidden=True)], None) for old in RENAMED_FLAGS),
        ]
    )
    run.__doc__ = command.__doc__
    return run


def _job_parameters() -> Iterator[inspect.Parameter]:
    defaults = command_options()
    for name, (kind, option) in declarations().items():
        rest: dict[str, Any] = {"parser": parse_bytes} if option.metavar == "BYTES" else {}
        if name == "buckets":
            rest["min"] = 1
        if get_origin(kind) is Literal:  # the options refuse other words themselves, in the sentence that users know
            kind = str
        yield _parameter(name, Annotated[kind, job_option(name, flag(name), **rest)], getattr(defaults, name))


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
