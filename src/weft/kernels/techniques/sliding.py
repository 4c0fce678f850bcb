"""All forms of a technique in which partials enter at one end and leave at the other.

A technique defines what happens when a partial enters, when the oldest leaves, and how the aggregate of the window is
computed. The forms for columns and for single partials are the same for all these techniques, and are defined here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import register_jitable

from weft.kernels.techniques.combine import Column, Operator
from weft.kernels.techniques.technique import BEGIN, END, LONGEST, SLOTS, WRAP, Longs, State, Steps, Tables, Technique

MARK_COUNT = 16
ANYWHERE = -1
"""A value of SLOTS: the values are a whole column, and partial p is at position p."""


@dataclass(frozen=True, slots=True)
class Slider:
    """What a technique does with a state `(values, marks, *own tables)`; functions that numba can compile.

    `enter(state)` adds partial END, which is among the values already, and moves the mark; if the window is empty, it
    ignores what the tables hold. `leave(state)` removes partial BEGIN and moves the mark. `whole_window(state)` is the
    element over all partials inside, `since(state, first)` the element over `[first, END)`.
    """

    tables: Callable[[Column, int, int], tuple[Column, ...]]
    """`tables(values, longest, ranges)`: for at most `longest` partials inside and `ranges` ranges at once."""
    enter: Callable[[Any], None]
    leave: Callable[[Any], None]
    whole_window: Callable[[Any], Any]
    since: Callable[[Any, int], Any] | None = None
    many: Callable[[Any, Longs, Column], None] | None = None
    """As `Steps.ask_many`, if there is a faster way than `since` for each range."""


def ring_size(longest: int) -> int:
    """The least power of two that is at least `longest`.

    >>> [ring_size(n) for n in (0, 1, 2, 3, 1000)]
    [1, 1, 2, 4, 1024]
    """
    return 1 << max(0, longest - 1).bit_length()


def make_marks(longest: int, slots: int) -> Longs:
    marks = np.zeros(MARK_COUNT, np.int64)
    marks[WRAP], marks[SLOTS], marks[LONGEST] = ring_size(longest) - 1, slots, max(1, longest)
    return marks


@register_jitable
def leave_only(state: Any) -> None:
    """For techniques that need to do nothing more when a partial leaves."""
    state[1][BEGIN] += 1


def sliding(operator: Operator, slider: Slider, answer: Callable[..., None] | None = None) -> Technique:
    """All forms of a technique; `answer` is its own loop over a column, if it has a faster one."""
    store, lower, edition = operator.store, operator.lower, operator.edition
    enter, leave, whole_window = slider.enter, slider.leave, slider.whole_window

    def build(values: Column, longest: int, ranges: int = 1) -> Tables:
        return (values, make_marks(longest, ANYWHERE), *slider.tables(values, longest, ranges))

    def start(like: Column, longest: int, ranges: int = 1) -> State:
        size = ring_size(longest)
        ring = np.zeros((size, *like.shape[1:]), like.dtype)
        return (ring, make_marks(longest, size - 1), *slider.tables(like, longest, ranges))

    @register_jitable
    def advance(state: Any, first: int, until: int) -> None:
        marks = state[1]
        if first >= marks[END]:
            marks[BEGIN] = marks[END] = first  # no partial inside is in this window: the next group, or a gap
        while marks[BEGIN] < first:
            leave(state)
        while marks[END] < until:
            enter(state)

    def answer_all(tables: Any, lo: Longs, hi: Longs, out: Column) -> None:
        """Write the aggregate of partials `lo[i]:hi[i]` to `out[i]`.

        requires  lo < hi, both never decreasing, no range longer than `longest`
        cost      one `enter` and one `leave` per partial, one `whole_window` per answer
        space     that of the technique
        """
        _ = edition
        marks = tables[1]
        marks[BEGIN] = marks[END] = 0
        for q in range(len(lo)):
            advance(tables, lo[q], hi[q])
            store(out, q, lower(tables[0], whole_window(tables)))

    def insert(state: Any, column: Column, i: int) -> None:
        values, marks = state[0], state[1]
        values[marks[END] & marks[SLOTS]] = column[i]
        enter(state)

    def ask(state: Any, out: Column, q: int) -> None:
        _ = edition
        store(out, q, lower(state[0], whole_window(state)))

    @register_jitable
    def slide(state: Any, column: Column, i: int, window: int, out: Column, q: int) -> None:
        _ = edition
        values, marks = state[0], state[1]
        while marks[END] - marks[BEGIN] >= window:
            leave(state)
        values[marks[END] & marks[SLOTS]] = column[i]
        enter(state)
        store(out, q, lower(values, whole_window(state)))

    def run(state: Any, column: Column, window: int, out: Column) -> None:
        for i in range(len(column)):
            slide(state, column, i, window, out, i)

    many = slider.many or (None if slider.since is None else _one_by_one(operator, slider.since))
    answer_many = None if many is None else _answer_many(many, advance)
    run_many = None if many is None else _run_many(many, enter, leave)
    steps = Steps(start, insert, leave, ask, slide, run, many, run_many)
    return Technique(build, answer or answer_all, answer_many, steps)


def _one_by_one(operator: Operator, since: Callable[[Any, int], Any]) -> Callable[[Any, Longs, Column], None]:
    store, lower, edition = operator.store, operator.lower, operator.edition

    @register_jitable
    def many(state: Any, firsts: Longs, out: Column) -> None:
        _ = edition
        for j in range(len(firsts)):
            store(out, j, lower(state[0], since(state, firsts[j])))

    return many  # type: ignore[no-any-return]


def _answer_many(many: Callable[..., None], advance: Callable[..., None]) -> Callable[..., None]:
    def answer_many(tables: Any, lo: Longs, hi: Longs, out: Column) -> None:
        """Write the aggregate of partials `lo[i, j]:hi[i]` to `out[i, j]`, all ranges from one structure.

        requires  each column of lo, and hi, never decreasing; rows of lo ascending, below hi, within `longest`
        cost      that of the technique, per slide with all its ranges
        space     that of the technique
        """
        marks = tables[1]
        marks[BEGIN] = marks[END] = 0
        for q in range(len(hi)):
            advance(tables, lo[q, 0], hi[q])
            many(tables, lo[q], out[q])

    return answer_many


def _run_many(many: Callable[..., None], enter: Callable[[Any], None], leave: Callable[[Any], None]) -> Any:
    def run_many(state: Any, column: Column, firsts: Longs, out: Column) -> None:
        values, marks = state[0], state[1]
        for i in range(len(column)):
            leave(state)
            values[marks[END] & marks[SLOTS]] = column[i]
            enter(state)
            for j in range(len(firsts)):
                firsts[j] += 1
            many(state, firsts, out[i])

    return run_many
