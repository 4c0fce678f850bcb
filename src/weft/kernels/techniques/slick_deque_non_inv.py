"""SlickDeque(Non-Inv): a deque of the partials that may still be chosen; those that a newer one beats are dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from weft.kernels.techniques.combine import Column, Operator
from weft.kernels.techniques.sliding import Slider, ring_size, sliding
from weft.kernels.techniques.technique import BEGIN, END, OWN_MARKS, SLOTS, WRAP, Longs, Technique

HEAD, TAIL = OWN_MARKS, OWN_MARKS + 1
"""Marks: the nodes of the deque are `[HEAD, TAIL)`, oldest first; each beats all that come after it."""


def nodes(values: Column, longest: int, ranges: int) -> tuple[Column, ...]:
    """The elements of the deque, and the numbers of their partials."""
    size = ring_size(longest)
    return np.zeros((size, *values.shape[1:]), values.dtype), np.zeros(size, np.int64)


def slick_deque_non_inv(operator: Operator) -> Technique:
    """SlickDeque(Non-Inv) for one operator.

    requires  a selective operator: one of the two is chosen
    cost      below 2 operations per slide, amortised, n at worst; none per answer, for any number of ranges
    space     2 to 2n, depending on the values; 2n are allocated
    source    dissertation, 4.2.1.2, algorithm 3
    """
    lift, combine, load, store = operator.lift, operator.combine, operator.load, operator.store
    lower, edition = operator.lower, operator.edition

    @register_jitable
    def enter(state: Any) -> None:
        values, marks, table, numbers = state
        end, wrap, head, tail = marks[END], marks[WRAP], marks[HEAD], marks[TAIL]
        if marks[BEGIN] == end:
            tail = head
        element = lift(values, end & marks[SLOTS])
        while tail > head and combine(values, load(table, (tail - 1) & wrap), element) == element:
            tail -= 1
        store(table, tail & wrap, element)
        numbers[tail & wrap] = end
        marks[TAIL] = tail + 1
        marks[END] = end + 1

    @register_jitable
    def leave(state: Any) -> None:
        _, marks, _, numbers = state
        if numbers[marks[HEAD] & marks[WRAP]] == marks[BEGIN]:
            marks[HEAD] += 1
        marks[BEGIN] += 1

    @register_jitable
    def whole_window(state: Any) -> Any:
        return load(state[2], state[1][HEAD] & state[1][WRAP])

    @register_jitable
    def many(state: Any, firsts: Any, out: Any) -> None:
        """A node answers every range that begins after the previous node: one pass over ranges and deque."""
        _ = edition
        values, marks, table, numbers = state
        wrap = marks[WRAP]
        j = 0
        for node in range(marks[HEAD], marks[TAIL]):
            answer = lower(values, load(table, node & wrap))
            number = numbers[node & wrap]
            while j < len(firsts) and firsts[j] <= number:
                store(out, j, answer)
                j += 1

    slider = Slider(nodes, enter, leave, whole_window, many=many)
    return sliding(operator, slider, _over_a_column(operator))


def _over_a_column(operator: Operator) -> Any:
    lift, combine, load, store, lower = operator.lift, operator.combine, operator.load, operator.store, operator.lower
    edition = operator.edition

    def answer_deque(tables: Any, lo: Longs, hi: Longs, out: Column) -> None:
        """Write the aggregate of partials `lo[i]:hi[i]` to `out[i]`.

        requires  lo < hi, both never decreasing, no range longer than `longest`
        cost      below 2 operations per partial; the branch depends on values and is often mispredicted
        space     two columns of `longest`
        """
        _ = edition
        values, marks, table, numbers = tables
        wrap = marks[WRAP]
        head = tail = end = 0
        for q in range(len(lo)):
            first = lo[q]
            if first >= end:
                head = tail = 0
                end = first
            while head < tail and numbers[head & wrap] < first:
                head += 1
            for p in range(end, hi[q]):
                element = lift(values, p)
                while tail > head and combine(values, load(table, (tail - 1) & wrap), element) == element:
                    tail -= 1
                store(table, tail & wrap, element)
                numbers[tail & wrap] = p
                tail += 1
            end = hi[q]
            store(out, q, lower(values, load(table, head & wrap)))

    return answer_deque
