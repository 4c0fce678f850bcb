"""Two stacks: aggregates of the older partials up to the border between the stacks, and one of all partials after it.

Of the stack that partials enter, only the top aggregate is ever read, so only this element is kept. The stacks are
flipped at the first answer after the older one is empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from weft.kernels.techniques.combine import Column, Operator
from weft.kernels.techniques.sliding import Slider, leave_only, ring_size, sliding
from weft.kernels.techniques.technique import BEGIN, END, OWN_MARKS, SLOTS, WRAP, Longs, Technique

BORDER = OWN_MARKS
"""Mark: the partials before it are in the older stack."""


def stacks(values: Column, longest: int, ranges: int) -> tuple[Column, ...]:
    """The older stack, and the aggregate of the newer one."""
    size = ring_size(longest)
    return np.zeros((size, *values.shape[1:]), values.dtype), np.zeros((1, *values.shape[1:]), values.dtype)


def two_stacks(operator: Operator) -> Technique:
    """Two stacks for one operator.

    requires  an associative operator
    cost      3 operations per slide, amortised; n when the stacks are flipped
    space     2n
    source    dissertation, 2.3.2; Tangwongsan, Hirzel and Schneider 2017
    """
    lift, combine, load, store = operator.lift, operator.combine, operator.load, operator.store

    @register_jitable
    def enter(state: Any) -> None:
        values, marks, _, newer = state
        end = marks[END]
        if marks[BEGIN] == end:
            marks[BORDER] = end
        element = lift(values, end & marks[SLOTS])
        if marks[BORDER] < end:
            element = combine(values, load(newer, 0), element)
        store(newer, 0, element)
        marks[END] = end + 1

    @register_jitable
    def whole_window(state: Any) -> Any:
        values, marks, older, newer = state
        begin, end, wrap, slots = marks[BEGIN], marks[END], marks[WRAP], marks[SLOTS]
        if begin >= marks[BORDER]:
            element = lift(values, (end - 1) & slots)
            store(older, (end - 1) & wrap, element)
            for p in range(end - 2, begin - 1, -1):
                element = combine(values, lift(values, p & slots), element)
                store(older, p & wrap, element)
            marks[BORDER] = end
            return element
        if marks[BORDER] == end:
            return load(older, begin & wrap)
        return combine(values, load(older, begin & wrap), load(newer, 0))

    return sliding(operator, Slider(stacks, enter, leave_only, whole_window), _over_a_column(operator))


def _over_a_column(operator: Operator) -> Any:
    lift, combine, load, store, lower = operator.lift, operator.combine, operator.load, operator.store, operator.lower
    edition = operator.edition

    def answer_stacks(tables: Any, lo: Longs, hi: Longs, out: Column) -> None:
        """Write the aggregate of partials `lo[i]:hi[i]` to `out[i]`.

        Both scans run straight through memory, and no branch depends on a value.

        requires  lo < hi, both never decreasing, no range longer than `longest`
        cost      at most two combinations per partial, one per answer
        space     one column of `longest`
        """
        _ = edition
        values, older = tables[0], tables[2]
        if len(lo) == 0:
            return
        base = border = end = lo[0]  # older[p - base]: partials p up to the border; newer: from the border up to end
        newer = lift(values, border)
        for q in range(len(lo)):
            first, until = lo[q], hi[q]
            if first >= border:
                element = lift(values, until - 1)
                store(older, until - 1 - first, element)
                for p in range(until - 2, first - 1, -1):
                    element = combine(values, lift(values, p), element)
                    store(older, p - first, element)
                base, border, end = first, until, until
            elif until == border:
                element = load(older, first - base)
            else:
                if end == border:
                    newer = lift(values, end)
                    end += 1
                while end < until:  # no `range`: mostly one partial enters, and setting up the loop would cost more
                    newer = combine(values, newer, lift(values, end))
                    end += 1
                element = combine(values, load(older, first - base), newer)
            store(out, q, lower(values, element))

    return answer_stacks
