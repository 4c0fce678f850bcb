"""The state of a bucket between batches: the partials that some open window still covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engine.layout import Layout, TreeLayout
from weft.engine.state.compaction import compact
from weft.engine.state.groups import GroupIndex
from weft.engine.state.partials import Partials
from weft.kernels import plain

PRUNE = 4
"""Groups are renumbered when fewer than one of this many still has a partial."""


@dataclass(frozen=True, slots=True)
class State:
    """The partials of each tree by its number; trees of a grouping share their group numbers.

    Windows that end by `watermark` are answered; None: no window is.
    """

    watermark: int | None = None
    trees: Mapping[int, Partials] = field(default_factory=dict)
    groups: Mapping[int, GroupIndex] = field(default_factory=dict)

    def with_tables(self, layout: Layout, stored: Sequence[Mapping[int, pa.Table]]) -> State:
        """This state and the tables that `to_table` wrote, oldest first: each maps a tree's number to its table."""
        groups, trees = dict(self.groups), dict(self.trees)
        for tree in layout.trees:
            of_tree = [table for tables in stored if (table := tables.get(tree.number)) is not None and table.num_rows]
            if not of_tree:
                continue
            index = groups.setdefault(tree.grouping.number, GroupIndex(tree.grouping.keys))
            newer = _from_tables(of_tree, tree, index)
            older = trees.get(tree.number)
            trees[tree.number] = newer if older is None else older.merge(newer, len(index))
        return State(self.watermark, trees, groups)

    def compacted(self, layout: Layout) -> State:
        """The state as batches leave it: one that was read from segments still has a partial per slice and segment."""
        if self.watermark is None:
            return self
        until = layout.compactable(self.watermark)
        trees = {
            tree.number: compact(
                self.trees[tree.number],
                tree,
                None,
                until[tree.number],
                len(self.groups[tree.grouping.number]),
                ansi=layout.ansi,
            )
            for tree in layout.trees
            if tree.number in self.trees
        }
        return replace(self, trees=trees)

    def pruned(self, layout: Layout) -> State:
        """The same partials with numbers only for the groups that still have some."""
        groups, trees = dict(self.groups), dict(self.trees)
        for grouping in {tree.grouping.number: tree.grouping for tree in layout.trees}.values():
            index = groups.get(grouping.number)
            if index is None or len(index) < 1000:
                continue
            numbers = [t.number for t in layout.trees if t.grouping == grouping and t.number in trees]
            live = np.unique(np.concatenate([trees[n].groups for n in numbers])) if numbers else np.empty(0, np.int32)
            if len(live) * PRUNE >= len(index):
                continue
            smaller = GroupIndex(grouping.keys)
            renumbered = np.full(len(index), -1, np.int32)
            order = pa.array(live)
            renumbered[live] = smaller.number([c.take(order) for c in index.columns], len(live))
            groups[grouping.number] = smaller
            for number in numbers:
                trees[number] = _renumber(trees[number], renumbered, len(smaller))
        return State(self.watermark, trees, groups)


def _renumber(old: Partials, numbers: npt.NDArray[np.int32], count: int) -> Partials:
    return Partials.sorted(numbers[old.groups], old.slices, old.words, old.columns, count)


def to_table(partials: Partials, index: GroupIndex) -> pa.Table:
    """The partials of a tree with their key values, as a segment stores them."""
    names = ["slice", *(f"w{i}" for i in range(len(partials.words)))]
    arrays: list[pa.Array] = [pa.array(partials.slices), *(pa.array(w) for w in partials.words)]
    for i, column in enumerate(index.keys_of(partials.groups)):
        names.append(f"k{i}")
        arrays.append(column)
    for i, columns in enumerate(partials.columns):
        for j, column in enumerate(columns):
            names.append(f"c{i}_{j}")
            arrays.append(column)
    return pa.table(dict(zip(names, arrays, strict=True)))


def _from_tables(tables: Sequence[pa.Table], tree: TreeLayout, index: GroupIndex) -> Partials:
    """The partials of all tables, sorted once: there is one table per batch."""

    def column(name: str) -> pa.Array:
        return pa.chunked_array([chunk for table in tables for chunk in table.column(name).chunks]).combine_chunks()

    groups = index.number([_key(tables, f"k{i}") for i in range(len(tree.grouping.keys))], sum(map(len, tables)))
    slices = plain(column("slice"), np.int64)
    words = [column(f"w{i}").to_numpy() for i in range(tree.words)]
    columns = tuple(
        tuple(column(f"c{i}_{j}") for j in range(component.width)) for i, component in enumerate(tree.components)
    )
    return Partials.sorted(groups, slices, words, columns, len(index))


def _key(tables: Sequence[pa.Table], name: str) -> pa.Array:
    """A key column of all tables; a dictionary if it is one in some of them."""
    chunks = [chunk for table in tables for chunk in table.column(name).chunks]
    if any(pa.types.is_dictionary(chunk.type) for chunk in chunks):
        encoded = [c if pa.types.is_dictionary(c.type) else c.dictionary_encode() for c in chunks]
        return pa.chunked_array(encoded).unify_dictionaries().combine_chunks()
    return pa.chunked_array(chunks).combine_chunks()
