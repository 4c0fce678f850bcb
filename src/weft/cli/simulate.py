"""`weft simulate`: a model of a cluster, for workloads that are too large for this machine."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from weft.calibration.file import calibration_file, load_weights
from weft.cli.plan import parse_rate
from weft.cli.query_options import Strategy, read_queries
from weft.model import WeftError, Workload
from weft.optimizer import optimize
from weft.optimizer.cluster_model import Cluster, ClusterLoad, Keys, least_nodes
from weft.optimizer.cluster_model import simulate as simulate_load
from weft.optimizer.cost.seconds import Stream
from weft.optimizer.paper_workloads import Shape
from weft.optimizer.paper_workloads import generate as draw


class NotCalibrated(WeftError):
    """The costs of a node have not been measured."""


def simulate(
    nodes: Annotated[int, typer.Option(metavar="N", help="Machines like the one that was calibrated.")] = 10,
    queries: Annotated[int, typer.Option(metavar="N", help="Queries, drawn as the papers draw them.")] = 1_000,
    file: Annotated[Path | None, typer.Option(metavar="F", help="A file of queries, instead of drawn ones.")] = None,
    rate: Annotated[
        Fraction, typer.Option(parser=parse_rate, metavar="NUMBER", help="Rows per second of the stream.")
    ] = Fraction(1_000_000),
    keys: Annotated[int, typer.Option(metavar="N", help="Different groups.")] = 10_000,
    skew: Annotated[float, typer.Option(metavar="Z", help="Of Zipf: the k-th group has rows like 1 / k^Z.")] = 1.2,
    batch: Annotated[float, typer.Option(metavar="SECONDS", help="Seconds of stream per batch.")] = 10.0,
    buckets: Annotated[int, typer.Option(metavar="N", help="Buckets of a node.")] = 4,
    slow: Annotated[float, typer.Option(metavar="SHARE", help="Probability that a node is slow in a batch.")] = 0.01,
    slowness: Annotated[float, typer.Option(metavar="TIMES", help="How much longer a slow node takes.")] = 3.0,
    busy: Annotated[
        float, typer.Option(metavar="SHARE", help="How busy the busiest node may be where nodes are counted.")
    ] = 0.7,
    maximum_slide: Annotated[int, typer.Option(metavar="SECONDS", help="The longest slide drawn.")] = 3600,
    strategy: Strategy = "weave_share",
    weights: Annotated[
        Path | None, typer.Option(metavar="F", help="The file of `weft calibrate --file F`; else this user's.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of queries, hashing and slow nodes.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Plan queries and say how busy each node of a cluster would be: with skewed keys, slow nodes, and one lost."""
    measured = load_weights(weights)
    if measured is None:
        raise NotCalibrated(f"{weights or calibration_file()} is not there; run `weft calibrate` first, four minutes")
    cluster, groups, stream = Cluster(nodes, buckets, slow, slowness), Keys(keys, skew), Stream(batch_seconds=batch)
    with Console(stderr=True).status("drawing and planning queries"):
        workload = _workload(file, queries, maximum_slide, rate, seed)
        plan = optimize(workload, rate=rate, strategy=strategy)
    load = simulate_load(plan, measured, cluster, groups, stream, seed=seed)
    needed = least_nodes(plan, measured, cluster, groups, stream, busy)
    report = _told(load, nodes, needed, busy)
    if as_json:
        print(json.dumps(report, indent=2))
        return
    _show(report, load)


def _workload(file: Path | None, queries: int, maximum_slide: int, rate: Fraction, seed: int) -> Workload:
    if file is not None:
        return read_queries(file, "ts")
    return draw(replace(Shape(), number=queries, maximum_slide=maximum_slide, rate=rate, seed=seed))


def _told(load: ClusterLoad, nodes: int, needed: int | None, busy: float) -> dict[str, Any]:
    quantiles = np.quantile(load.batch_seconds, (0.5, 0.99))
    return {
        "nodes": nodes,
        "queries": load.queries,
        "trees": load.trees,
        "groups_in_a_slice": load.groups_per_slice,
        "seconds_a_second": asdict(load.estimate),
        "node_busy_mean": float(load.hashed.mean()),
        "node_busy_most": load.busiest,
        "imbalance_hashed": load.imbalance,
        "imbalance_placed": float(load.placed.max() / load.placed.mean()),
        "batch_median": float(quantiles[0]),
        "batch_99th": float(quantiles[1]),
        "falls_behind": bool(quantiles[0] > 1),
        "recovery_seconds": load.recovery_seconds,
        "catch_up_seconds": load.catch_up_seconds,
        "nodes_needed": needed,
        "busy_allowed": busy,
    }


def _show(report: dict[str, Any], load: ClusterLoad) -> None:
    table = Table("", "", show_header=False)
    rows = {
        "queries in trees": f"{report['queries']:,} in {report['trees']:,}",
        "groups with rows in a slice": f"{report['groups_in_a_slice']:,.0f}",
        "work": f"{load.estimate.seconds:,.2f} seconds of a node for each second of stream",
        "busiest node": f"{report['node_busy_most']:.1%}, {report['imbalance_hashed']:.2f} times the mean; "
        f"{report['imbalance_placed']:.2f} were buckets placed by what they cost",
        "a batch takes": f"{report['batch_median']:.1%} of its time, {report['batch_99th']:.1%} in one of a hundred",
        "a node lost": f"its state is read again in {report['recovery_seconds']:,.1f} s; {_caught_up(report)}",
        f"nodes, {report['busy_allowed']:.0%} busy at most": "no number is enough: one group or the driver has too much"
        if report["nodes_needed"] is None
        else f"{report['nodes_needed']:,}",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)
    if report["falls_behind"]:
        Console().print(f"[bold]{report['nodes']:,} nodes fall behind the stream.[/bold]")


def _caught_up(report: dict[str, Any]) -> str:
    seconds = report["catch_up_seconds"]
    return "the others never catch up" if seconds is None else f"the others catch up in {seconds:,.1f} s"
