"""Measures the time of each technique over a column of partials, for each operator that it serves."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.calibration.measure.fitting import Say, best_of, least_squares
from weft.calibration.speeds import Speed, Speeds
from weft.kernels import OWN, accepts, technique
from weft.optimizer.choose_techniques import CANDIDATES

OPERATORS = ("int_sum", "float_sum", "argmax_last", "max", "moments_2", "comoments")
"""The other operators are about as fast as one of these (`priced_as`)."""
SHAPES = ((1, 1), (4, 1), (16, 1), (64, 1), (1024, 1), (64, 16), (1024, 256))
"""Partials per window, and per slide."""
MOST_COMBINED = 20_000_000
"""The limit for `panes`, which combines all partials of each window: more combinations take too long."""


def measure_speeds(say: Say, partials: int = 300_000) -> Speeds:
    """The speed of each technique over a column, per operator, with the memory settings of Python workers."""
    from weft.spark.worker import keep_freed_memory

    keep_freed_memory()
    speeds: dict[str, dict[str, Speed]] = {}
    for operator in OPERATORS:
        say(f"techniques for {operator}")
        names = [name for name in CANDIDATES if accepts(name, operator)]
        speeds[operator] = {name: _speed(name, operator, partials) for name in names}
    return speeds


def _speed(name: str, operator: str, partials: int) -> Speed:
    measured, values = technique(name, operator), _column(operator, partials)
    terms = ("answer",) if name in OWN else ("combined", "answer") if name == "panes" else ("passed", "answer")
    counts, seconds, builds = [], [], []
    for window, slide in SHAPES:
        hi = np.arange(window, partials + 1, slide, dtype=np.int64)
        lo = hi - window
        if name == "panes" and len(hi) * window > MOST_COMBINED:
            continue
        out = np.empty((len(hi), *values.shape[1:]), values.dtype)
        tables = measured.build(values, window)
        measured.answer(tables, lo[:10], hi[:10], out)  # compiles
        builds.append(best_of(lambda window=window: measured.build(values, window)))  # type: ignore[misc]
        seconds.append(best_of(lambda t=tables, lo=lo, hi=hi, out=out: measured.answer(t, lo, hi, out)))  # type: ignore[misc]
        counted = {"passed": partials, "combined": len(hi) * window, "answer": len(hi)}
        counts.append([float(counted[term]) for term in terms])
    nanoseconds = {term: 1e9 * each for term, each in zip(terms, least_squares(counts, seconds), strict=True)}
    return Speed(build=1e9 * float(np.median(builds)) / partials, **nanoseconds)


def _column(operator: str, partials: int) -> Any:
    random = np.random.default_rng(1)
    if operator in ("int_sum", "argmax_last", "max"):
        return random.integers(0, 1 << 40, partials)
    if operator == "float_sum":
        return random.random(partials)
    return np.ascontiguousarray(1 + random.random((partials, {"moments_2": 3, "comoments": 6}[operator])))
