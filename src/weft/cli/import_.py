"""`weft import`: the window queries of Spark SQL files and PySpark code, as a `.sql` file. Nothing of them is run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from weft.model import WeftError
from weft.sql.extract import ExtractedQuery, Imported, collect, to_sql


class NothingFound(WeftError):
    """There is no query that weft accepts."""


class Unwritable(WeftError):
    """The file cannot be written."""


def import_queries(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Scripts, .sql files, or folders of them.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="F", help="Where to write, one file per stream; standard output if missing."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the queries and the refusals as JSON.")] = False,
) -> None:
    """Find window queries in SQL files and PySpark code, and write them as a .sql file for weft."""
    imported = collect(paths)
    if as_json:
        typer.echo(json.dumps(asdict(imported), indent=2))
    for skipped in imported.skipped if not as_json else ():
        typer.echo(f"left out  {skipped}", err=True)
    if not imported.queries:
        raise NothingFound("no window query was found; weft reads groupBy(window(...)).agg(...) and its SQL form")
    if output is not None:
        for file, queries in _by_stream(imported, output).items():
            _write(file, queries)
    elif not as_json:
        typer.echo(to_sql(imported.queries))
    typer.echo(_summary(imported), err=True)


def _by_stream(imported: Imported, output: Path) -> dict[Path, list[ExtractedQuery]]:
    """A job runs the queries of one stream: several streams give several files."""
    streams: dict[tuple[str, str], list[ExtractedQuery]] = {}
    for one in imported.queries:
        streams.setdefault((one.source, one.event_time), []).append(one)
    if len(streams) == 1:
        return {output: list(imported.queries)}
    files: dict[Path, list[ExtractedQuery]] = {}
    for (source, event_time), queries in streams.items():
        name = f"{output.stem}.{source}{output.suffix or '.sql'}".replace("`", "")
        file = output.with_name(name)
        files[file if file not in files else output.with_name(f"{output.stem}.{source}.{event_time}.sql")] = queries
    return files


def _write(file: Path, queries: Iterable[ExtractedQuery]) -> None:
    listed = list(queries)
    try:
        file.write_text(to_sql(listed), encoding="utf-8")
    except OSError as error:
        raise Unwritable(f"{file}: {error.strerror}; name a file that can be written") from error
    clock = "" if listed[0].event_time == "ts" else f" --event-time {listed[0].event_time}"
    typer.echo(f"wrote {len(listed)} to {file}; look at them with: weft plan {file}{clock}", err=True)


def _summary(imported: Imported) -> str:
    queries, skipped = len(imported.queries), len(imported.skipped)
    return f"{queries} {'query' if queries == 1 else 'queries'} found, {skipped} left out"
