"""The measurements of `weft bench techniques`: each part gives rows. Long because it holds every part, each short."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.kernels import OPERATORS, TECHNIQUES, Operator, Technique, prefix_answers, prefix_sums, technique
from weft.kernels.techniques.combine import add, take_away
from weft.kernels.techniques.panes_inv import panes_inv
from weft.kernels.techniques.technique import BEGIN, END, compiled
from weft_bench.benchmark import BadSetting, Row, Say
from weft_bench.benchmarks.techniques.operation_counts import count_operations, table_4
from weft_bench.benchmarks.techniques.settings import TechniqueSettings
from weft_bench.benchmarks.techniques.timing import clock_nanoseconds, compensated, separately, step_nanoseconds, touch
from weft_bench.machine import load

Values = NDArray[Any]

CHUNK = 1 << 16
"""Slides a call: calling costs microseconds."""
PANES_LIMIT = 1 << 12
"""Longer windows would take Panes seconds for a handful of answers."""
LATENCY_WINDOW = 1 << 10
OUTLIERS = 0.00005
"""Both as in the dissertation: windows of 1024, and the highest 0.005 % left out."""
GROUP_WINDOW = 16
MANY_WINDOW = 1 << 10


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

    Tables are built anew for each query, except where "built" says that another query has built them.
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
        yield from _apart(bench, name, operator, ranges)


def _apart(bench: Bench, name: str, operator: str, ranges: Values) -> Iterable[Row]:
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
    """Operations a slide, amortised over two windows and at worst, and the room of a state, beside table 4."""
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
    # What the bars are about comes first: a run that is stopped has said it.
    bulk_rows,
    step_rows,
    together_rows,
    group_rows,
    multi_rows,
)
"""Slides a second, in rounds of which the fastest counts."""

ONCE: Sequence[Callable[[Bench], Iterable[Row]]] = (latency_rows, memory_rows)
