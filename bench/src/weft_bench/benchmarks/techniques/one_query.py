"""Slides per second of one query, partial by partial, over whole columns, and over many groups."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from weft.kernels import OPERATORS, Operator, Technique, prefix_answers, prefix_sums, technique
from weft.kernels.techniques.combine import add, take_away
from weft.kernels.techniques.panes_inv import panes_inv
from weft.kernels.techniques.technique import compiled
from weft_bench.benchmark import Row
from weft_bench.benchmarks.techniques.setup import (
    CHUNK,
    PANES_LIMIT,
    Bench,
    Values,
    best,
    row,
    techniques_for,
)
from weft_bench.benchmarks.techniques.timing import compensated, touch

GROUP_WINDOW = 16


def step_rows(bench: Bench) -> Iterable[Row]:
    """Figures 16, 23 and 24: one query, a partial at a time, state kept between calls."""
    for operator in ("int_sum", "max"):
        for name in techniques_for(operator):
            bench.say(f"steps  {operator}  {name}")
            for window in (1 << p for p in bench.settings.windows):
                if name != "panes" or window <= PANES_LIMIT:
                    yield _steps(bench, name, operator, window)


def _steps(bench: Bench, name: str, operator: str, window: int) -> Row:
    steps = technique(name, operator).steps
    assert steps is not None
    slides = max(window, min(bench.settings.slides, (1 << 26) // window) if name == "panes" else bench.settings.slides)
    column = bench.column(operator, CHUNK)
    out = np.empty(CHUNK, column.dtype)
    state = steps.start(column, window)
    size = min(CHUNK, slides)
    for _ in range(-(-window // CHUNK)):
        steps.run(state, column[: min(window, CHUNK)], window, out)
    calls = -(-slides // size)

    def run() -> None:
        for _ in range(calls):
            steps.run(state, column[:size], window, out)

    seconds = best(run, bench.settings.budget)
    return row("23" if operator == "int_sum" else "24", name, operator, "step", window, calls * size, seconds)


def bulk_rows(bench: Bench) -> Iterable[Row]:
    """The same windows over a whole column, which is what the pipeline calls."""
    for operator in ("int_sum", "float_sum", "max"):
        for name, answer in _bulk_forms(operator).items():
            bench.say(f"columns  {operator}  {name}")
            for window in (1 << p for p in bench.settings.windows):
                if name != "panes" or window <= PANES_LIMIT:
                    yield _bulk(bench, name, operator, window, answer)


def _bulk(bench: Bench, name: str, operator: str, window: int, answer: Any) -> Row:
    # The first window is filled too; it should be a small part. Above 2**20 that would take minutes, and it is not.
    slides = max(bench.settings.slides, min(4 * window, 1 << 22))
    if name == "panes":
        slides = max(1, min(slides, (1 << 26) // window))
    column = bench.column(operator, slides + window - 1)
    lo = np.arange(slides)
    hi = lo + window
    out = np.empty(slides, column.dtype)
    seconds = best(partial(answer, column, window, lo, hi, out), bench.settings.budget)
    return row("bulk", name, operator, "bulk", window, slides, seconds)


def _bulk_forms(operator: str) -> dict[str, Any]:
    """Every technique, weft's own, and for floats what subtracting would take if it were right.

    Tables are built for each query, except where "built" says that another query has built them.
    """

    def by(made: Technique) -> Any:
        def run(column: Values, window: int, lo: Values, hi: Values, out: Values) -> None:
            made.answer(made.build(column, window), lo, hi, out)

        return run

    def by_built(made: Technique) -> Any:
        built: dict[tuple[int, int], Any] = {}

        def run(column: Values, window: int, lo: Values, hi: Values, out: Values) -> None:
            if (id(column), window) not in built:
                built.clear()
                built[id(column), window] = made.build(column, window)
            made.answer(built[id(column), window], lo, hi, out)

        return run

    def by_prefix(column: Values, window: int, lo: Values, hi: Values, out: Values) -> None:
        prefix_answers(prefix_sums(column), lo, hi, out)

    forms = {name: by(technique(name, operator)) for name in (*techniques_for(operator), "blocks")}
    forms["blocks, built"] = by_built(technique("blocks", operator))
    forms["touch"] = lambda column, window, lo, hi, out: touch(column, lo, hi, out)
    if operator == "int_sum":
        forms["prefix"] = by_prefix
    if operator == "float_sum":
        subtracting = OPERATORS["int_sum"].algebra
        wrong = panes_inv(Operator(add, algebra=subtracting, remove=take_away))
        forms["subtraction"] = by(compiled(wrong, "subtraction"))
        forms["compensated"] = lambda column, window, lo, hi, out: compensated(column, lo, hi, out)
    return forms


def group_rows(bench: Bench) -> Iterable[Row]:
    """As many partials in one group and in many: windows begin and end with their group."""
    total = max(bench.settings.slides, 20 * max(bench.settings.groups))
    for operator, name in (("int_sum", "slick_deque_inv"), ("float_sum", "two_stacks"), ("max", "two_stacks")):
        bench.say(f"groups  {operator}  {name}")
        made = technique(name, operator)
        for groups in (1, *bench.settings.groups):
            size = total // groups
            place = np.arange(groups * size)
            begins = place - place % size
            lo = np.maximum(begins, place - GROUP_WINDOW + 1)
            hi = place + 1
            column = bench.column(operator, len(place))
            out = np.empty(len(place), column.dtype)
            tables = made.build(column, GROUP_WINDOW)
            seconds = best(partial(made.answer, tables, lo, hi, out), bench.settings.budget)
            yield row("groups", name, operator, "bulk", GROUP_WINDOW, len(place), seconds, groups=groups)
