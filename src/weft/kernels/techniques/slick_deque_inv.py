"""SlickDeque(Inv): Panes(Inv) with a running aggregate for each range.

The aggregate of the whole window is updated at every step. Those of the other ranges are updated when an answer needs
them, all in one pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from weft.kernels.techniques.combine import Column, Operator
from weft.kernels.techniques.panes_inv import subtract_on_evict
from weft.kernels.techniques.sliding import Slider, sliding
from weft.kernels.techniques.technique import BEGIN, END, OWN_MARKS, SLOTS, Technique

COVERED, RANGES = OWN_MARKS, OWN_MARKS + 1
"""Marks: the running aggregates of `RANGES` ranges cover the partials before COVERED."""


def running_tables(values: Column, longest: int, ranges: int) -> tuple[Column, ...]:
    """The running aggregate of each range, and where the range begins."""
    return np.zeros((ranges, *values.shape[1:]), values.dtype), np.zeros(ranges, np.int64)


def slick_deque_inv(operator: Operator) -> Technique:
    """SlickDeque(Inv) for one operator.

    requires  an operator that can remove exactly
    cost      2 operations per slide and range, always
    space     n, and one per range
    source    dissertation, 4.2.1.1, algorithm 2
    """
    lift, combine, remove, load, store = operator.lift, operator.combine, operator.remove, operator.load, operator.store
    lower, edition = operator.lower, operator.edition
    assert remove is not None

    @register_jitable
    def enter(state: Any) -> None:
        values, marks, running, _ = state
        element = lift(values, marks[END] & marks[SLOTS])
        if marks[BEGIN] < marks[END]:
            element = combine(values, load(running, 0), element)
        else:
            marks[RANGES] = 0
        store(running, 0, element)
        marks[END] += 1

    @register_jitable
    def leave(state: Any) -> None:
        values, marks, running, begins = state
        oldest = lift(values, marks[BEGIN] & marks[SLOTS])
        store(running, 0, remove(values, load(running, 0), oldest))
        # Its slot will be reused, so ranges that begin with it are updated now. They are the first ones.
        j = 1
        while j < marks[RANGES] and begins[j] == marks[BEGIN]:
            store(running, j, remove(values, load(running, j), oldest))
            begins[j] += 1
            j += 1
        marks[BEGIN] += 1

    @register_jitable
    def whole_window(state: Any) -> Any:
        return load(state[2], 0)

    @register_jitable
    def begin_ranges(state: Any, firsts: Any) -> None:
        """Compute each range from its own partials, if there are no earlier aggregates to update."""
        values, marks, running, begins = state
        if len(firsts) > len(begins):
            raise ValueError("more ranges than the tables were built for")
        for j in range(1, len(firsts)):
            element = lift(values, firsts[j] & marks[SLOTS])
            for p in range(firsts[j] + 1, marks[END]):
                element = combine(values, element, lift(values, p & marks[SLOTS]))
            store(running, j, element)
            begins[j] = firsts[j]

    @register_jitable
    def one_step(state: Any, firsts: Any) -> bool:
        """Whether, since the last answers, one partial entered, and one left every range but the first."""
        _, marks, _, begins = state
        if marks[RANGES] != len(firsts) or marks[COVERED] != marks[END] - 1:
            return False
        others = 0
        for j in range(1, len(firsts)):
            others += begins[j] + 1 != firsts[j]
        return others == 0

    @register_jitable
    def catch_up(state: Any, firsts: Any) -> None:
        values, marks, running, begins = state
        for j in range(1, len(firsts)):
            element = load(running, j)
            for p in range(marks[COVERED], marks[END]):
                element = combine(values, element, lift(values, p & marks[SLOTS]))
            for p in range(begins[j], firsts[j]):
                element = remove(values, element, lift(values, p & marks[SLOTS]))
            begins[j] = firsts[j]
            store(running, j, element)

    @register_jitable
    def many(state: Any, firsts: Any, out: Any) -> None:
        _ = edition
        values, marks, running, begins = state
        store(out, 0, lower(values, load(running, 0)))
        if one_step(state, firsts):
            # One partial each way needs no loops over partials: ranges take a third of the time without them.
            slots = marks[SLOTS]
            newest = lift(values, marks[COVERED] & slots)
            for j in range(1, len(firsts)):
                oldest = lift(values, begins[j] & slots)
                element = remove(values, combine(values, load(running, j), newest), oldest)
                store(running, j, element)
                store(out, j, lower(values, element))
            for j in range(1, len(firsts)):
                begins[j] = firsts[j]
        else:
            if marks[RANGES] != len(firsts) or marks[COVERED] <= marks[BEGIN]:
                begin_ranges(state, firsts)
            else:
                catch_up(state, firsts)
            for j in range(1, len(firsts)):
                store(out, j, lower(values, load(running, j)))
        marks[COVERED], marks[RANGES] = marks[END], len(firsts)

    slider = Slider(running_tables, enter, leave, whole_window, many=many)
    return sliding(operator, slider, subtract_on_evict(operator))
