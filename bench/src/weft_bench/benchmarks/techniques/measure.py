"""Which measurements `weft bench techniques` makes, in which order, and the check before all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from weft.kernels import technique
from weft.kernels.techniques.technique import BEGIN, END
from weft_bench.benchmark import Row
from weft_bench.benchmarks.techniques.latency_and_memory import latency_rows, memory_rows
from weft_bench.benchmarks.techniques.many_ranges import multi_rows, together_rows
from weft_bench.benchmarks.techniques.one_query import bulk_rows, group_rows, step_rows
from weft_bench.benchmarks.techniques.setup import (
    Bench,
    techniques_for,
)


def check_answers(bench: Bench) -> bool:
    """Before anything is timed: all techniques agree with recomputation, over a column and step by step."""
    for operator in ("int_sum", "max"):
        column = bench.column(operator, 3_000)
        for window in (1, 7, 64):
            lo = np.arange(len(column) - window + 1)
            view = np.lib.stride_tricks.sliding_window_view(column, window)
            expected = view.sum(axis=1) if operator == "int_sum" else view.max(axis=1)
            for name in techniques_for(operator):
                made = technique(name, operator)
                assert made.steps is not None
                out, steps = np.empty(len(lo), column.dtype), np.empty(len(column), column.dtype)
                made.answer(made.build(column, window), lo, lo + window, out)
                state = made.steps.start(column, window)
                made.steps.run(state, column, window, steps)
                if (out != expected).any() or (steps[window - 1 :] != expected).any():
                    return False
                if state[1][END] - state[1][BEGIN] != window:
                    return False
    return True


PARTS: Sequence[Callable[[Bench], Iterable[Row]]] = (
    # What has a target comes first, so that a run that is stopped has measured it.
    bulk_rows,
    step_rows,
    together_rows,
    group_rows,
    multi_rows,
)
"""Slides per second, in rounds of which the fastest counts."""

ONCE: Sequence[Callable[[Bench], Iterable[Row]]] = (latency_rows, memory_rows)
