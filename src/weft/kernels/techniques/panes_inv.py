"""Panes(Inv), also R-Int or subtract-on-evict: a running aggregate; partials are combined on entry, removed on exit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from weft.kernels.techniques.combine import Column, Operator
from weft.kernels.techniques.sliding import Slider, sliding
from weft.kernels.techniques.technique import BEGIN, END, SLOTS, Longs, Technique


def running_table(values: Column, longest: int, ranges: int) -> tuple[Column, ...]:
    return (np.zeros((1, *values.shape[1:]), values.dtype),)


def panes_inv(operator: Operator) -> Technique:
    """Panes(Inv) for one operator.

    requires  an operator that can remove exactly
    cost      2 operations per slide, always
    space     n
    source    dissertation, 2.3.2; Li et al. 2005
    """
    lift, combine, remove, load, store = operator.lift, operator.combine, operator.remove, operator.load, operator.store
    assert remove is not None

    @register_jitable
    def enter(state: Any) -> None:
        values, marks, running = state
        element = lift(values, marks[END] & marks[SLOTS])
        if marks[BEGIN] < marks[END]:
            element = combine(values, load(running, 0), element)
        store(running, 0, element)
        marks[END] += 1

    @register_jitable
    def leave(state: Any) -> None:
        values, marks, running = state
        store(running, 0, remove(values, load(running, 0), lift(values, marks[BEGIN] & marks[SLOTS])))
        marks[BEGIN] += 1

    @register_jitable
    def whole_window(state: Any) -> Any:
        return load(state[2], 0)

    return sliding(operator, Slider(running_table, enter, leave, whole_window), subtract_on_evict(operator))


def subtract_on_evict(operator: Operator) -> Any:
    """The loop over a column for all techniques that remove the oldest partials."""
    lift, combine, remove, store, lower = (
        operator.lift, operator.combine, operator.remove, operator.store, operator.lower
    )  # fmt: skip
    assert remove is not None
    edition = operator.edition

    def answer_removing(tables: Any, lo: Longs, hi: Longs, out: Column) -> None:
        """Write the aggregate of partials `lo[i]:hi[i]` to `out[i]`.

        requires  lo < hi, both never decreasing
        cost      one combination and one removal per partial
        space     none: the column is its own window
        """
        _ = edition
        values = tables[0]
        if len(lo) == 0:
            return
        begin, end = lo[0], lo[0] + 1  # the partials inside `running`
        running = lift(values, begin)
        for q in range(len(lo)):
            first, until = lo[q], hi[q]
            if first >= end:
                running = lift(values, first)
                begin, end = first, first + 1
            while end < until:
                running = combine(values, running, lift(values, end))
                end += 1
            while begin < first:
                running = remove(values, running, lift(values, begin))
                begin += 1
            store(out, q, lower(values, running))

    return answer_removing
