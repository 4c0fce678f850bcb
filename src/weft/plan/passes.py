"""What passes over rows share besides trees: phantoms and filter signatures, as text, JSON and HTML."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from statistics import mean
from typing import Any

COLUMNS = (20, 260, 620)
"""The x positions of rows, phantoms and passes, in pixels."""
ROW = 40
BOX_WIDTH = 14


@dataclass(frozen=True, slots=True)
class SharedPass:
    """A grouping with one class of its filters, as it runs."""

    keys: tuple[str, ...]
    queries: int
    trees: int
    filters: int
    bits: int
    """Bits per signature; thresholds and ranges of one column share a number."""
    partials: float | None
    """Per row, as counted; None: not counted yet."""
    fed_by: str | None
    """The phantom that it is rolled up from; None: it is computed from rows."""

    @property
    def name(self) -> str:
        return f"by {', '.join(self.keys)}" if self.keys else "no keys"


@dataclass(frozen=True, slots=True)
class PassSharing:
    passes: tuple[SharedPass, ...]
    fed: str | None = None
    """What feeds what, in the papers' notation."""
    cost: float | None = None
    unshared: float | None = None
    unit: str = "probes"
    means: str = "native"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def signatures(self) -> list[str]:
        """One line per pass that has several filters."""
        return [f"  signature {p.name}  {_signature(p)}" for p in self.passes if p.filters > 1]

    def to_html(self) -> str:
        """Rows, phantoms and passes as a diagram and as a table."""
        saved = ""
        if self.cost is not None and self.unshared is not None:
            saved = f" A row costs {self.cost:.3g} {self.unit}, {self.unshared:.3g} without phantoms."
        fed = "" if self.fed is None else f" Fed as <code>{escape(self.fed)}</code>, {escape(self.means)}.{saved}"
        title = f"<h2>Passes over rows</h2>\n<p>What rows are aggregated to.{fed}</p>\n"
        return f"{title}{self._picture()}\n{self._table()}\n"

    def _picture(self) -> str:
        tables = list(dict.fromkeys(p.fed_by for p in self.passes if p.fed_by is not None))
        height = 30 + ROW * len(self.passes)
        middle = 24 + ROW * len(self.passes) / 2
        placed = [(p, 24 + ROW * (i + 0.5)) for i, p in enumerate(self.passes)]
        above = {table: mean(y for p, y in placed if p.fed_by == table) for table in tables}
        parts = [f'<svg viewBox="0 0 1180 {height}" role="img" aria-label="Rows, phantoms and passes">']
        words = zip(COLUMNS, ("rows", "phantoms", "passes"), strict=True)
        parts += [f'<text class="dim" x="{x}" y="14">{word}</text>' for x, word in words]
        parts += [_band(0, 1, middle, y, "feed") for y in above.values()]
        for p, y in placed:
            begin = (0, middle, "feed") if p.fed_by is None else (1, above[p.fed_by], "tree")
            parts.append(_band(begin[0], 2, begin[1], y, begin[2]))
        parts.append(_box(0, middle, "stream", "rows", ""))
        parts += [_box(1, y, "feed", table, "") for table, y in above.items()]
        parts += [_box(2, y, "tree", p.name, _note(p)) for p, y in placed]
        return "\n".join([*parts, "</svg>"])

    def _table(self) -> str:
        head = "".join(f"<th>{word}</th>" for word in ("pass", "from", "signature"))
        numbers = "".join(f'<th class="n">{word}</th>' for word in ("queries", "trees", "partials per row"))
        rows = "\n".join(
            f"<tr><td>{escape(p.name)}</td><td>{escape(p.fed_by or 'rows')}</td><td>{escape(_signature(p))}</td>"
            f'<td class="n">{p.queries}</td><td class="n">{p.trees}</td>'
            f'<td class="n">{"" if p.partials is None else f"{p.partials:.3g}"}</td></tr>'
            for p in self.passes
        )
        table = f"<table><thead><tr>{head}{numbers}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
        return f'<div class="wide">{table}</div>'


def _signature(p: SharedPass) -> str:
    if p.filters < 2:
        return "one filter" if p.filters else "no filter"
    saved = "" if p.bits >= p.filters else f", {p.filters - p.bits} saved where one filter implies another"
    return f"{p.filters} filters in {p.bits} bits{saved}"


def _note(p: SharedPass) -> str:
    queries = f"{p.queries} {'query' if p.queries == 1 else 'queries'}"
    return queries if p.partials is None else f"{queries}, {p.partials:.3g} partials per row"


def _band(left: int, right: int, y: float, to: float, kind: str) -> str:
    begin, end = COLUMNS[left] + BOX_WIDTH, COLUMNS[right]
    bend = (begin + end) / 2
    path = f"M{begin} {y:.1f} C{bend:.0f} {y:.1f} {bend:.0f} {to:.1f} {end} {to:.1f}"
    return f'<path class="band {kind}" d="{path}" stroke-width="4"/>'


def _box(column: int, y: float, kind: str, label: str, note: str) -> str:
    x = COLUMNS[column]
    text = f'{escape(label)} <tspan class="dim">{escape(note)}</tspan>'
    return (
        f'<g><rect class="{kind}" x="{x}" y="{y - 8:.1f}" width="{BOX_WIDTH}" height="16"/>'
        f'<text x="{x + BOX_WIDTH + 6}" y="{y + 4:.1f}">{text}</text></g>'
    )
