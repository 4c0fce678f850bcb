"""A figure of the papers: its rows, its charts, and the claims of the papers about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft_bench.benchmark import Row, Say
from weft_bench.output.charts import Chart


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of a figure is run: `quick` takes small sizes, each point is the mean of `repeat` workloads."""

    quick: bool
    repeat: int
    seed: int
    budget: float
    """Seconds that one rival may take at one point."""

    def of(self, quick: Sequence[Any], full: Sequence[Any]) -> Sequence[Any]:
        return quick if self.quick else full

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + self.repeat)


NOTE = "-"
"""In place of a claim, for a note on weft alone."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What the papers say, and what we measure; `agrees` is None if the sizes of this run cannot tell."""

    paper: str
    ours: str
    agrees: bool | None

    @property
    def is_note(self) -> bool:
        """A note on weft alone, which the papers say nothing about."""
        return self.paper == NOTE


Rows = Callable[[Scale, Say], list[Row]]
Claims = Callable[[list[Row]], list[Claim]]


@dataclass(frozen=True, slots=True)
class Figure:
    """`rows` hold `series`, the value of `x` and that of `y`."""

    name: str
    title: str
    source: str
    x: str
    y: str
    rows: Rows
    claims: Claims
    log_x: bool = False
    log_y: bool = False
    drawn: bool = True
    panels: Callable[[Row], str] = field(default=lambda row: "")
    """The panel that a row belongs to, if the figure has several."""

    def charts(self, rows: Sequence[Row]) -> list[Chart]:
        if not self.drawn:
            return []
        panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for row in rows:
            if row.get(self.y) is not None:
                points = panels.setdefault(self.panels(row), {}).setdefault(str(row["series"]), [])
                points.append((float(row[self.x]), float(row[self.y])))
        words = self.x.replace("_", " "), self.y.replace("_", " ")
        return [
            Chart(f"{self.title}{f', {panel}' if panel else ''}", *words, series, self.log_x, self.log_y)
            for panel, series in panels.items()
        ]


def value(rows: Sequence[Row], y: str, **where: Any) -> float | None:
    """The value of the row with these fields; None if there is none."""
    values = [row[y] for row in rows if all(row.get(k) == v for k, v in where.items())]
    return None if not values or values[0] is None else float(values[0])


def over(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
