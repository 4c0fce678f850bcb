"""Panes: each window anew from its partials. The reference for every other technique, and the best for tiny windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from weft.kernels.techniques.combine import OPERATORS, Column, Operator
from weft.kernels.techniques.technique import Tables, Technique


def build_panes(values: Column, longest: int) -> Tables:
    """The partials themselves are the table."""
    return (values,)


def panes(operator: Operator) -> Technique:
    """Panes for one operator."""
    lift, combine, store, lower = operator.lift, operator.combine, operator.store, operator.lower
    edition = operator.edition

    @njit(cache=True, nogil=True)
    def answer_panes(tables: Any, lo: NDArray[np.int64], hi: NDArray[np.int64], out: Column) -> None:
        """Write the aggregate of partials `lo[i]:hi[i]` to `out[i]`.

        requires  lo < hi, within the partials
        cost      O(hi - lo) an answer
        space     none
        """
        _ = edition
        (values,) = tables
        for i in range(len(lo)):
            element = lift(values, lo[i])
            for p in range(lo[i] + 1, hi[i]):
                element = combine(values, element, lift(values, p))
            store(out, i, lower(values, element))

    return Technique(build_panes, answer_panes)


PANES = {name: panes(operator) for name, operator in OPERATORS.items()}
