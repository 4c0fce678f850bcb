"""FlatFIT: the aggregate at partial p reaches to where its pointer says, and grows whenever an answer passes it.

An answer follows the pointers to the end. Then all partials that it passed, except the first, point to the end. In the
first answer, and later over partials that no answer has passed, every pointer is to the next partial (wReset): then one
backward scan is enough, and the positions are not stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from weft.kernels.techniques.combine import Column, Operator
from weft.kernels.techniques.sliding import Slider, leave_only, ring_size, sliding
from weft.kernels.techniques.technique import BEGIN, END, OWN_MARKS, SLOTS, WRAP, Technique

PASSED = OWN_MARKS
"""Mark: from here on every pointer is to the next partial, and every aggregate is that of one partial."""


def index(values: Column, longest: int, ranges: int) -> tuple[Column, ...]:
    """Aggregates, pointers, and the positions that an answer passes."""
    size = ring_size(longest)
    return (
        np.zeros((size, *values.shape[1:]), values.dtype),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
    )


def flat_fit(operator: Operator) -> Technique:
    """FlatFIT for one operator.

    requires  an associative operator
    cost      3 operations per slide, amortised, n at a wReset; for all ranges at once 3 per range
    space     2n, and the positions
    source    dissertation, chapter 3, algorithm 1
    """
    lift, combine, load, store = operator.lift, operator.combine, operator.load, operator.store

    @register_jitable
    def enter(state: Any) -> None:
        values, marks, table, pointers, _ = state
        end = marks[END]
        if marks[BEGIN] == end:
            marks[PASSED] = end
        store(table, end & marks[WRAP], lift(values, end & marks[SLOTS]))
        pointers[end & marks[WRAP]] = end + 1
        marks[END] = end + 1

    @register_jitable
    def reset(state: Any, first: int) -> Any:
        values, marks, table, pointers, _ = state
        end, wrap = marks[END], marks[WRAP]
        element = load(table, (end - 1) & wrap)
        for p in range(end - 2, first, -1):
            element = combine(values, load(table, p & wrap), element)
            store(table, p & wrap, element)
            pointers[p & wrap] = end
        marks[PASSED] = end
        if first < end - 1:
            element = combine(values, load(table, first & wrap), element)
        return element

    @register_jitable
    def since(state: Any, first: int) -> Any:
        values, marks, table, pointers, positions = state
        if first >= marks[PASSED]:
            return reset(state, first)
        end, wrap = marks[END], marks[WRAP]
        depth = 0
        p = first
        while p != end:
            positions[depth] = p
            depth += 1
            p = pointers[p & wrap]
        element = load(table, positions[depth - 1] & wrap)
        if depth > 2:
            marks[PASSED] = max(marks[PASSED], positions[depth - 2] + 1)
        for i in range(depth - 2, -1, -1):
            slot = positions[i] & wrap
            element = combine(values, load(table, slot), element)
            if i > 0:
                store(table, slot, element)
                pointers[slot] = end
        return element

    @register_jitable
    def whole_window(state: Any) -> Any:
        return since(state, state[1][BEGIN])

    return sliding(operator, Slider(index, enter, leave_only, whole_window, since))
