"""The partials of a tree that pass one filter: queries with the same filter share their windows and combined values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from weft.aggregates import Component
from weft.engine.combine.base import Combiner, Serving
from weft.engine.combine.registry import combiner_of
from weft.engine.combine.value_lists import ValueLists
from weft.engine.final.lower import lower
from weft.engine.final.lower_values import lower_values
from weft.engine.final.windows import DueWindows, WindowIndex, ending_between, refreshed
from weft.engine.layout import CallLayout, QueryLayout, TreeLayout
from weft.engine.state.partials import Partials
from weft.model import Refresh


class FilteredPartials:
    """The partials that pass one filter, with the combiners and the windows that are already computed from them."""

    def __init__(
        self, partials: Partials, components: Sequence[Component], serving: Serving, group_count: int, *, ansi: bool
    ) -> None:
        self._partials = partials
        self._positions = {component: i for i, component in enumerate(components)}
        self._serving = serving
        self._ansi = ansi
        self._windows = WindowIndex(partials, group_count)
        self._combiners: dict[Component, Combiner] = {}

    @classmethod
    def of(
        cls,
        kept: Mapping[int, Partials],
        filter_: str | None,
        sources: Sequence[TreeLayout],
        group_count: int,
        *,
        ansi: bool,
    ) -> FilteredPartials:
        """From the current tree, which is the first of `sources`, and from trees of former plans.

        Each row is in only one of them. Slices of different plans are merged into one list: the edges of every window
        are edges of all these trees, so the begin of a slice decides whether it is in a window.
        """
        tree = sources[0]
        with_partials = [(t, kept[t.number]) for t in sources if t.number in kept and len(kept[t.number])]
        if not with_partials:
            return cls(Partials.none(), tree.components, tree.serving, group_count, ansi=ansi)
        if all(t is tree for t, _ in with_partials):
            passed = passing(with_partials[0][1], filter_, tree)
            return cls(passed, tree.components, tree.serving, group_count, ansi=ansi)
        shared = [c for c in tree.components if all(c in t.components for t in sources)]
        merged = Partials.none()
        for t, partials in with_partials:
            of_tree = passing(partials, filter_, t).keep([t.components.index(c) for c in shared])
            merged = merged.merge(replace(of_tree, words=()), group_count)
        return cls(merged, shared, tree.serving, group_count, ansi=ansi)

    def due(self, query: QueryLayout, answered: int | None, until: int) -> DueWindows | None:
        """The windows of the query that end in `(answered, until]`."""
        return self._windows.enumerate(ending_between(query, answered, until))

    def refreshed(self, query: QueryLayout, refresh: Refresh) -> DueWindows | None:
        """The windows that a SLIDE AT MOST query answers in one refresh."""
        return self._windows.enumerate(refreshed(query, refresh))

    def touched(self, query: QueryLayout, new: Partials, answered: int, allowed_lateness: int) -> DueWindows | None:
        """Windows of the query that end in `(answered - allowed_lateness, answered]` and hold a partial of `new`."""
        late = new.where(new.slices < answered)
        numbers = ending_between(query, answered - allowed_lateness, answered)
        return self._windows.holding(late, numbers)

    def prepare(self, component: Component) -> None:
        """Do the work that is shared by all windows now, and not with the first window."""
        if not len(self._partials):
            return
        combiner, nothing = self._combiner(component), np.empty(0, np.int64)
        if isinstance(combiner, ValueLists):
            combiner.prepare(self._windows.offsets)
        else:
            combiner.combine(nothing, nothing)

    def lowered(self, call: CallLayout, due: DueWindows) -> pa.Array:
        """The answer of the call for each of the windows, in the type of the call."""
        if call not in due.lowered:
            answer = self._lower(call, due)
            due.lowered[call] = answer if answer.type == call.type else answer.cast(call.type)
        return due.lowered[call]

    def _lower(self, call: CallLayout, due: DueWindows) -> pa.Array:
        """From combined components, or from the values of each window where components have no fixed size."""
        combiner = self._combiner(call.components[0])
        if isinstance(combiner, ValueLists):
            windows = combiner.windows(due.groups, due.lo, due.hi, self._windows.offsets)
            return lower_values(call.lower, combiner, windows, call.numbers, call.type)
        return lower(call.lower, [self._combined(c, due) for c in call.components], call.type, ansi=self._ansi)

    def _combined(self, component: Component, due: DueWindows) -> tuple[pa.Array, ...]:
        if component not in due.combined:
            due.combined[component] = self._combiner(component).combine(due.lo, due.hi)
        return due.combined[component]

    def _combiner(self, component: Component) -> Combiner:
        if component not in self._combiners:
            columns = self._partials.columns[self._positions[component]]
            self._combiners[component] = combiner_of(component.definition, columns, self._serving, ansi=self._ansi)
        return self._combiners[component]


def passing(partials: Partials, filter_: str | None, tree: TreeLayout) -> Partials:
    """Those of the tree's partials whose rows pass the filter."""
    bit = tree.filters[filter_]
    return partials if bit is None else partials.where(bit.passed(partials.words))
