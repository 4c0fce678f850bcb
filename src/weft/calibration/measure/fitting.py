"""Costs from measured times: least squares with a lower bound for each cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

Say = Callable[[str], None]
"""Shows the user what is being measured."""


def least_squares(
    rows: Sequence[Sequence[float]],
    seconds: Sequence[float],
    least: float = 0.0,
    explained: Sequence[float] | None = None,
) -> list[float]:
    """Seconds per unit of each term, at least `least`; minimises relative errors, so long batches do not dominate.

    `explained` are the seconds of each row that other terms explain already.
    """
    matrix, totals = np.array(rows, float), np.array(seconds, float)
    matrix = matrix / totals[:, None]
    explained_shares = np.zeros(len(totals)) if explained is None else np.array(explained) / totals
    right = 1 - explained_shares - least * matrix.sum(axis=1)
    coefficients = np.zeros(matrix.shape[1])
    used = list(range(matrix.shape[1]))
    while used:
        scale = np.abs(matrix[:, used]).max(axis=0)
        scale[scale == 0] = 1.0
        solution = np.linalg.lstsq(matrix[:, used] / scale, right, rcond=None)[0] / scale
        if (solution >= 0).all():
            coefficients[used] = solution
            break
        used.pop(int(np.argmin(solution * scale)))
    return [least + float(v) for v in coefficients]


def best_of(call: Callable[[], object], times: int = 5) -> float:
    """The least seconds of several runs: other work on the machine only adds time."""
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)
