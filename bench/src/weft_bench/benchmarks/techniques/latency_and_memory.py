"""Nanoseconds per step, bytes of a state, and operations per slide."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft.kernels import OPERATORS, TECHNIQUES, technique
from weft_bench.benchmark import Row
from weft_bench.benchmarks.techniques.operation_counts import count_operations, table_4
from weft_bench.benchmarks.techniques.setup import (
    Bench,
    techniques_for,
)
from weft_bench.benchmarks.techniques.timing import clock_nanoseconds, step_nanoseconds
from weft_bench.machine import load

LATENCY_WINDOW = 1 << 10
OUTLIERS = 0.00005
"""Both as in the dissertation: windows of 1024, and the highest 0.005 % left out."""


def latency_rows(bench: Bench) -> Iterable[Row]:
    """Figures 27 and 28: nanoseconds a step, without what reading the clock takes."""
    clock = clock_nanoseconds()
    for operator in ("int_sum", "max"):
        for name in techniques_for(operator):
            if operator == "int_sum" and TECHNIQUES[name].accepts(OPERATORS["max"]):
                continue  # they do the same for both
            bench.say(f"latency  {operator}  {name}")
            made = technique(name, operator)
            assert made.steps is not None
            slides = bench.settings.latencies // (20 if name == "panes" else 1)
            column = bench.column(operator, slides + LATENCY_WINDOW)
            state = made.steps.start(column, LATENCY_WINDOW)
            taken = np.maximum(0, step_nanoseconds(made, state, column, LATENCY_WINDOW)[LATENCY_WINDOW:] - clock)
            kept = np.sort(taken)[: len(taken) - int(len(taken) * OUTLIERS)]
            shares = {"minimum": 0, "p25": 25, "median": 50, "p75": 75, "p99": 99, "p999": 99.9, "maximum": 100}
            yield {
                "figure": "27", "technique": name, "aggregate": operator, "form": "step", "window": LATENCY_WINDOW,
                "mean": float(kept.mean()), "clock": clock, "load": load(),
                **{word: float(np.percentile(kept, share)) for word, share in shares.items()},
                "spikes": taken[: min(len(taken), 1 << 12) & -64].reshape(-1, 64).max(axis=1).tolist(),
            }  # fmt: skip


def memory_rows(bench: Bench) -> Iterable[Row]:
    """Figures 19 and 29: bytes of a state; windows that are no powers of two among them."""
    sizes = sorted({size for p in bench.settings.windows for size in (1 << p, 3 << p >> 1)})
    for name in TECHNIQUES:
        operator = "max" if TECHNIQUES[name].accepts(OPERATORS["max"]) else "int_sum"
        steps = technique(name, operator).steps
        assert steps is not None
        for window in sizes:
            state = steps.start(bench.stream[:1], window)
            size = sum(array.nbytes for array in state)
            yield {
                "figure": "29", "technique": name, "aggregate": operator, "form": "step", "window": window,
                "state_bytes": size, "bytes_per_partial": size / window,
            }  # fmt: skip


def count_rows(bench: Bench) -> Iterable[Row]:
    """Operations per slide, amortised over two windows and at worst, and the room of a state, beside table 4."""
    for name, recipe in TECHNIQUES.items():
        operator = OPERATORS["max" if recipe.accepts(OPERATORS["max"]) else "int_sum"]
        bench.say(f"counting  {name}")
        for window in (1 << p for p in bench.settings.windows if p <= 12):
            slides = 4 if name == "panes" else 2 * (window + 1) if name == "flat_fit" else 2 * window
            column = bench.column("max", window + slides)
            before = column[: 0 if name == "slick_deque_non_inv" else window]
            counted = count_operations(name, operator, before, column[window:], [window] if recipe.many else None)
            bound = table_4(name, window)
            yield {
                "figure": "table 4", "technique": name, "form": "count", "window": window,
                "amortised": counted.total / slides, "amortised_bound": bound.amortised,
                "worst": max(counted.slides), "worst_bound": bound.worst,
                "elements": counted.elements, "elements_bound": bound.space,
            }  # fmt: skip
