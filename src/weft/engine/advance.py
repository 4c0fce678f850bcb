"""The final aggregation of a bucket: `advance(state, partials, until) -> answers, state`, a pure function on Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.answers import answer_tree
from weft.engine.groups import GroupIndex
from weft.engine.layout import FeedLayout, Layout, TreeLayout
from weft.engine.partials import Partials
from weft.engine.ranges import absorb
from weft.engine.state import State
from weft.kernels import plain

FOREVER = 2**62
"""A watermark that no event time reaches: what `drain` advances to."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one call gave. `added` are the partials that the state gained, a tree: what must be written down."""

    answers: Mapping[str, pa.Table]
    state: State
    added: Mapping[int, Partials]
    groups: Mapping[int, GroupIndex]
    """What the numbers in `added` stand for, a feed."""
    late: Mapping[str, int]


def advance(state: State, partials: pa.Table | None, until: int, layout: Layout) -> Step:
    """Add the partials, answer the windows that end by `until`, and forget what no later window covers.

    partials  (feed, slice, words..., keys..., components...), from Spark, in any order
    answers   a table a query, as Spark's schema of it says
    """
    groups: dict[int, GroupIndex] = dict(state.groups)
    trees: dict[int, Partials] = {}
    answers: dict[str, pa.Table] = {}
    added: dict[int, Partials] = {}
    late: dict[str, int] = {}
    for feed in layout.feeds:
        index = groups.setdefault(feed.number, GroupIndex(feed.keys))
        fresh = None if partials is None else _receive(partials, feed, index)
        for tree in feed.trees:
            kept = state.trees.get(tree.number)
            if fresh is not None:
                if state.watermark is not None:
                    late.update(_late(fresh, tree, state.watermark))
                new = _take_in(fresh, feed, tree, state.watermark)
                # What expires at once need not be written down.
                added[tree.number] = new.where(new.slices >= first_open(tree, until))
                kept = new if kept is None else kept.merge(new, len(index))
            if kept is None:
                continue
            answers.update(answer_tree(kept, tree, index, state.watermark, until, layout))
            trees[tree.number] = kept.where(kept.slices >= first_open(tree, until))
    return Step(answers, State(until, trees, groups).pruned(layout), added, groups, late)


def _receive(table: pa.Table, feed: FeedLayout, index: GroupIndex) -> Partials:
    """The feed's partials, their groups numbered, in the order of group and slice."""
    mine = pc.and_(pc.equal(table.column("feed"), feed.number), pc.is_valid(table.column("slice")))
    rows = table.filter(mine)

    def column(name: str) -> pa.Array:
        return rows.column(name).combine_chunks()

    groups = index.number([column(name) for name in feed.key_columns], rows.num_rows)
    columns = tuple(
        absorb(component.kind, tuple(column(name) for name in names))
        for component, names in zip(feed.components, feed.columns, strict=True)
    )
    words = [column(name).to_numpy() for name in feed.words]
    return Partials.sorted(groups, plain(column("slice"), np.int64), words, columns, len(index))


def _take_in(fresh: Partials, feed: FeedLayout, tree: TreeLayout, watermark: int | None) -> Partials:
    """What the tree keeps of the feed's partials: its own components, in its own slices, for windows still open."""
    mine = fresh.keep(tree.components)
    if watermark is not None:
        mine = mine.where(mine.slices >= first_open(tree, watermark))
    if tree.edges == feed.edges or not len(mine):
        return mine
    return mine.fold(tree.edges, [feed.components[i] for i in tree.components])


def first_open(tree: TreeLayout, watermark: int) -> int:
    """The begin of the earliest window that the watermark has not passed."""
    return min(q.window.begin(q.window.last_ended(watermark) + 1) for q in tree.queries)


def _late(fresh: Partials, tree: TreeLayout, watermark: int) -> dict[str, int]:
    """How many rows missed at least one window of each query; the first component counts rows."""
    early = np.flatnonzero(fresh.slices < watermark)
    if not len(early):
        return {}
    slices = fresh.slices[early]
    rows = fresh.columns[0][0].to_numpy(zero_copy_only=False)[early]
    counts: dict[str, int] = {}
    for query in tree.queries:
        w = query.window
        # All times in a slice lie in the same windows, so its begin speaks for them.
        first = (slices - w.offset - w.length) // w.slide + 1
        missed = w.offset + first * w.slide + w.length <= watermark
        if query.filter is not None:
            word, bit = query.filter
            missed &= (fresh.words[word][early] >> bit) & 1 == 1
        if missed.any():
            counts[query.name] = int(rows[missed].sum())
    return counts
