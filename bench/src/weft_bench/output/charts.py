"""Small charts without a library: lines over one axis, as SVG for a page and as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 12, 44
COLOURS = ("#2f7f86", "#b4672b", "#7656a5", "#44506b", "#a3403f", "#5a7d2b", "#8a6d00", "#5b5b5b")
LETTERS = "ox+*#@%&abcdefgh"
COLUMNS, LINES = 64, 16

STYLE = """
:root { color-scheme: light dark; } body { margin: 2rem auto; max-width: 720px; padding: 0 1rem;
  font: 15px/1.5 system-ui, sans-serif; } svg { width: 100%; height: auto; } svg text { font-size: 11px;
  fill: currentColor; } .grid { stroke: currentColor; stroke-opacity: .15; } h1 { font-size: 1.2rem; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
"""


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    x: str
    y: str
    series: Mapping[str, Points]
    log_x: bool = False
    log_y: bool = False

    @property
    def drawable(self) -> dict[str, Points]:
        """Points that the axes can show: a logarithmic axis needs numbers above 0."""
        kept = {
            name: [(x, y) for x, y in points if (x > 0 or not self.log_x) and (y > 0 or not self.log_y)]
            for name, points in self.series.items()
        }
        return {name: points for name, points in kept.items() if points}


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps a value to a position between 0 and 1, and has the ticks."""

    place: Callable[[float], float]
    ticks: tuple[float, ...]


def make_axis(values: Sequence[float], log: bool) -> Axis:
    """
    >>> make_axis([1, 1000], log=True).ticks, make_axis([0, 9], log=False).ticks
    ((1.0, 10.0, 100.0, 1000.0), (0.0, 2.0, 4.0, 6.0, 8.0, 10.0))
    """
    low, high = min(values), max(values)
    if log:
        first, last = floor(log10(low)), ceil(log10(high))
        last = max(last, first + 1)
        step = max(1, (last - first) // 8)
        ticks = tuple(10.0**power for power in range(first, last + 1, step))
        return Axis(lambda v: (log10(v) - first) / (last - first), ticks)
    low = min(low, 0.0)
    width = (high - low) or 1.0
    power = 10.0 ** floor(log10(width / 4))
    step_ = next(m * power for m in (1, 2, 5, 10) if width / (m * power) <= 6)
    count = ceil(width / step_ - 1e-9)
    return Axis(lambda v: (v - low) / (count * step_), tuple(low + i * step_ for i in range(count + 1)))


def axes(chart: Chart) -> tuple[Axis, Axis]:
    points = [p for series in chart.drawable.values() for p in series]
    return make_axis([x for x, _ in points], chart.log_x), make_axis([y for _, y in points], chart.log_y)


def to_svg(chart: Chart) -> str:
    if not chart.drawable:
        return f"<p>{escape(chart.title)}: nothing to draw</p>"
    across, up = axes(chart)

    def x(value: float) -> float:
        return LEFT + across.place(value) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - up.place(value) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 18 * len(chart.drawable)}" xmlns="http://www.w3.org/2000/svg">']
    parts += [f"<title>{escape(chart.title)}</title>"]
    for tick in across.ticks:
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{short(tick)}</text>')
    for tick in up.ticks:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(chart.x)}</text>')
    parts.append(f'<text x="4" y="{TOP - 4}">{escape(chart.y)}</text>')
    for number, (name, points) in enumerate(chart.drawable.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="{colour}"/>' for a, b in points]
        below = HEIGHT + 18 * number + 8
        parts.append(f'<rect x="{LEFT}" y="{below - 9}" width="12" height="9" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + 18}" y="{below}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"])


def to_file(chart: Chart) -> str:
    """The same as a separate file, dark on light."""
    style = (
        "<style>svg { background: #fff; color: #222; } text { font: 11px system-ui, sans-serif; fill: currentColor; } "
        ".grid { stroke: currentColor; stroke-opacity: .15; }</style>"
    )
    return to_svg(chart).replace("<title>", f"{style}\n<title>", 1)


def to_text(chart: Chart) -> str:
    """The same as text; where two lines meet, the later one is visible."""
    if not chart.drawable:
        return f"{chart.title}: nothing to draw"
    across, up = axes(chart)
    cells = [[" "] * COLUMNS for _ in range(LINES)]
    for letter, points in zip(LETTERS, chart.drawable.values()):
        for a, b in points:
            cells[LINES - 1 - round(up.place(b) * (LINES - 1))][round(across.place(a) * (COLUMNS - 1))] = letter
    lines = [f"{chart.title}", f"  {chart.y}"]
    labels = {LINES - 1 - round(up.place(tick) * (LINES - 1)): short(tick) for tick in up.ticks}
    lines += [f"{labels.get(number, ''):>9} |{''.join(row).rstrip()}" for number, row in enumerate(cells)]
    lines.append(f"{'':>9} +{'-' * COLUMNS}")
    first, last = short(across.ticks[0]), short(across.ticks[-1])
    lines.append(f"{'':>11}{first}{chart.x:^{COLUMNS - len(first) - len(last)}}{last}")
    lines.append("  " + "   ".join(f"{letter} {name}" for letter, name in zip(LETTERS, chart.drawable)))
    return "\n".join(lines)


def to_page(title: str, charts: Sequence[Chart], table: Sequence[Sequence[str]] = ()) -> str:
    """A page with all charts, and a table whose first row is its header; without external files."""
    rows = [
        "<tr>" + "".join(f"<{cell}>{escape(text)}</{cell}>" for text in row) + "</tr>"
        for row, cell in zip(table, ["th", *["td"] * len(table)])
    ]
    drawn = "\n".join(f"<h2>{escape(chart.title)}</h2>\n{to_svg(chart)}" for chart in charts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n{drawn}\n"
        f"<table>{''.join(rows)}</table></body></html>\n"
    )


def short(value: float) -> str:
    """
    >>> short(0), short(0.25), short(1500), short(2_000_000), short(1e-5), short(3e12)
    ('0', '0.25', '1.5k', '2M', '1e-05', '3e+12')
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1000 * size and abs(value) < 1e12:
            return f"{value / size:g}{suffix}"
    return f"{value:g}" if abs(value) < 1e6 and not 0 < abs(value) < 1e-3 else f"{value:.0e}"
