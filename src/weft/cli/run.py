"""`weft run`: the options. Not part of the command yet: `app.py` registers it once the pipeline can be started."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.queries import EventTime, QueryFile, Strategy

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Format(StrEnum):
    """How the files of a source folder are written."""

    json = "json"
    parquet = "parquet"
    csv = "csv"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Everything that a run is told, besides its queries."""

    source: str
    sink: str
    checkpoint: str
    event_time: str
    watermark: str
    drain: bool
    format: Format | None
    schema: str | None
    trigger: str
    strategy: str | None
    seconds: float | None
    """How long to run; None until stopped, or until a bounded source ends."""


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
    source: Annotated[str, typer.Option(metavar="SRC", help="A folder of files, or rate.")],
    sink: Annotated[str, typer.Option(metavar="SINK", help="parquet:DIR, memory, console or noop.")],
    checkpoint: Annotated[Path, typer.Option(metavar="DIR", help="Where state and batch records are kept.")],
    event_time: EventTime = "ts",
    watermark: Annotated[str, typer.Option(metavar="INTERVAL", help="How late a row may be.")] = "10 seconds",
    drain: Annotated[bool, typer.Option("--drain", help="At the end of the input, answer what is open.")] = False,
    format: Annotated[Format | None, typer.Option(help="Of the source's files; else by their names.")] = None,
    schema: Annotated[str | None, typer.Option(metavar="DDL", help="Columns of json or csv files.")] = None,
    trigger: Annotated[str, typer.Option(metavar="INTERVAL", help="Between the starts of two batches.")] = "1 second",
    strategy: Strategy = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print progress as JSON, an object a batch.")] = False,
    seconds: Annotated[
        float | None, typer.Option("--for", parser=parse_seconds, metavar="TIME", help="Stop after, such as 30s.")
    ] = None,
) -> None:
    """Answer the queries over a stream, until stopped."""
    raise NotImplementedError
