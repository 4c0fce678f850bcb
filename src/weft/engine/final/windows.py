"""Answers of a tree: which windows are due, where their partials lie, and what the queries make of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.aggregates import Component
from weft.engine.combine.base import Combiner, Longs, Serving
from weft.engine.combine.registry import combiner_of
from weft.engine.combine.value_lists import ValueLists
from weft.engine.final.lower import lower
from weft.engine.final.lower_values import lower_values
from weft.engine.layout import FOREVER, CallLayout, Layout, QueryLayout, TreeLayout
from weft.engine.project import LeafColumns, Typed, evaluate
from weft.engine.state.groups import GroupIndex
from weft.engine.state.partials import Partials
from weft.kernels import count_windows, fill_windows, locate_windows
from weft.model import Refresh, WeftError, Window


def answer_tree(
    kept: Mapping[int, Partials],
    new: Partials,
    tree: TreeLayout,
    index: GroupIndex,
    answered: int | None,
    until: int,
    layout: Layout,
    batch: int,
    meter: Meter,
) -> tuple[dict[str, pa.Table], dict[str, str]]:
    """The rows of every query of the tree for windows that end in `(answered, until]`; where answers are revised, also
    for those before that the partials in `new` came too late for. And why queries have none that cannot be answered.

    Queries that are answered at most so often come last: what they are measured to take is what they take in addition.
    """
    views: dict[tuple[str | None, tuple[int, ...]], View] = {}
    answers: dict[str, pa.Table] = {}
    failed: dict[str, str] = {}
    present = [q for q in tree.queries if q.name not in layout.held]
    for query in sorted(present, key=lambda q: q.asked is not None):
        if query.asked is not None and query.name not in layout.refresh:
            continue
        key = (query.filter, query.older)
        if key not in views:
            sources = [tree, *(t for t in layout.trees if t.number in query.older)]
            views[key] = View.of(kept, query.filter, sources, len(index))
        view = views[key]
        before = None if query.name in layout.fresh else answered
        tables = []
        try:
            if query.asked is not None:
                due = meter.prepare(query, tree, view, layout.refresh[query.name])
                with meter.answering(query.name, due):
                    tables += [] if due is None else [_project(query, view, due, index, layout)]
            elif (due := view.due(query, before, until)) is not None:
                tables.append(_project(query, view, due, index, layout))
            if layout.lateness and before is not None and query.asked is None:
                touched = view.touched(query, _passing(new, query.filter, tree), before, layout.lateness)
                if touched is not None:
                    tables.append(_project(query, view, touched, index, layout, batch))
        except WeftError as error:
            failed[query.name] = str(error)
            continue
        if any(table.num_rows for table in tables):
            plain = tables if len(tables) == 1 else [table.cast(query.schema) for table in tables]
            answers[query.name] = pa.concat_tables(plain)
    return answers, failed


class Meter:
    """Seconds that queries take which are answered at most so often: to prepare what they read, once for all, and to
    answer each for one window."""

    def __init__(self) -> None:
        self.scans: dict[str, float] = {}
        self.answers: dict[str, float] = {}

    def prepare(self, query: QueryLayout, tree: TreeLayout, view: View, refresh: Refresh) -> Due | None:
        due = view.refreshed(query, refresh)
        for kind, component in zip(tree.reads(query), query.components, strict=True):
            begun = time.perf_counter()
            view.prepare(component)
            self.scans.setdefault(kind, time.perf_counter() - begun)
        return due

    @contextmanager
    def answering(self, name: str, due: Due | None) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        windows = 1 if due is None else len(np.unique(due.ks))
        self.answers[name] = (time.perf_counter() - begun) / windows


@dataclass(slots=True)
class Due:
    """Windows that have an answer: their group, their number k, and their partials `[lo, hi)`."""

    window: Window
    groups: npt.NDArray[np.int32]
    ks: Longs
    lo: Longs
    hi: Longs
    combined: dict[Component, tuple[pa.Array, ...]] = field(default_factory=dict)
    """Components already combined over these windows: queries that ask for the same are answered once."""
    lowered: dict[CallLayout, pa.Array] = field(default_factory=dict)

    @property
    def starts(self) -> Longs:
        return self.ks * self.window.slide + self.window.offset


class View:
    """The partials that pass one filter, with what was prepared of them."""

    def __init__(self, partials: Partials, components: Sequence[Component], serving: Serving, group_count: int) -> None:
        self._partials = partials
        self._place = {component: i for i, component in enumerate(components)}
        self._serving = serving
        self._group_count = group_count
        self._combiners: dict[Component, Combiner] = {}
        self._due: dict[tuple[Window, int | None, int], Due | None] = {}

    @classmethod
    def of(
        cls, kept: Mapping[int, Partials], filter_: str | None, sources: Sequence[TreeLayout], group_count: int
    ) -> View:
        """From the tree of now, and from those of former plans: a row lies in one of them only.

        Slices of different plans stand side by side. Every window's edges are edges of all of them, so the begin of a
        slice says for each whether it lies inside.
        """
        tree = sources[0]
        present = [(t, kept[t.number]) for t in sources if t.number in kept and len(kept[t.number])]
        if all(t is tree for t, _ in present):
            found = [_passing(partials, filter_, t) for t, partials in present]
            return cls(found[0] if found else Partials.none(), tree.components, tree.serving, group_count)
        shared = [c for c in tree.components if all(c in t.components for t in sources)]
        whole = Partials.none()
        for t, partials in present:
            mine = _passing(partials, filter_, t).keep([t.components.index(c) for c in shared])
            whole = whole.merge(replace(mine, words=()), group_count)
        return cls(whole, shared, tree.serving, group_count)

    @cached_property
    def _offsets(self) -> Longs:
        return self._partials.offsets(self._group_count)

    @cached_property
    def _span(self) -> tuple[int, int]:
        return int(self._partials.slices.min()), int(self._partials.slices.max())

    def due(self, query: QueryLayout, answered: int | None, until: int) -> Due | None:
        """The windows of the query that end in `(answered, until]`; the same for queries that ask for the same ones."""
        low, high = _asked(query, answered, until)
        key = (query.window, low, high)
        if key not in self._due:
            self._due[key] = self._enumerate(query.window, low, high)
        return self._due[key]

    def refreshed(self, query: QueryLayout, refresh: Refresh) -> Due | None:
        """The windows that a query is answered for which is answered at most so often."""
        assert query.asked is not None
        window, low = query.asked, None
        if refresh.first is not None:
            begin = refresh.first - query.asked.length
            window = Window(query.asked.length, refresh.step, begin % refresh.step)
            low = window.first_begun(begin)
        if query.since is not None:
            low = max(window.first_begun(query.since), -FOREVER if low is None else low)
        high = window.last_ended(refresh.last if query.until is None else min(refresh.last, query.until))
        key = (window, low, high)
        if key not in self._due:
            self._due[key] = self._enumerate(window, low, high)
        return self._due[key]

    def touched(self, query: QueryLayout, new: Partials, answered: int, lateness: int) -> Due | None:
        """The windows of the query that end in `(answered - lateness, answered]` and hold one of these partials."""
        late = new.where(new.slices < answered)
        low, high = _asked(query, answered - lateness, answered)
        assert low is not None
        window = query.window
        first = np.maximum((late.slices - window.offset - window.length) // window.slide + 1, low)
        last = np.minimum((late.slices - window.offset) // window.slide, high)
        counts = np.maximum(last - first + 1, 0)
        if not counts.any():
            return None
        groups = np.repeat(late.groups, counts)
        ks = np.arange(counts.sum()) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        order = np.lexsort((ks, groups))
        groups, ks = groups[order], ks[order]
        once = np.append(True, (groups[1:] != groups[:-1]) | (ks[1:] != ks[:-1]))
        groups, ks = groups[once], ks[once]
        begins = ks * window.slide + window.offset
        lo, hi = locate_windows(self._partials.slices, self._offsets, groups, begins, begins + window.length)
        return Due(window, groups, ks, lo, hi)

    def _enumerate(self, window: Window, least: int | None, most: int) -> Due | None:
        if not len(self._partials):
            return None
        earliest, latest = self._span
        low = window.first_over(earliest)
        if least is not None:
            low = max(low, least)
        high = min(window.last_over(latest), most)
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

    def combined(self, component: Component, due: Due) -> tuple[pa.Array, ...]:
        if component not in due.combined:
            due.combined[component] = self._prepared(component).combine(due.lo, due.hi)
        return due.combined[component]

    def _prepared(self, component: Component) -> Combiner:
        if component not in self._combiners:
            columns = self._partials.columns[self._place[component]]
            self._combiners[component] = combiner_of(component.definition, columns, self._serving)
        return self._combiners[component]

    def prepare(self, component: Component) -> None:
        """What is the same for all windows, now and not with the first of them."""
        if not len(self._partials):
            return
        prepared, nothing = self._prepared(component), np.empty(0, np.int64)
        if isinstance(prepared, ValueLists):
            prepared.prepare(self._offsets)
        else:
            prepared.combine(nothing, nothing)

    def lowered(self, call: CallLayout, due: Due) -> pa.Array:
        if call not in due.lowered:
            answer = self._read(call, due)
            due.lowered[call] = answer if answer.type == call.type else answer.cast(call.type)
        return due.lowered[call]

    def _read(self, call: CallLayout, due: Due) -> pa.Array:
        """From components combined; or, where those have no fixed size, from the values of each window as it slides."""
        prepared = self._prepared(call.components[0])
        if isinstance(prepared, ValueLists):
            windows = prepared.windows(due.groups, due.lo, due.hi, self._offsets)
            return lower_values(call.lower, prepared, windows, call.numbers, call.type)
        return lower(call.lower, [self.combined(c, due) for c in call.components], call.type)


def _asked(query: QueryLayout, after: int | None, until: int) -> tuple[int | None, int]:
    """The numbers of the query's own first and last window that end in `(after, until]`; None: there is no first."""
    low = None if after is None else query.window.last_ended(after) + 1
    if query.since is not None:
        since = query.window.first_begun(query.since)
        low = since if low is None else max(low, since)
    return low, query.window.last_ended(until if query.until is None else min(until, query.until))


def _passing(partials: Partials, filter_: str | None, tree: TreeLayout) -> Partials:
    bit = tree.filters[filter_]
    return partials if bit is None else partials.where(bit.passed(partials.words))


def _project(
    query: QueryLayout, view: View, due: Due, index: GroupIndex, layout: Layout, revision: int | None = None
) -> pa.Table:
    calls = [view.lowered(call, due) for call in query.calls]
    return project(query, index.keys_of(due.groups), due.starts, calls, layout, revision)


def project(
    query: QueryLayout,
    keys: list[pa.Array],
    starts: Longs,
    calls: list[pa.Array],
    layout: Layout,
    revision: int | None = None,
) -> pa.Table:
    """The query's columns over windows that begin at `starts`, as its SELECT and HAVING say; marked, where answers may
    be revised.

    A revision comes also for a window that HAVING leaves out by now: it takes back what may have been answered.
    """
    begins = pa.array(starts).view(layout.time_type)
    ends = pa.array(starts + query.window.length).view(layout.time_type)
    columns = LeafColumns(
        calls=calls,
        keys=keys,
        window_start=begins,
        window_end=ends,
        window=pa.StructArray.from_arrays([begins, ends], names=["start", "end"]),
        rows=len(starts),
    )

    def output(node: Typed) -> pa.Array:
        # A plain key stays a dictionary: its values are not copied once more for every window.
        return keys[int(node.value or 0)] if node.op == "key" else evaluate(node, columns, ansi=layout.ansi)

    arrays = [output(node) for node in query.outputs]
    passes = None if query.having is None else evaluate(query.having, columns, ansi=layout.ansi).fill_null(False)
    if layout.lateness:
        retracted = np.zeros(len(starts), bool) if revision is None or passes is None else pc.invert(passes)
        arrays += [pa.array(np.full(len(starts), revision or 0)), pa.array(retracted)]
    fields = [field.with_type(array.type) for field, array in zip(query.schema, arrays, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    return table if passes is None or revision is not None else table.filter(passes)
