"""The output of `weft bench techniques`: each figure drawn, beside the findings of the dissertation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from weft_bench.benchmark import Report, Row
from weft_bench.benchmarks.techniques.summary import SUMMARY, rates
from weft_bench.output.charts import Chart, to_page, to_text
from weft_bench.output.tables import cell


def _throughput(title: str, figure: str, aggregate: str) -> Callable[[Sequence[Row]], Chart]:
    def chart(rows: Sequence[Row]) -> Chart:
        lines = {name: sorted(line.items()) for name, line in rates(rows, figure, aggregate).items()}
        return Chart(title, "window, partials", "slides/s", lines, log_x=True, log_y=True)

    return chart


def _ratio(rows: Sequence[Row]) -> Chart:
    by_technique = rates(rows, "26", "max")
    line = [(w, r / by_technique["flat_fat"][w]) for w, r in sorted(by_technique.get("flat_fit", {}).items())]
    return Chart(
        "18  FlatFIT over FlatFAT, all ranges at once", "window, partials", "times", {"ratio": line}, log_x=True
    )


def _spikes(rows: Sequence[Row]) -> Chart:
    lines = {
        row["technique"]: [((i + 1) * 64.0, float(ns)) for i, ns in enumerate(row["spikes"])]
        for row in rows
        if row["figure"] == "27"
    }
    return Chart("28  longest of every 64 steps, window 1024", "step", "ns", lines, log_y=True)


def _percentiles(rows: Sequence[Row]) -> Chart:
    words = {"minimum": 1, "p25": 25, "median": 50, "p75": 75, "p99": 99, "p999": 99.9, "maximum": 100}
    lines = {
        row["technique"]: [(float(share), row[word]) for word, share in words.items()]
        for row in rows
        if row["figure"] == "27"
    }
    return Chart("27  latency of a step, window 1024", "percentile", "ns", lines, log_y=True)


def _memory(rows: Sequence[Row]) -> Chart:
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["figure"] == "29":
            lines.setdefault(row["technique"], []).append((row["window"], row["state_bytes"]))
    return Chart("19, 29  bytes of a state", "window, partials", "bytes", lines, log_x=True, log_y=True)


FIGURES: Sequence[Callable[[Sequence[Row]], Chart]] = (
    _throughput("16, 24  Max, one query, steps", "24", "max"),
    _throughput("23  Sum, one query, steps", "23", "int_sum"),
    _throughput("17, 26  Max, all ranges at once", "26", "max"),
    _ratio,
    _throughput("25  Sum, all ranges at once", "25", "int_sum"),
    _percentiles,
    _spikes,
    _memory,
    _throughput("Max over a column", "bulk", "max"),
    _throughput("Sum of integers over a column", "bulk", "int_sum"),
    _throughput("Sum of floats over a column, exact, and by subtracting", "bulk", "float_sum"),
)


def write_page(report: Report, path: Path) -> None:
    findings = [["figure", "the dissertation", "this run"]]
    findings += [[f["figure"], f["dissertation"], f["ours"]] for f in report.summary["findings"]]
    path.write_text(to_page("weft bench techniques", [figure(report.rows) for figure in FIGURES], findings))


def show(report: Report, console: Console) -> None:
    for figure in FIGURES:
        console.print(to_text(figure(report.rows)) + "\n", highlight=False, markup=False)
    counted = [row for row in report.rows if row["figure"] == "table 4"]
    if counted:
        console.print(_counts(counted))
    beside = Table("figure", "the dissertation", "this run", box=None, pad_edge=False)
    for finding in report.summary["findings"]:
        beside.add_row(finding["figure"], finding["dissertation"], finding["ours"])
    console.print(beside)
    console.print()
    summary = Table(box=None, pad_edge=False, show_header=False)
    for name, value in report.summary.items():
        if name != "findings":
            summary.add_row(name, cell(name, value), SUMMARY[name])
    console.print(summary)


def _counts(rows: Sequence[Row]) -> Table:
    """Each number with table 4's after the stroke."""
    table = Table("technique", "window", "operations per slide", "worst", "elements", box=None, pad_edge=False)
    for row in rows:
        pairs = [f"{row[w]:,.2f} / {row[w + '_bound']:,}" for w in ("amortised",)]
        pairs += [f"{row[w]:,} / {row[w + '_bound']:,}" for w in ("worst", "elements")]
        table.add_row(row["technique"], f"{row['window']:,}", *pairs)
    return table
