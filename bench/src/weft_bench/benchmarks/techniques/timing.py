"""Loops for measuring techniques from compiled code: a clock around every step, and one structure for every range."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from weft.kernels.techniques.combine import Column
from weft.kernels.techniques.technique import Longs, State, Technique

CLOCK = time.CLOCK_MONOTONIC
_clock_gettime = ctypes.CDLL(None).clock_gettime
_clock_gettime.argtypes = [ctypes.c_int, ctypes.c_size_t]
_clock_gettime.restype = ctypes.c_int


@njit(nogil=True, _nrt=False)
def _now(clock: Longs, address: int) -> int:
    _clock_gettime(CLOCK, address)
    return clock[0] * 1_000_000_000 + clock[1]  # type: ignore[no-any-return]


def _slide(technique: Technique) -> Callable[..., None]:
    assert technique.steps is not None
    return technique.steps.slide


def step_nanoseconds(technique: Technique, state: State, column: Column, window: int) -> NDArray[np.int64]:
    """What each slide over the column took, with the clock's own time still in it."""
    slide = _slide(technique)

    @njit(nogil=True, _nrt=False)
    def run(state: Any, column: Column, window: int, out: Column, clock: Longs, address: int, taken: Longs) -> None:
        for i in range(len(column)):
            before = _now(clock, address)
            slide(state, column, i, window, out, 0)
            taken[i] = _now(clock, address) - before

    clock = np.zeros(2, np.int64)  # seconds and nanoseconds, as the system writes them
    taken = np.empty(len(column), np.int64)
    run(state, column, window, np.empty(1, column.dtype), clock, clock.ctypes.data, taken)
    return taken


def clock_nanoseconds(times: int = 10_000) -> int:
    """What reading the clock takes: the median time between two readings."""

    @njit(nogil=True, _nrt=False)
    def run(clock: Longs, address: int, taken: Longs) -> None:
        for i in range(len(taken)):
            before = _now(clock, address)
            taken[i] = _now(clock, address) - before

    clock, taken = np.zeros(2, np.int64), np.empty(times, np.int64)
    run(clock, clock.ctypes.data, taken)
    return int(np.median(taken))


def separately(technique: Technique, states: list[State]) -> Any:
    """`run(column, windows, out)`: each partial goes to all structures before the next one.

    The arrays of all structures are stacked, so that one loop serves any number of them.
    """
    slide = _slide(technique)
    stacked = tuple(np.stack(arrays) for arrays in zip(*states))

    @njit(nogil=True, _nrt=False)
    def run_3(stacked: Any, column: Column, windows: Longs, out: Column) -> None:
        values, marks, table = stacked
        for i in range(len(column)):
            for j in range(len(windows)):
                slide((values[j], marks[j], table[j]), column, i, windows[j], out[i], j)

    @njit(nogil=True, _nrt=False)
    def run_4(stacked: Any, column: Column, windows: Longs, out: Column) -> None:
        values, marks, table, more = stacked
        for i in range(len(column)):
            for j in range(len(windows)):
                slide((values[j], marks[j], table[j], more[j]), column, i, windows[j], out[i], j)

    run = {3: run_3, 4: run_4}[len(stacked)]
    return lambda column, windows, out: run(stacked, column, windows, out)


@njit(cache=True, nogil=True, _nrt=False)
def touch(values: Column, lo: Longs, hi: Longs, out: Column) -> None:
    """Read what every technique reads and write what it writes, without an aggregate: the least a slide can take."""
    for q in range(len(lo)):
        out[q] = values[np.uint64(hi[q] - 1)] + lo[q]


@njit(cache=True, nogil=True, _nrt=False)
def compensated(values: NDArray[np.float64], lo: Longs, hi: Longs, out: NDArray[np.float64]) -> None:
    """Subtract on evict with the lost digits kept (Neumaier 1974): measured beside, used nowhere. NaN stays forever."""
    total = lost = 0.0
    begin = end = lo[0] if len(lo) else 0
    for q in range(len(lo)):
        for p in range(end, hi[q]):
            value = values[np.uint64(p)]
            following = total + value
            lost += (total - following) + value if abs(total) >= abs(value) else (value - following) + total
            total = following
        for p in range(begin, lo[q]):
            value = -values[np.uint64(p)]
            following = total + value
            lost += (total - following) + value if abs(total) >= abs(value) else (value - following) + total
            total = following
        begin, end = lo[q], hi[q]
        out[q] = total + lost
