"""What a bucket keeps between batches: the partials that some open window still covers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engine.groups import GroupIndex
from weft.engine.layout import FeedLayout, Layout, TreeLayout
from weft.engine.partials import Partials
from weft.kernels import plain

PRUNE = 4
"""Groups are numbered anew when fewer than one in so many still has a partial."""


@dataclass(frozen=True, slots=True)
class State:
    """The partials of each tree by its number; a feed's trees share their group numbers.

    Windows that end by `watermark` have been answered; None: none has.
    """

    watermark: int | None = None
    trees: Mapping[int, Partials] = field(default_factory=dict)
    groups: Mapping[int, GroupIndex] = field(default_factory=dict)

    def with_table(self, layout: Layout, tables: Mapping[int, pa.Table]) -> State:
        """This state and what `table` wrote of another: a tree's table by its number."""
        groups, trees = dict(self.groups), dict(self.trees)
        for feed in layout.feeds:
            index = groups.setdefault(feed.number, GroupIndex(feed.keys))
            for tree in feed.trees:
                stored = tables.get(tree.number)
                if stored is None or not stored.num_rows:
                    continue
                newer = _from_table(stored, feed, tree, index)
                older = trees.get(tree.number)
                trees[tree.number] = newer if older is None else older.merge(newer, len(index))
        return State(self.watermark, trees, groups)

    def pruned(self, layout: Layout) -> State:
        """The same partials with numbers only for the groups that still have some."""
        groups, trees = dict(self.groups), dict(self.trees)
        for feed in layout.feeds:
            index = groups.get(feed.number)
            if index is None or len(index) < 1000:
                continue
            live = np.unique(np.concatenate([trees[t.number].groups for t in feed.trees if t.number in trees]))
            if len(live) * PRUNE >= len(index):
                continue
            smaller = GroupIndex(feed.keys)
            renumbered = np.full(len(index), -1, np.int32)
            order = pa.array(live)
            renumbered[live] = smaller.number([c.take(order) for c in index.columns], len(live))
            groups[feed.number] = smaller
            for tree in feed.trees:
                if tree.number in trees:
                    trees[tree.number] = _renumber(trees[tree.number], renumbered, len(smaller))
        return State(self.watermark, trees, groups)


def _renumber(old: Partials, numbers: npt.NDArray[np.int32], count: int) -> Partials:
    return Partials.sorted(numbers[old.groups], old.slices, old.words, old.columns, count)


def to_table(partials: Partials, index: GroupIndex) -> pa.Table:
    """Partials with their keys written out: what a segment holds of a tree."""
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


def _from_table(table: pa.Table, feed: FeedLayout, tree: TreeLayout, index: GroupIndex) -> Partials:
    def column(name: str) -> pa.Array:
        array = table.column(name).combine_chunks()
        return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array

    keys = [column(f"k{i}") for i in range(len(feed.keys))]
    groups = index.number(keys, table.num_rows)
    slices = plain(column("slice"), np.int64)
    words = [column(f"w{i}").to_numpy() for i in range(len(feed.words))]
    columns = tuple(
        tuple(column(f"c{i}_{j}") for j in range(len(feed.columns[c]))) for i, c in enumerate(tree.components)
    )
    return Partials.sorted(groups, slices, words, columns, len(index))
