"""What every measurement of `weft bench techniques` needs: the stream, the clock, a row of the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.kernels import OPERATORS, TECHNIQUES
from weft_bench.benchmark import BadSetting, Row, Say
from weft_bench.benchmarks.techniques.settings import TechniqueSettings
from weft_bench.machine import load

Values = NDArray[Any]

CHUNK = 1 << 16
"""Slides per call: calling costs microseconds."""
PANES_LIMIT = 1 << 12
"""Longer windows would take Panes seconds for a few answers."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What every measurement needs."""

    settings: TechniqueSettings
    stream: Values
    say: Say

    def column(self, operator: str, length: int) -> Values:
        """The stream from its beginning, again and again."""
        values = np.resize(self.stream, length)
        return values.astype(np.float64) if operator == "float_sum" else values


def read_stream(settings: TechniqueSettings) -> Values:
    """One energy reading, as in the dissertation, or a seeded stream that wanders as such readings do."""
    if settings.data:
        try:
            return np.loadtxt(settings.data, dtype=np.int64, delimiter="\t", usecols=2)
        except (OSError, ValueError, IndexError) as error:
            raise BadSetting(f"{settings.data} has no integers in its third column: {error}") from None
    random = np.random.default_rng(settings.seed)
    wander = np.cumsum(random.integers(-3, 4, 1 << 20))
    return 13_000 + wander + random.integers(-40, 41, 1 << 20)


def best(run: Callable[[], Any], budget: int) -> float:
    """CPU seconds of the best of as many runs as fit the budget of milliseconds, at least one.

    The first run also compiles, and does not count.
    """
    run()
    times: list[float] = []
    while not times or sum(times) < budget / 1000:
        begun = time.thread_time()
        run()
        times.append(max(time.thread_time() - begun, 1e-9))
    return min(times)


def row(
    figure: str, name: str, operator: str, form: str, window: int, slides: float, seconds: float, **more: Any
) -> Row:
    rate = slides / seconds
    return {
        "figure": figure, "technique": name, "aggregate": operator, "form": form, "window": window,
        "slides_per_second": rate, "nanoseconds": 1e9 / rate, "load": load(), **more,
    }  # fmt: skip


def techniques_for(operator: str) -> list[str]:
    return [name for name, recipe in TECHNIQUES.items() if recipe.accepts(OPERATORS[operator])]
