"""Answers of a tree: which windows are due, where their partials lie, and what the queries make of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engine.groups import GroupIndex
from weft.engine.layout import CallLayout, FilterBit, Layout, QueryLayout, TreeLayout
from weft.engine.lower import lower
from weft.engine.partials import Partials
from weft.engine.project import Columns, Typed, evaluate
from weft.engine.ranges import Longs, Ranges
from weft.kernels import count_windows, fill_windows
from weft.model import Window


def answer_tree(
    kept: Partials, tree: TreeLayout, index: GroupIndex, answered: int | None, until: int, layout: Layout
) -> dict[str, pa.Table]:
    """The rows of every query of the tree for windows that end in `(answered, until]`."""
    if not len(kept):
        return {}
    views: dict[FilterBit | None, View] = {}
    answers: dict[str, pa.Table] = {}
    for query in tree.queries:
        view = views.get(query.filter)
        if view is None:
            view = views[query.filter] = View.of(kept, query.filter, tree, len(index))
        due = view.due(query.window, answered, until)
        if due is not None and (table := _project(query, view, due, index, layout)).num_rows:
            answers[query.name] = table
    return answers


@dataclass(frozen=True, slots=True)
class Due:
    """Windows that have an answer: their group, their number k, and their partials `[lo, hi)`."""

    window: Window
    groups: npt.NDArray[np.int32]
    ks: Longs
    lo: Longs
    hi: Longs
    combined: dict[int, tuple[pa.Array, ...]] = field(default_factory=dict)
    """Components already combined over these windows: queries that ask for the same are answered once."""
    lowered: dict[tuple[str, tuple[int, ...]], pa.Array] = field(default_factory=dict)

    @property
    def starts(self) -> Longs:
        return self.ks * self.window.slide + self.window.offset


class View:
    """The partials that pass one filter, with what was prepared of them."""

    def __init__(self, partials: Partials, tree: TreeLayout, group_count: int) -> None:
        self._partials = partials
        self._kinds: dict[int, int] = {c: i for i, c in enumerate(tree.components)}
        self._technique = tree.technique
        self._group_count = group_count
        self._ranges: dict[int, Ranges] = {}
        self._due: dict[Window, Due | None] = {}

    @classmethod
    def of(cls, kept: Partials, bit: FilterBit | None, tree: TreeLayout, group_count: int) -> View:
        if bit is None:
            return cls(kept, tree, group_count)
        word, place = bit
        return cls(kept.where((kept.words[word] >> place) & 1 == 1), tree, group_count)

    @cached_property
    def _offsets(self) -> Longs:
        return self._partials.offsets(self._group_count)

    @cached_property
    def _span(self) -> tuple[int, int]:
        return int(self._partials.slices.min()), int(self._partials.slices.max())

    def due(self, window: Window, answered: int | None, until: int) -> Due | None:
        if window not in self._due:
            self._due[window] = self._enumerate(window, answered, until)
        return self._due[window]

    def _enumerate(self, window: Window, answered: int | None, until: int) -> Due | None:
        if not len(self._partials):
            return None
        earliest, latest = self._span
        low = window.first_over(earliest)
        if answered is not None:
            low = max(low, window.last_ended(answered) + 1)
        high = min(window.last_over(latest), window.last_ended(until))
        if low > high:
            return None
        where = (self._partials.slices, self._offsets, window.length, window.slide, window.offset, low, high)
        starts = np.concatenate([[0], np.cumsum(count_windows(*where))])
        total = int(starts[-1])
        if total == 0:
            return None
        ks, lo, hi = (np.empty(total, np.int64) for _ in range(3))
        due = Due(window, np.empty(total, np.int32), ks, lo, hi)
        fill_windows(*where, starts, due.groups, due.ks, due.lo, due.hi)
        return due

    def combined(self, component: int, kind: str, due: Due) -> tuple[pa.Array, ...]:
        if component not in due.combined:
            if component not in self._ranges:
                self._ranges[component] = Ranges.of(
                    kind, self._partials.columns[self._kinds[component]], self._technique
                )
            due.combined[component] = self._ranges[component].combine(due.lo, due.hi)
        return due.combined[component]

    def lowered(self, call: CallLayout, due: Due) -> pa.Array:
        key = (call.lower, call.components)
        if key not in due.lowered:
            parts = [self.combined(c, kind, due) for c, kind in zip(call.components, call.kinds, strict=True)]
            answer = lower(call.lower, parts, call.type)
            due.lowered[key] = answer if answer.type == call.type else answer.cast(call.type)
        return due.lowered[key]


def _project(query: QueryLayout, view: View, due: Due, index: GroupIndex, layout: Layout) -> pa.Table:
    """The query's columns over its due windows, as its SELECT and HAVING say."""
    starts = pa.array(due.starts).view(layout.time_type)
    ends = pa.array(due.starts + query.window.length).view(layout.time_type)
    keys = index.keys_of(due.groups)
    columns = Columns(
        calls=[view.lowered(call, due) for call in query.calls],
        keys=keys,
        window_start=starts,
        window_end=ends,
        window=pa.StructArray.from_arrays([starts, ends], names=["start", "end"]),
        rows=len(due.ks),
    )

    def output(node: Typed) -> pa.Array:
        # A plain key stays a dictionary: its values are not copied once more for every window.
        return keys[int(node.value or 0)] if node.op == "key" else evaluate(node, columns, ansi=layout.ansi)

    arrays = [output(node) for node in query.outputs]
    fields = [field.with_type(array.type) for field, array in zip(query.schema, arrays, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    if query.having is not None:
        table = table.filter(evaluate(query.having, columns, ansi=layout.ansi))
    return table
