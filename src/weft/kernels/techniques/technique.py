"""The interface of all techniques: over a whole column at once, and one partial at a time."""

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
"""The partials inside the window (a ring), marks, and a technique's own tables. Copy the arrays to save a state."""

Longs = NDArray[np.int64]

BEGIN, END = 0, 1
"""Marks: partials are numbered in the order of entry, and `[BEGIN, END)` are inside. Equal: the window is empty."""
WRAP, SLOTS = 2, 3
"""Marks: partial p is at `p & WRAP` in a technique's tables and at `p & SLOTS` among the values."""
LONGEST = 4
"""Mark: the most partials that may be inside, at least 1."""
OWN_MARKS = 5
"""The first of a technique's own marks."""


@dataclass(frozen=True, slots=True)
class Steps:
    """One partial at a time. All but `start` can be called from compiled code, and the state can move between calls.

    `start(like, longest, ranges=1)` creates the state for columns of the type of `like`. At most `longest` partials are
    inside: call `evict` before `insert`. Answers that are positions are positions in the state's ring of partials.
    """

    start: Callable[..., State]
    insert: Callable[[Any, Column, int], None]
    """`insert(state, column, i)`: `column[i]` enters."""
    evict: Callable[[Any], None]
    """`evict(state)`: the oldest leaves."""
    ask: Callable[[Any, Column, int], None]
    """`ask(state, out, q)`: the aggregate of all partials inside, at least one, to `out[q]`."""
    slide: Callable[[Any, Column, int, int, Column, int], None]
    """`slide(state, column, i, window, out, q)`: insert, keep `window` partials inside, ask."""
    run: Callable[[Any, Column, int, Column], None]
    """`run(state, column, window, out)`: one slide per partial of a column; partials that are inside already count."""
    ask_many: Callable[[Any, Longs, Column], None] | None = None
    """`ask_many(state, firsts, out)`: the aggregates of `[firsts[j], END)` to `out[j]`. The first range is the whole
    window, and no range is longer than the one before: `firsts[0] == BEGIN`, ascending, below END."""
    run_many: Callable[[Any, Column, Longs, Column], None] | None = None
    """`run_many(state, column, firsts, out)`: per partial of a column, one leaves and one enters, `firsts` increase
    by one, and `[firsts[j], END)` goes to `out[i, j]`."""


@dataclass(frozen=True, slots=True)
class Technique:
    """Tables are built once per column; every query over the column is answered from them.

    `build(values, longest)` serves ranges of up to `longest` partials, `build(values, longest, ranges)` that many
    ranges at once. `answer(tables, lo, hi, out)` writes the aggregate of partials `lo[i]:hi[i]`, older to newer, to
    `out[i]`. Sliding techniques need `lo` and `hi` that never decrease, as for the windows of one query over all
    groups. They also write to their tables: one caller at a time.
    """

    build: Callable[..., Tables]
    answer: Callable[[Any, Longs, Longs, Column], None]
    answer_many: Callable[[Any, Longs, Longs, Column], None] | None = None
    """`answer_many(tables, lo, hi, out)`: the aggregates of `lo[i, j]:hi[i]` to `out[i, j]`; each row of lo ascends."""
    steps: Steps | None = None


def compiled(technique: Technique, label: str) -> Technique:
    """The same, compiled when first called and kept on disk under the label. Functions that allocate stay Python."""

    def kernel(function: Any) -> Any:
        # No reference counting: these functions create and keep no arrays, and it took nine tenths of a DABA step.
        return None if function is None else njit(cache=True, nogil=True, _nrt=False)(labelled(function, label))

    steps = technique.steps
    if steps is not None:
        steps = replace(steps, **{f.name: kernel(getattr(steps, f.name)) for f in fields(steps) if f.name != "start"})
    return Technique(technique.build, kernel(technique.answer), kernel(technique.answer_many), steps)


def labelled(function: Any, label: str) -> Any:
    """The function under a unique name, for functions that are created by the same line of code.

    numba keeps all functions of the same name in one index. Two processes that add to it at the same time can give the
    same number to different kernels, and from then on one kernel is loaded instead of the other.
    """
    named = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    named.__qualname__, named.__module__ = f"{function.__qualname__}.{label}", function.__module__
    named.__doc__ = function.__doc__
    return named
