"""`weft calibrate`: measures what a row, a partial and an answer cost here, so that plans are priced in seconds."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from weft.calibration.file import Calibration, calibration_file, save_calibration
from weft.calibration.speeds import Speeds
from weft.calibration.table_costs import TableCosts
from weft.calibration.weights import Weights
from weft.plan import format

if TYPE_CHECKING:
    from weft.calibration.measure.weights import Fit

MEANING = {
    "batch": "a micro-batch, whatever it holds",
    "query": "a query in a batch",
    "row": "a row through one native pass",
    "partial": "a partial, from Spark into the state",
    "kept": "a kept partial in a batch",
    "operation": "combining two partials",
    "answer": "a row of an answer",
}
OF_VALUES = {
    "sent": "a value of a percentile, a distinct count and the like, from Spark into the state",
    "kept": "such a value that is kept, in a batch",
    "moved": "such a value that comes into a window or leaves it",
}


def calibrate(
    file: Annotated[Path | None, typer.Option(metavar="F", help="The file to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the weights as JSON.")] = False,
) -> None:
    """Measure this machine (about four minutes; best while it is idle), so that `weft plan` can estimate its load."""

    from weft.calibration.measure.speeds import measure_speeds
    from weft.calibration.measure.table_costs import measure_tables
    from weft.calibration.measure.weights import calibrate as measure
    from weft.spark import local_session

    screen = Console(stderr=True)
    busy = round(os.getloadavg()[0], 2)
    with screen.status("starting Spark") as status:

        def say(what: str) -> None:
            status.update(f"measuring: {what}")

        fitted = measure(local_session(), say)
        speeds = measure_speeds(say)
        prices = measure_tables(local_session(), say)
    path, weights = file or calibration_file(), fitted.weights
    save_calibration(Calibration(weights, speeds, prices), path)
    if as_json:
        techniques = {o: {name: asdict(speed) for name, speed in of.items()} for o, of in speeds.items()}
        report = {
            "weights": asdict(weights),
            "mean_error": dict(fitted.mean_errors),
            "taken_over_estimated": dict(fitted.by_probe),
            "unseen": fitted.too_small,
            "nanoseconds": techniques,
            "tables": asdict(prices),
        }
        print(json.dumps({**report, "load": busy, "file": str(path)}, indent=2))
        return
    console = Console()
    console.print(_terms(weights))
    console.print(_fastest(speeds))
    console.print(_tables(prices))
    console.print(_residual(fitted))
    console.print(f"Written to {path}; `weft plan` uses it from now on.")


def _terms(weights: Weights) -> Table:
    table = Table("", "takes", "that is")
    for name, meaning in MEANING.items():
        table.add_row(name, _readable(getattr(weights, name)), meaning)
    for name, meaning in OF_VALUES.items():
        table.add_row(f"value {name}", _readable(getattr(weights.values, name)), meaning)
    return table


def _residual(fitted: Fit) -> str:
    """How far the batches that were measured are from what the weights say of them."""
    off = fitted.mean_errors
    lines = [
        f"Off by {off['native']:.0%} for the native job, {off['final']:.0%} for the final one, and {off['values']:.0%} "
        "for both where there are values, on average over the batches measured. Taken over estimated, by stream:",
        *(f"  {name}  {over:.2f}" for name, over in fitted.by_probe.items()),
    ]
    if fitted.too_small:
        lines.append(f"Too small to measure here, so only a guess: {', '.join(fitted.too_small)}.")
    return "\n".join(lines)


def _tables(prices: TableCosts) -> Table:
    """What decides where groupings are made."""
    table = Table("a core takes for", "in Spark", "in a bounded table (LFTA)")
    table.add_row("a row that comes there", "", _readable(prices.row))
    table.add_row("a probe (c1)", _readable(prices.native_probe), _readable(prices.probe))
    table.add_row("a partial that leaves (c2)", _readable(prices.native_eviction), _readable(prices.eviction))
    return table


def _fastest(speeds: Speeds) -> Table:
    """Nanoseconds, with the least of a row in bold."""
    names = list(dict.fromkeys(name for of in speeds.values() for name in of))
    table = Table("ns per answer, for a slide of one slice", *names)
    for operator, of in speeds.items():
        for slices in (4, 1024):
            one = {name: s.build + s.passed + s.answer + slices * s.combined for name, s in of.items()}
            cells = [f"{one[name]:.2g}" if name in one else "" for name in names]
            least = names.index(min(one, key=lambda name: one[name]))
            cells[least] = f"[bold]{cells[least]}[/bold]"
            table.add_row(f"{format.operator(operator)}, {slices} slices per window", *cells)
    return table


def _readable(seconds: float) -> str:
    """
    >>> _readable(0.25), _readable(3.2e-5), _readable(4.4e-9)
    ('250 ms', '32 µs', '4.4 ns')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
