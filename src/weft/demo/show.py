"""The answers on the screen: a dozen of the hundred queries, each with its newest window and the change to it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
from rich.table import Table
from rich.text import Text

WATCHED = ("NVDA", "TSLA", "AAPL")
"""The most traded symbols."""

SHOWN = 3
"""How many groups of a query are shown."""

MILLION = 1e-6


@dataclass(frozen=True, slots=True)
class Tile:
    """A column of one query. Shows the groups that are `watched`, or those with the largest values."""

    label: str
    query: str
    column: str
    form: str
    key: str | None = None
    watched: tuple[str, ...] = ()
    scale: float = 1


TILES = (
    Tile("trades a second", "trades_a_second", "trades", "{:,.0f}"),
    Tile("turnover, millions", "market_turnover_10s", "turnover", "{:,.1f}", scale=MILLION),
    Tile("VWAP", "vwap_10s", "vwap", "{:,.2f}", "symbol", WATCHED),
    Tile("VWAP", "vwap_1m", "vwap", "{:,.2f}", "symbol", WATCHED),
    Tile("high less low", "high_low_10s", "spread", "{:,.2f}", "symbol", WATCHED),
    Tile("volatility", "volatility_30s", "deviation", "{:,.3f}", "symbol", WATCHED),
    Tile("moved", "momentum_10s", "moved", "{:+,.2f}", "symbol", WATCHED),
    Tile("imbalance", "imbalance_10s", "imbalance", "{:+.1%}", "symbol", WATCHED),
    Tile("shares by venue", "venue_volume_5s", "shares", "{:,}", "venue", ("NASDAQ", "NYSE", "IEX")),
    Tile("exposure, millions", "desk_exposure_10s", "exposure", "{:+,.1f}", "desk", scale=MILLION),
    Tile("blocks", "blocks_30s", "blocks", "{:,}", "symbol"),
    Tile("! one-sided burst", "one_sided_burst_5s", "trades", "{:,}", "symbol"),
)


class Cell(NamedTuple):
    """One answer; `change` is -1, 0 or 1 against the window before."""

    group: str
    text: str
    change: int


@dataclass(slots=True)
class Newest:
    """The newest window of a tile, its values by group, and those of the window before."""

    begin: datetime
    end: datetime
    values: Mapping[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict)


class AnswerDisplay:
    """Takes the answers of each batch, as a sink does, and keeps the newest of each tile."""

    def __init__(self, tiles: Sequence[Tile] = TILES) -> None:
        self._tiles = tiles
        self._newest: dict[str, Newest] = {}
        self._lock = threading.Lock()

    def take(self, batch: int, answers: Mapping[str, pa.Table]) -> None:
        for tile in self._tiles:
            if tile.query in answers:
                windows = _by_window(tile, answers[tile.query])
                with self._lock:
                    for begin, end in sorted(windows):
                        self._put(tile, begin, end, windows[begin, end])

    def _put(self, tile: Tile, begin: datetime, end: datetime, values: Mapping[str, Any]) -> None:
        old = self._newest.get(tile.query)
        if old is None or old.end < end:
            self._newest[tile.query] = Newest(begin, end, values, old.values if old else {})

    def lines(self) -> list[tuple[Tile, Newest, list[Cell]]]:
        with self._lock:
            newest = dict(self._newest)
        told = [(tile, newest[tile.query]) for tile in self._tiles if tile.query in newest]
        return [(tile, window, _cells(tile, window)) for tile, window in told]

    def table(self) -> Table:
        """For a terminal."""
        table = Table(box=None, pad_edge=False, header_style="dim")
        for heading in ("answer", "query", "window", *[""] * SHOWN):
            table.add_column(heading, no_wrap=True)
        for tile, newest, cells in self.lines():
            shown = [_coloured(cell) for cell in cells]
            table.add_row(tile.label, tile.query, _span(newest), *shown, *[Text()] * (SHOWN - len(shown)))
        return table

    def plain(self) -> str:
        """For a log."""
        marks = {-1: " down", 0: "", 1: " up"}
        return "\n".join(
            f"  {tile.label:<19} {tile.query:<20} {_span(newest)}  "
            + "   ".join(f"{c.group} {c.text}{marks[c.change]}".strip() for c in cells)
            for tile, newest, cells in self.lines()
        )

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {
                "query": tile.query,
                "column": tile.column,
                "window": [newest.begin.isoformat(), newest.end.isoformat()],
                "values": dict(newest.values) if tile.key else newest.values[""],
            }
            for tile, newest, _ in self.lines()
        ]


def _by_window(tile: Tile, table: pa.Table) -> dict[tuple[datetime, datetime], dict[str, Any]]:
    windows: dict[tuple[datetime, datetime], dict[str, Any]] = {}
    for row in table.select(["window", tile.column, *([tile.key] if tile.key else [])]).to_pylist():
        bounds = row["window"]["start"], row["window"]["end"]
        windows.setdefault(bounds, {})[row[tile.key] if tile.key else ""] = row[tile.column]
    return windows


def _cells(tile: Tile, newest: Newest) -> list[Cell]:
    values = {group: value for group, value in newest.values.items() if value is not None}
    if tile.key is None:
        groups: Sequence[str] = tuple(values)
    elif tile.watched:
        groups = [group for group in tile.watched if group in values]
    else:
        groups = sorted(values, key=lambda group: (-abs(values[group]), group))[:SHOWN]
    return [
        Cell(group, tile.form.format(values[group] * tile.scale if tile.scale != 1 else values[group]), change)
        for group in groups
        for change in [_change(newest.before.get(group), values[group])]
    ]


def _change(before: Any, now: Any) -> int:
    return 0 if before is None else (now > before) - (now < before)


def _span(newest: Newest) -> str:
    return f"{newest.begin:%H:%M:%S}-{newest.end:%H:%M:%S}"


def _coloured(cell: Cell) -> Text:
    mark, colour = {-1: ("▼", "red"), 0: (" ", ""), 1: ("▲", "green")}[cell.change]
    return Text.assemble((f"{cell.group} " if cell.group else "", "dim"), cell.text, (f" {mark}", colour))
