"""DABA: two stacks that are flipped a little at every step, so that no step is long.

    BEGIN     LEFT      RIGHT     ALIGNED   BACK      END
    |---------|---------|---------|---------|---------|
    to BACK   to RIGHT  from      to BACK   from         what each aggregate spans, from or to its own partial
                        RIGHT               BACK

LEFT..RIGHT and RIGHT..ALIGNED have the same length. With ALIGNED..BACK they are one shorter than the difference between
BEGIN..BACK and BACK..END; or all of them are empty. So BEGIN is always before LEFT, and its aggregate reaches to BACK.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from weft.kernels.techniques.combine import Column, Operator
from weft.kernels.techniques.sliding import Slider, ring_size, sliding
from weft.kernels.techniques.technique import BEGIN, END, OWN_MARKS, SLOTS, WRAP, Technique

LEFT, RIGHT, ALIGNED, BACK = OWN_MARKS, OWN_MARKS + 1, OWN_MARKS + 2, OWN_MARKS + 3


def aggregates(values: Column, longest: int, ranges: int) -> tuple[Column, ...]:
    return (np.zeros((ring_size(longest), *values.shape[1:]), values.dtype),)


def daba(operator: Operator) -> Technique:
    """DABA for one operator.

    requires  an associative operator
    cost      5 operations per slide, amortised; never more than 8
    space     2n
    source    dissertation, 2.3.2; Tangwongsan, Hirzel and Schneider 2017
    """
    lift, combine, load, store = operator.lift, operator.combine, operator.load, operator.store

    @register_jitable
    def shrink(state: Any, left: int, right: int, aligned: int, back: int) -> None:
        """One partial joins BEGIN..LEFT, one ALIGNED..BACK: three operations."""
        values, marks, table = state
        wrap = marks[WRAP]
        element = load(table, left & wrap)
        if right < aligned:
            element = combine(values, element, load(table, (aligned - 1) & wrap))
        newest = lift(values, (aligned - 1) & marks[SLOTS])
        if aligned < back:
            rest = load(table, aligned & wrap)
            element = combine(values, element, rest)
            newest = combine(values, newest, rest)
        store(table, left & wrap, element)
        store(table, (aligned - 1) & wrap, newest)

    @register_jitable
    def fix_up(state: Any) -> None:
        """Read and write each mark once: for the compiler, marks and tables may share memory."""
        marks = state[1]
        begin, left, right, end = marks[BEGIN], marks[LEFT], marks[RIGHT], marks[END]
        aligned, back = marks[ALIGNED], marks[BACK]
        if begin == back:
            left = right = aligned = back = end
        else:
            if left == back:
                left, right = begin, back
                aligned = back = end
            if left == right:
                right += 1
                aligned += 1
            else:
                shrink(state, left, right, aligned, back)
                aligned -= 1
            left += 1
        marks[LEFT], marks[RIGHT], marks[ALIGNED], marks[BACK] = left, right, aligned, back

    @register_jitable
    def enter(state: Any) -> None:
        values, marks, table = state
        end = marks[END]
        if marks[BEGIN] == end:
            marks[BACK] = end
        element = lift(values, end & marks[SLOTS])
        if marks[BACK] < end:
            element = combine(values, load(table, (end - 1) & marks[WRAP]), element)
        store(table, end & marks[WRAP], element)
        marks[END] = end + 1
        fix_up(state)

    @register_jitable
    def leave(state: Any) -> None:
        state[1][BEGIN] += 1
        fix_up(state)

    @register_jitable
    def whole_window(state: Any) -> Any:
        values, marks, table = state
        element = load(table, marks[BEGIN] & marks[WRAP])
        if marks[BACK] < marks[END]:
            element = combine(values, element, load(table, (marks[END] - 1) & marks[WRAP]))
        return element

    return sliding(operator, Slider(aggregates, enter, leave, whole_window))
