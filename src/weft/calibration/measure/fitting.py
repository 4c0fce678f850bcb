"""Reading prices from times: least squares without prices below a least one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

Say = Callable[[str], None]
"""Takes what is being measured, for people who wait."""


def least_squares(
    rows: Sequence[Sequence[float]],
    seconds: Sequence[float],
    least: float = 0.0,
    known: Sequence[float] | None = None,
) -> list[float]:
    """Relative errors count, so that long batches do not speak alone. A term that comes out below the least is that.

    `known` are the seconds of each row that something else explains.
    """
    matrix, totals = np.array(rows, float), np.array(seconds, float)
    matrix = matrix / totals[:, None]
    right = 1 - (np.zeros(len(totals)) if known is None else np.array(known) / totals) - least * matrix.sum(axis=1)
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
    """Seconds, the least of some runs: what else the machine does only adds."""
    times_taken = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        times_taken.append(time.perf_counter() - begun)
    return min(times_taken)
