"""Answers per second of many ranges over one stream: from one structure, and from one structure per range."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from weft.kernels import TECHNIQUES, technique
from weft.kernels.techniques.technique import END
from weft_bench.benchmark import Row
from weft_bench.benchmarks.techniques.setup import (
    CHUNK,
    Bench,
    Values,
    best,
    row,
    techniques_for,
)
from weft_bench.benchmarks.techniques.timing import separately

MANY_WINDOW = 1 << 10


def multi_rows(bench: Bench) -> Iterable[Row]:
    """Figures 17, 18, 25 and 26: after every partial all ranges from 1 to the window."""
    for operator in ("int_sum", "max"):
        for name in (n for n in techniques_for(operator) if TECHNIQUES[n].many):
            bench.say(f"all ranges at once  {operator}  {name}")
            for window in (1 << p for p in bench.settings.multi):
                yield _many(
                    bench, name, operator, window, np.arange(window, 0, -1), "25" if operator == "int_sum" else "26"
                )


def _many(bench: Bench, name: str, operator: str, window: int, ranges: Values, figure: str) -> Row:
    steps = technique(name, operator).steps
    assert steps is not None
    assert steps.run_many is not None
    work = len(ranges) * (window if name == "panes" else 16 if name in ("flat_fat", "b_int") else 1)
    slides = max(16, min(CHUNK, (1 << 22) // work))
    column = bench.column(operator, max(CHUNK, window))
    state = steps.start(column, window, len(ranges))
    steps.run(state, column[:window], window, np.empty(window, column.dtype))
    out = np.empty((slides, len(ranges)), column.dtype)
    firsts = state[1][END] - ranges
    seconds = best(lambda: steps.run_many(state, column[:slides], firsts, out), bench.settings.budget)  # type: ignore[misc]
    made = row(figure, name, operator, "step", window, slides, seconds, ranges=len(ranges))
    return {**made, "answers_per_second": slides * len(ranges) / seconds}


def together_rows(bench: Bench) -> Iterable[Row]:
    """Many ranges from one SlickDeque, and from as many single ones."""
    ranges = np.unique(np.linspace(1, MANY_WINDOW, bench.settings.ranges).astype(np.int64))[::-1].copy()
    for operator, name in (("int_sum", "slick_deque_inv"), ("max", "slick_deque_non_inv")):
        bench.say(f"{len(ranges)} ranges together and apart  {operator}")
        yield _many(bench, name, operator, MANY_WINDOW, ranges, "together")
        yield from _separately(bench, name, operator, ranges)


def _separately(bench: Bench, name: str, operator: str, ranges: Values) -> Iterable[Row]:
    """Fed partial by partial, as a stream would; and each alone over all of them, which is kinder to caches."""
    made = technique(name, operator)
    steps = made.steps
    assert steps is not None
    slides = 1 << 12
    column = bench.column(operator, slides)
    states = [steps.start(column, MANY_WINDOW) for _ in ranges]
    out, alone = np.empty((slides, len(ranges)), column.dtype), np.empty(slides, column.dtype)

    def one_by_one() -> None:
        for state, length in zip(states, ranges):
            steps.run(state, column, int(length), alone)

    partial_by_partial = partial(separately(made, states), column, ranges, out)
    for form, run in (("apart", partial_by_partial), ("apart, chunks", one_by_one)):
        seconds = best(run, bench.settings.budget)
        made_row = row("together", name, operator, form, MANY_WINDOW, slides, seconds, ranges=len(ranges))
        yield {**made_row, "answers_per_second": slides * len(ranges) / seconds}
