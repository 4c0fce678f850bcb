"""B-Int: base intervals of 1, 2, 4, ... partials, each computed with its last partial; an answer combines a few."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from weft.kernels.techniques.combine import Column, Operator
from weft.kernels.techniques.sliding import Slider, leave_only, ring_size, sliding
from weft.kernels.techniques.technique import BEGIN, END, SLOTS, WRAP, Technique


def intervals(values: Column, longest: int, ranges: int) -> tuple[Column, ...]:
    """Interval k of 2**h partials, `[k << h, k + 1 << h)`, is on level h; one array holds all levels in turn."""
    return (np.zeros((2 * ring_size(longest), *values.shape[1:]), values.dtype),)


@register_jitable
def interval_index(wrap: int, height: int, k: int) -> int:
    size = wrap + 1
    return 2 * size - (2 * size >> height) + (k & (wrap >> height))


def b_int(operator: Operator) -> Technique:
    """B-Int for one operator.

    requires  an associative operator
    cost      1 operation per insert, amortised, log2(n) at worst; up to 2 log2(n) per answer
    space     2 ** (ceil(log2 n) + 1)
    source    dissertation, 2.3.2; Arasu and Widom 2004
    """
    lift, combine, load, store = operator.lift, operator.combine, operator.load, operator.store

    @register_jitable
    def enter(state: Any) -> None:
        values, marks, table = state
        wrap, end = marks[WRAP], marks[END]
        element = lift(values, end & marks[SLOTS])
        store(table, interval_index(wrap, 0, end), element)
        height = 1
        # No answer reads an interval that begins before the window, nor any above it.
        while (end + 1) & ((1 << height) - 1) == 0 and (end >> height) << height >= marks[BEGIN]:
            element = combine(values, load(table, interval_index(wrap, height - 1, (end >> height) << 1)), element)
            store(table, interval_index(wrap, height, end >> height), element)
            height += 1
        marks[END] = end + 1

    @register_jitable
    def since(state: Any, first: int) -> Any:
        values, marks, table = state
        wrap, end = marks[WRAP], marks[END]
        height = 0
        while first & ((2 << height) - 1) == 0 and first + (2 << height) <= end:
            height += 1
        element = load(table, interval_index(wrap, height, first >> height))
        p = first + (1 << height)
        while p < end:
            while p & ((2 << height) - 1) == 0 and p + (2 << height) <= end:
                height += 1
            while p + (1 << height) > end:
                height -= 1
            element = combine(values, element, load(table, interval_index(wrap, height, p >> height)))
            p += 1 << height
        return element

    @register_jitable
    def whole_window(state: Any) -> Any:
        return since(state, state[1][BEGIN])

    return sliding(operator, Slider(intervals, enter, leave_only, whole_window, since))
