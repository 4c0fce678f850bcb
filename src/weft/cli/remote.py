"""`weft add`, `pause`, `resume`, `drop`, `list` and `ask`: commands to a running service."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table

from weft.cli.client import DEFAULT_URL, Url, call
from weft.cli.query_options import read_text

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SqlText = Annotated[
    str, typer.Argument(metavar="SQL", help="A query, a file whose name ends with .sql, or - for standard input.")
]


def add(
    sql: SqlText,
    since: Annotated[
        str,
        typer.Option(
            metavar="now|state|source",
            help="First window: the next to begin, the first that is kept, or the first of the source.",
        ),
    ] = "now",
    begin: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --since source: windows from '2026-01-01 00:00:00' on.")
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="INTERVAL", help="How long it stays in the job, in event time, such as '8 hours'."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add queries to a running service; they join with the next batch."""
    response = call(url, "POST", "/queries", {"sql": sql_text(sql), "since": since, "begin": begin, "for": for_})
    typer.echo(json.dumps(response) if as_json else f"added {', '.join(response['added'])}")


Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Queries, by name.")]


def drop(names: Names, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Drop queries of a running service; their answers stay in the sink."""
    _each(names, "dropped", lambda path: call(url, "DELETE", path), as_json)


def pause(names: Names, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Pause queries of a running service: they leave the job and can be resumed."""
    _each(names, "paused", lambda path: call(url, "POST", f"{path}/pause"), as_json)


def resume(names: Names, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Resume paused queries, from the first window whose slices are all kept."""
    _each(names, "resumed", lambda path: call(url, "POST", f"{path}/resume"), as_json)


def _each(names: list[str], outcome: str, change: Callable[[str], object], as_json: bool) -> None:
    for name in names:
        change(f"/queries/{quote(name)}")
        if not as_json:
            typer.echo(f"{outcome} {name}")
    if as_json:
        typer.echo(json.dumps({outcome: names}))


def list_queries(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the queries of a running service."""
    response = call(url, "GET", "/queries")
    queries = response["queries"]
    if as_json:
        typer.echo(json.dumps(queries))
        return
    table = Table("query", "range", "slide", "cost", "matched", "answers", "late", "lag", box=None, pad_edge=False)
    for q in queries:
        numbers = (f"{q['cost_share']:.1%}", *(f"{q[n]:,}" for n in ("matched_rows", "answers", "late_rows")))
        lag = "-" if q["lag_seconds"] is None else f"{q['lag_seconds']:,.1f} s"
        table.add_row(q["name"], q["range"], q["slide"], *numbers, lag)
    console().print(table)
    if response["paused"]:
        typer.echo(f"paused: {', '.join(q['name'] for q in response['paused'])}")


def ask(sql: SqlText, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Answer a query once, from the state of a running service."""
    response = call(url, "POST", "/ask", {"sql": sql_text(sql)})
    if as_json:
        typer.echo(json.dumps(response))
        return
    table = Table(*(c["name"] for c in response["columns"]), box=None, pad_edge=False)
    for row in response["rows"]:
        table.add_row(*(_cell(row[c["name"]]) for c in response["columns"]))
    console().print(table)


def sql_text(sql: str) -> str:
    """The text itself, or the text of the file that it names."""
    if sql == "-" or sql.endswith(".sql"):
        return read_text(Path(sql))
    return sql


def console() -> Console:
    """Where the output is not a terminal, a table is as wide as it needs to be."""
    return Console() if sys.stdout.isatty() else Console(width=250)


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return " .. ".join(_cell(v) for v in value.values())
    return "NULL" if value is None else str(value)
