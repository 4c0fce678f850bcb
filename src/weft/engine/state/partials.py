"""The partials of a tree, sorted by group and slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.aggregates import Component
from weft.engine.combine.registry import combiner_of
from weft.kernels import floor_edges, group_offsets, merge_order, sort_order
from weft.model import Edges

Longs = npt.NDArray[np.int64]
Columns = tuple[tuple[pa.Array, ...], ...]
"""The columns of each component."""


@dataclass(frozen=True, slots=True)
class Partials:
    """Ascending by (group, slice); a slice may have several: one per signature, and more after late rows."""

    groups: npt.NDArray[np.int32]
    slices: Longs
    words: tuple[Longs, ...]
    columns: Columns

    def __len__(self) -> int:
        return len(self.slices)

    def slice_count(self) -> int:
        """How many distinct slices there are, over all groups."""
        return int(pc.count_distinct(pa.array(self.slices)).as_py())

    def synopsis_bytes(self, components: Sequence[Component]) -> int:
        """The size of the columns of components without a fixed size."""
        of_values = (c for component, c in zip(components, self.columns) if component.keeps_values)
        return sum(column.nbytes for columns in of_values for column in columns)

    @classmethod
    def none(cls) -> Partials:
        return cls(np.empty(0, np.int32), np.empty(0, np.int64), (), ())

    @classmethod
    def sorted(
        cls, groups: npt.NDArray[np.int32], slices: Longs, words: Sequence[Longs], columns: Columns, group_count: int
    ) -> Partials:
        return cls(groups, slices, tuple(words), columns).take(sort_order(groups, slices, group_count))

    def take(self, order: Longs) -> Partials:
        indices = pa.array(order)
        return Partials(
            self.groups[order],
            self.slices[order],
            tuple(w[order] for w in self.words),
            tuple(tuple(c.take(indices) for c in columns) for columns in self.columns),
        )

    def where(self, mask: npt.NDArray[np.bool_]) -> Partials:
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def keep(self, components: Sequence[int]) -> Partials:
        return Partials(self.groups, self.slices, self.words, tuple(self.columns[i] for i in components))

    def offsets(self, group_count: int) -> Longs:
        offsets: Longs = group_offsets(self.groups, group_count)
        return offsets

    def merge(self, newer: Partials, group_count: int) -> Partials:
        """Both in one order, in linear time; for equal slices the older partials come first."""
        if not len(self):
            return newer
        if not len(newer):
            return self
        both = Partials(
            np.concatenate([self.groups, newer.groups]),
            np.concatenate([self.slices, newer.slices]),
            tuple(np.concatenate(pair) for pair in zip(self.words, newer.words, strict=True)),
            tuple(
                tuple(pa.concat_arrays(pair) for pair in zip(old, new, strict=True))
                for old, new in zip(self.columns, newer.columns, strict=True)
            ),
        )
        return both.take(merge_order(self.groups, self.slices, newer.groups, newer.slices, group_count))

    def fold(self, edges: Edges, components: Sequence[Component], *, ansi: bool) -> Partials:
        """The same rows in the slices of `edges`, one partial per group, slice and signature."""
        if not len(self):
            return self
        # Flooring keeps the order by (group, slice).
        slices = floored(self.slices, edges)
        order, starts = self.runs(slices)
        if len(starts) == len(slices):
            return replace(self, slices=slices)
        return self.combined(slices, order, starts, components, ansi=ansi)

    def runs(self, slices: Longs) -> tuple[Longs | None, Longs]:
        """The order that puts equal (group, slice, signature) together, and where each run of them begins.

        `slices` replace the partials' own slices. An order of None: the partials are in this order already.
        """
        keys: list[npt.NDArray[Any]] = [self.groups, slices, *self.words]
        order: Longs | None = None
        if self.words:  # only the signatures inside a slice may be mixed
            order = np.lexsort(keys[::-1])
            keys = [key[order] for key in keys]
        differ = np.zeros(max(0, len(slices) - 1), bool)
        for key in keys:
            differ |= key[1:] != key[:-1]
        return order, np.flatnonzero(np.concatenate([np.ones(min(1, len(slices)), bool), differ]))

    def combined(
        self, slices: Longs, order: Longs | None, starts: Longs, components: Sequence[Component], *, ansi: bool
    ) -> Partials:
        """One partial per run (see `runs`)."""
        partials = replace(self, slices=slices)
        if order is not None:
            partials = partials.take(order)
        ends = np.append(starts[1:], len(slices))
        return Partials(
            partials.groups[starts],
            partials.slices[starts],
            tuple(w[starts] for w in partials.words),
            tuple(
                combiner_of(component.definition, columns, ansi=ansi).combine(starts, ends)
                for component, columns in zip(components, partials.columns, strict=True)
            ),
        )


def floored(times: Longs, edges: Edges) -> Longs:
    """The greatest edge not after each time."""
    slides, shifts = zip(*edges.classes, strict=True)
    floors: Longs = floor_edges(times, np.array(slides, np.int64), np.array(shifts, np.int64))
    return floors
