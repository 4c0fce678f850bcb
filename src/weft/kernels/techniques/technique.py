"""The shape that every technique has: over a whole column at once, and one partial at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from weft.kernels.techniques.combine import Column

Tables = tuple[Column, ...]

State = tuple[Column, ...]
"""The partials inside (a ring), marks, then a technique's own tables. Copies of the arrays are a saved state."""

Longs = NDArray[np.int64]

BEGIN, END = 0, 1
"""Marks: partials are numbered as they come, and `[BEGIN, END)` are inside. Both equal: nothing is."""
WRAP, SLOTS = 2, 3
"""Marks: partial p stands at `p & WRAP` in a technique's tables and at `p & SLOTS` among the values."""
OWN = 4
"""From here on marks are a technique's own."""


@dataclass(frozen=True, slots=True)
class Steps:
    """One partial at a time. Everything but `start` may be called from compiled code, and the state moved in between.

    `start(like, longest, ranges=1)` makes the state for a column like this one. Never more than `longest` partials are
    inside: `evict` before `insert`. Answers that are positions are places in the state's own ring of partials.
    """

    start: Callable[..., State]
    insert: Callable[[Any, Column, int], None]
    """`insert(state, column, i)`: `column[i]` is the newest."""
    evict: Callable[[Any], None]
    """`evict(state)`: the oldest leaves."""
    ask: Callable[[Any, Column, int], None]
    """`ask(state, out, q)`: the aggregate of all that is inside, which is at least one, to `out[q]`."""
    slide: Callable[[Any, Column, int, int, Column, int], None]
    """`slide(state, column, i, window, out, q)`: insert, leave `window` partials inside, ask."""
    run: Callable[[Any, Column, int, Column], None]
    """`run(state, column, window, out)`: a slide for each partial of a column; what was inside before still is."""
    ask_many: Callable[[Any, Longs, Column], None] | None = None
    """`ask_many(state, firsts, out)`: the aggregates of `[firsts[j], END)` to `out[j]`. The first range is all that is
    inside, and none is longer than the one before: `firsts[0] == BEGIN`, ascending, below END."""
    run_many: Callable[[Any, Column, Longs, Column], None] | None = None
    """`run_many(state, column, firsts, out)`: for each partial of a column one leaves and one enters, `firsts` move on
    by one, and `[firsts[j], END)` goes to `out[i, j]`."""


@dataclass(frozen=True, slots=True)
class Technique:
    """Tables are built once a column; every query over the column is answered from them.

    `build(values, longest)` serves ranges of up to `longest` partials, `build(values, longest, ranges)` as many at
    once. `answer(tables, lo, hi, out)` writes the aggregate of partials `lo[i]:hi[i]`, older to newer, to `out[i]`.
    Those that slide ask for `lo` and `hi` that never fall, which the windows of one query are over all groups, and
    keep scratch in their tables: one caller at a time.
    """

    build: Callable[..., Tables]
    answer: Callable[[Any, Longs, Longs, Column], None]
    answer_many: Callable[[Any, Longs, Longs, Column], None] | None = None
    """`answer_many(tables, lo, hi, out)`: the aggregates of `lo[i, j]:hi[i]` to `out[i, j]`; each row of lo ascends."""
    steps: Steps | None = None


def compiled(technique: Technique, label: str) -> Technique:
    """The same, compiled when first called and kept on disk under the label. What allocates stays Python."""

    def kernel(function: Any) -> Any:
        # Nothing here makes or keeps an array, so references need not be counted: that took nine tenths of DABA's step.
        return None if function is None else njit(cache=True, nogil=True, _nrt=False)(labelled(function, label))

    steps = technique.steps
    if steps is not None:
        steps = replace(steps, **{f.name: kernel(getattr(steps, f.name)) for f in fields(steps) if f.name != "start"})
    return Technique(technique.build, kernel(technique.answer), kernel(technique.answer_many), steps)


def labelled(function: Any, label: str) -> Any:
    """The function under a name of its own, as functions made by one line of code need it.

    numba keeps functions of one name in one index. Two processes that add to it at the same time can each give the
    same place to what they compiled, and from then on one kernel is loaded for another.
    """
    named = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    named.__qualname__, named.__module__ = f"{function.__qualname__}.{label}", function.__module__
    named.__doc__ = function.__doc__
    return named
