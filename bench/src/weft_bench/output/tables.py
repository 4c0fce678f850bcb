"""A report for users: the rows as a table, then the summary with the meaning of its names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from weft_bench.benchmark import Benchmark, Report, Row

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def show_report(report: Report, benchmark: Benchmark, console: Console) -> None:
    machine = report.machine
    console.print(
        f"{machine['processor']}, {machine['cores']} cores, {cell('memory_bytes', machine['memory_bytes'])}; "
        f"Spark {machine['pyspark']}, Python {machine['python']}",
        highlight=False,
    )
    console.print("  ".join(f"{name} {cell(name, value)}" for name, value in report.settings.items()), highlight=False)
    show_rows(report.rows, console)
    summary = Table(box=None, pad_edge=False, show_header=False)
    summary.add_column(style="bold", no_wrap=True)
    summary.add_column(justify="right", no_wrap=True)
    summary.add_column()
    for name, value in report.summary.items():
        summary.add_row(name, cell(name, value), benchmark.summary.get(name, ""))
    console.print()
    console.print(summary)


def show_rows(rows: Sequence[Row], console: Console) -> None:
    """As a table, without columns that are empty or false in every row."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [name for name in names if any(row.get(name) not in (None, False) for row in rows)]
    table = Table(box=None, pad_edge=False)
    for name in columns:
        numeric = any(isinstance(row.get(name), int | float) for row in rows)
        table.add_column(heading(name), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(cell(name, row.get(name)) for name in columns))
    console.print(table)


def heading(name: str) -> str:
    """
    >>> heading("peak_memory_driver_bytes"), heading("rows_per_second")
    ('peak memory driver', 'rows/s')
    """
    return name.replace("_per_second", "/s").removesuffix("_bytes").replace("_", " ")


def cell(name: str, value: Any) -> str:
    """
    >>> cell("rows", 2000000), cell("seconds", 1.234), cell("kept_bytes", 3 << 20), cell("cut", True), cell("x", None)
    ('2,000,000', '1.23', '3.0 MiB', 'yes', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ",".join(map(str, value)) or "-"
    if isinstance(value, int | float):
        if "bytes" in name and "per_row" not in name:
            return _bytes(value)
        return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}"
    return str(value)


def _bytes(size: float) -> str:
    for unit in UNITS:
        if size < 1024 or unit == UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
