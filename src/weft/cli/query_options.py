"""Query files and the options that every command which reads them has."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import OptionInfo

from weft.model import WeftError, Workload
from weft.spark.options import declarations
from weft.sql import parse

QueryFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Statements separated by `;`, named by CREATE VIEW name AS, else q1, q2, ...; - reads standard input.",
    ),
]


def job_option(name: str, *flags: str, **rest: Any) -> OptionInfo:
    """An option of a command, as `JobOptions` declares it."""
    _, option = declarations()[name]
    shown: OptionInfo = typer.Option(*flags, metavar=option.metavar, help=_help(option.help), **rest)
    return shown


def flag(name: str) -> str:
    """
    >>> flag("allowed_lateness")
    '--allowed-lateness'
    """
    return f"--{name.replace('_', '-')}"


def _help(text: str) -> str:
    """A text about an option of `weave` in the words of a command.

    >>> _help("With `late=update`, not `drop`: see `late_sink`.")
    'With --late update, not drop: see --late-sink.'
    """
    text = re.sub(r"`(\w+)=(\w+)`", lambda match: f"{flag(match[1])} {match[2]}", text)
    names = {*declarations(), "late_sink"}
    return re.sub(r"`([^`]*)`", lambda match: flag(match[1]) if match[1] in names else match[1], text)


EventTime = Annotated[str, job_option("event_time")]
Strategy = Annotated[str, job_option("strategy")]
Technique = Annotated[str, job_option("technique")]
LatencyOption = Annotated[str, job_option("latency", "--latency")]


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
