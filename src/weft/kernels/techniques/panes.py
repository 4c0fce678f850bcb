"""Panes: each window is computed from all its partials. The reference for all techniques, best for tiny windows."""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

from weft.kernels.techniques.combine import OPERATORS, Column, Operator
from weft.kernels.techniques.sliding import Slider, leave_only, sliding
from weft.kernels.techniques.technique import BEGIN, END, SLOTS, Longs, Technique, compiled


@register_jitable
def enter(state: Any) -> None:
    state[1][END] += 1


def no_tables(values: Column, longest: int, ranges: int) -> tuple[Column, ...]:
    """The partials themselves are the table."""
    return ()


def panes(operator: Operator) -> Technique:
    """Panes for one operator.

    requires  an associative operator
    cost      n - 1 operations per answer
    space     n
    source    dissertation, 2.3.2; Li et al. 2005
    """
    lift, combine, store, lower = operator.lift, operator.combine, operator.store, operator.lower
    edition = operator.edition

    @register_jitable
    def since(state: Any, first: int) -> Any:
        values, marks = state
        element = lift(values, first & marks[SLOTS])
        for p in range(first + 1, marks[END]):
            element = combine(values, element, lift(values, p & marks[SLOTS]))
        return element

    @register_jitable
    def whole_window(state: Any) -> Any:
        return since(state, state[1][BEGIN])

    def answer_panes(tables: Any, lo: Longs, hi: Longs, out: Column) -> None:
        """Write the aggregate of partials `lo[i]:hi[i]` to `out[i]`.

        requires  lo < hi, within the partials; in any order
        cost      O(hi - lo) per answer
        space     none
        """
        _ = edition
        values = tables[0]
        for i in range(len(lo)):
            element = lift(values, lo[i])
            for p in range(lo[i] + 1, hi[i]):
                element = combine(values, element, lift(values, p))
            store(out, i, lower(values, element))

    return sliding(operator, Slider(no_tables, enter, leave_only, whole_window, since), answer_panes)


PANES = {name: compiled(panes(operator), f"panes_{name}") for name, operator in OPERATORS.items()}
