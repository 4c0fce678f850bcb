"""What a running job shows of itself: a line that moves on a terminal, and plain lines anywhere else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from time import monotonic
from types import TracebackType
from typing import Self, TextIO, TypedDict

from rich.console import Console
from rich.live import Live
from rich.text import Text

PLAIN_SECONDS = 5.0
"""A log needs a line now and then, not one per batch."""


class Metrics(TypedDict):
    """Where a job stands after a batch; `rows`, `answers` and `late` count from its start."""

    batch: int
    rows: int
    rows_per_second: float
    watermark: str | None
    """ISO 8601; None before the first row."""
    lag_seconds: float | None
    """How far the watermark is behind the clock."""
    answers: int
    answers_per_second: float
    late: int
    queries: int
    trees: int


def line(metrics: Metrics) -> str:
    """The progress line, fields in the order of the data: rows, watermark, answers, late rows."""
    watermark, lag = metrics["watermark"], metrics["lag_seconds"]
    return "  ".join(
        (
            f"batch {metrics['batch']}",
            f"{metrics['rows_per_second']:,.0f} rows/s",
            f"watermark {_clock(watermark) if watermark else '-'}",
            f"lag {f'{lag:,.1f} s' if lag is not None else '-'}",
            f"{metrics['answers_per_second']:,.0f} answers/s",
            f"{metrics['late']:,} late",
            f"{_count(metrics['queries'], 'query', 'queries')} in {_count(metrics['trees'], 'tree', 'trees')}",
        )
    )


def _clock(watermark: str) -> str:
    return datetime.fromisoformat(watermark).isoformat(sep=" ", timespec="seconds")


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


class ProgressLine:
    """Shows each `Metrics` it is given; use it as a context manager, so that the last one is shown too.

    The line goes to stderr; stdout is for answers. With `as_json` each update is one JSON object per line on stdout.
    """

    def __init__(
        self,
        *,
        as_json: bool = False,
        console: Console | None = None,
        stdout: TextIO | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._console = console or Console(stderr=True)
        self._json = (stdout or sys.stdout) if as_json else None
        self._clock = clock
        self._live: Live | None = None
        self._pending: Metrics | None = None
        self._printed_at: float | None = None

    def update(self, metrics: Metrics) -> None:
        if self._json is not None:
            print(json.dumps(metrics), file=self._json, flush=True)
        elif self._live is not None:
            self._live.update(self._text(metrics), refresh=True)
        elif self._printed_at is None or self._clock() - self._printed_at >= PLAIN_SECONDS:
            self._print(metrics)
        else:
            self._pending = metrics

    def _print(self, metrics: Metrics) -> None:
        # Straight to the file: a console that is no terminal has a width, and would break the line at it.
        print(line(metrics), file=self._console.file, flush=True)
        self._printed_at, self._pending = self._clock(), None

    @staticmethod
    def _text(metrics: Metrics) -> Text:
        # A line that wraps cannot be drawn over; a narrow terminal sees its beginning.
        return Text(line(metrics), no_wrap=True, overflow="ellipsis")

    def __enter__(self) -> Self:
        if self._json is None and self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._pending is not None:
            self._print(self._pending)
