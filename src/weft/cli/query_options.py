"""Query files and the options that every command which reads them has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from weft.model import WeftError, Workload
from weft.optimizer import STRATEGIES
from weft.sql import parse

QueryFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Statements separated by `;`, named by CREATE VIEW name AS, else q1, q2, ...; - reads standard input.",
    ),
]
EventTime = Annotated[str, typer.Option(metavar="COLUMN", help="The event-time column of the windows.")]
Strategy = Annotated[
    str, typer.Option(metavar="NAME", help=f"How queries are grouped into trees: {', '.join(STRATEGIES)}.")
]
Technique = Annotated[str, typer.Option(metavar="NAME", help="How windows are built from slices.")]
LatencyOption = Annotated[
    str,
    typer.Option(
        "--latency",
        metavar="batch|bounded",
        help="batch: highest throughput; bounded: a constant number of operations per slide.",
    ),
]


class UnreadableQueries(WeftError):
    """A query file that cannot be read, is no text, or has no query in it."""


def read_text(file: Path) -> str:
    try:
        return (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).decode("utf-8-sig")
    except OSError as error:
        raise UnreadableQueries(f"{file}: {error.strerror}; name a file of queries, or - for standard input") from error
    except UnicodeDecodeError as error:
        raise UnreadableQueries(f"{file}: not UTF-8 at byte {error.start}; save the file as UTF-8") from None


def read_queries(file: Path, event_time: str) -> Workload:
    queries = Workload(parse(read_text(file), event_time=event_time))
    if not queries:
        raise UnreadableQueries(f"{file}: no query in it; write at least one SELECT with a window")
    return queries
