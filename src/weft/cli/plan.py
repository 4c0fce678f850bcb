"""`weft plan`: what would share, and what it would cost. No Spark, no JVM."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from weft.calibration.file import load_speeds, load_weights
from weft.cli.query_options import EventTime, LatencyOption, QueryFile, Strategy, Technique, read_queries
from weft.model import WeftError
from weft.optimizer import optimize
from weft.optimizer.choose_techniques import checked_latency, serve
from weft.optimizer.cost.omega import TECHNIQUES
from weft.optimizer.cost.operations import Cost
from weft.optimizer.cost.seconds import Stream, estimate
from weft.plan import explain, to_html, to_json


class UnwritablePage(WeftError):
    """The file for the HTML page cannot be written."""


def parse_rate(text: str) -> Fraction:
    """Rows per second, exactly as written.

    >>> parse_rate("1.2"), parse_rate("1e4")
    (Fraction(6, 5), Fraction(10000, 1))
    """
    try:
        rate = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"{text!r} is not a number of rows per second, such as 10000 or 1.2") from None
    if rate <= 0:
        raise typer.BadParameter(f"must be above 0, got {text}")
    return rate


def plan(
    file: QueryFile,
    rate: Annotated[
        Fraction, typer.Option(parser=parse_rate, metavar="NUMBER", help="Rows per second of the stream.")
    ] = Fraction(10_000),
    strategy: Strategy = "tri_weave",
    technique: Technique = "auto",
    latency: LatencyOption = "batch",
    event_time: EventTime = "ts",
    groups: Annotated[
        int, typer.Option(min=1, metavar="N", help="Groups with rows in a slice, for the estimate in seconds.")
    ] = 1,
    batch: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="Seconds of stream per batch, for the same estimate.")
    ] = 10.0,
    selectivity: Annotated[
        float,
        typer.Option(
            min=0, max=1, metavar="SHARE", help="Share of the rows that pass some filter, for the same estimate."
        ),
    ] = 1.0,
    width: Annotated[
        float,
        typer.Option(
            metavar="TIMES", help="Size of a partial relative to one with a count and a sum, for the same estimate."
        ),
    ] = 1.0,
    cost: Annotated[
        str, typer.Option(metavar="COST", help="Compare plans by operations, or by seconds (after weft calibrate).")
    ] = "operations",
    nodes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Also place the queries on this many nodes.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="F", help="Also write the plan as an HTML page to this file.")
    ] = None,
) -> None:
    """Show which queries would share work, and what that costs."""
    weights, stream = load_weights(), Stream(groups, selectivity, width, batch)
    queries = read_queries(file, event_time)
    woven = optimize(queries, rate, strategy, technique, cost=cost, weights=weights, stream=stream)
    woven = serve(woven, load_speeds(), latency=checked_latency(latency), batch_seconds=batch)
    if weights is not None:
        woven = replace(woven, seconds=estimate(woven, weights, stream).seconds)
    if html is not None:
        try:
            html.write_text(to_html(woven), encoding="utf-8")
        except OSError as error:
            raise UnwritablePage(f"{html}: {error.strerror}; name a file that can be written") from error
    as_object, lines = to_json(woven) if as_json else {}, [] if as_json else [explain(woven)]
    if nodes is not None:
        from weft.optimizer.placement import ClusterNode, place_groupings
        from weft.optimizer.placement.explain import explain_placement, placement_json

        priced = Cost(TECHNIQUES[woven.technique])
        placed = place_groupings(woven.workload, [ClusterNode()] * nodes, woven.rate, cost=priced)
        as_object["placement"] = placement_json(placed)
        lines.append(explain_placement(placed))
    typer.echo(json.dumps(as_object, indent=2) if as_json else "\n".join(lines))
