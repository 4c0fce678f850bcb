"""Prefix sums: two reads and one subtraction per answer. Only for integers, where subtraction undoes addition."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from weft.kernels.techniques.technique import Tables, Technique


@njit(cache=True, nogil=True)
def prefix_sums(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sums of the first 0, 1, ... n partials, modulo 2**64.

    requires  integers
    cost      one addition per partial
    space     the result
    """
    prefix = np.empty(len(values) + 1, np.int64)
    total = np.int64(0)
    prefix[0] = total
    for i in range(len(values)):
        total += values[i]
        prefix[i + 1] = total
    return prefix


@njit(cache=True, nogil=True)
def prefix_answers(
    prefix: NDArray[np.int64], lo: NDArray[np.int64], hi: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """Write the sum of partials `lo[i]:hi[i]` to `out[i]`; exact if the sum itself fits 64 bits.

    requires  lo <= hi
    cost      one subtraction per answer
    space     none
    """
    for i in range(len(lo)):
        out[i] = prefix[hi[i]] - prefix[lo[i]]


def _build(values: NDArray[np.int64], longest: int) -> Tables:
    return (prefix_sums(values),)


def _answer(tables: Tables, lo: NDArray[np.int64], hi: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    prefix_answers(tables[0], lo, hi, out)


PREFIX = {"int_sum": Technique(_build, _answer)}
