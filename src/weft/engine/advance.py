"""The final aggregation of a bucket: `advance(state, partials, until) -> answers, state`, a pure function on Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.combine.registry import partial_from_spark
from weft.engine.final.answers import AnswerInput, answer_tree
from weft.engine.final.filter_counts import matched_rows
from weft.engine.final.lateness import count_late_rows
from weft.engine.final.refresh_meter import RefreshMeter
from weft.engine.final.single_slice import answer_single_slices, is_single_slice
from weft.engine.layout import FeedLayout, Layout, TreeLayout
from weft.engine.partial.from_rows import ComponentFailed, RowGrouping
from weft.engine.state.compaction import compact
from weft.engine.state.groups import GroupIndex
from weft.engine.state.partials import Partials
from weft.engine.state.slices import State
from weft.kernels import plain


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one call. `added` are the new partials of the state, by tree: a checkpoint must store them."""

    answers: Mapping[str, pa.Table]
    state: State
    added: Mapping[int, Partials]
    groups: Mapping[int, GroupIndex]
    """The groups that the numbers in `added` stand for, by grouping."""
    late: Mapping[str, int]
    """Rows that are too late for each query."""
    matched: Mapping[str, int]
    """Rows that pass each query's filter."""
    failed: Mapping[str, str]
    """The error message of each query that cannot be answered; Spark would stop such a query."""
    synopses: int = 0
    """Bytes of partials without a fixed size, before slices that no later window covers are dropped."""
    scans: Mapping[str, float] = field(default_factory=dict)
    refreshes: Mapping[str, float] = field(default_factory=dict)
    """Seconds of SLIDE AT MOST queries: see `RefreshMeter`."""


def advance(
    state: State,
    partials: pa.Table | None,
    until: int,
    layout: Layout,
    batch: int = 0,
    bounded: bool = False,
    rows: RowGrouping | None = None,
) -> Step:
    """Add the partials, answer the windows that end by `until`, and drop the slices that no later window covers.

    `bounded` says that no other partials exist, and that there is one per group, slice and signature. Feeds that get
    rows instead of partials have their partials from `rows`.

    partials  (feed, slice, words..., keys..., components...), from Spark, in any order
    answers   one table per query, in the query's schema; revisions have the number `batch`
    """
    received = _Received(state, until, layout)
    for feed in layout.feeds:
        received.take_feed(feed, partials, rows, bounded)
    kept = received.kept
    synopses = sum(kept[t.number].synopsis_bytes(t.components) for t in layout.trees if t.number in kept)
    meter = RefreshMeter()
    inputs = AnswerInput(layout, state.watermark, until, kept, received.groups, received.new, batch)
    for tree in layout.current:
        answers, failed = answer_tree(inputs, tree, meter)
        received.answers |= answers
        received.failed |= failed
    return Step(
        received.answers,
        _left_state(state.watermark, until, kept, received.groups, layout),
        received.added,
        received.groups,
        received.late,
        received.matched,
        received.failed,
        synopses,
        meter.scans,
        meter.answers,
    )


class _Received:
    """The partials of one batch, added to the state feed by feed, with counts of late and matched rows."""

    def __init__(self, state: State, until: int, layout: Layout) -> None:
        self._watermark = state.watermark
        self._layout = layout
        self._open_before = None if state.watermark is None else layout.horizons(state.watermark)
        self._open_after = layout.horizons(until)
        self.groups: dict[int, GroupIndex] = dict(state.groups)
        self.kept: dict[int, Partials] = dict(state.trees)
        self.new: dict[int, Partials] = {}
        self.added: dict[int, Partials] = {}
        self.late: dict[str, int] = {}
        self.matched: dict[str, int] = {}
        self.answers: dict[str, pa.Table] = {}
        self.failed: dict[str, str] = {}

    def take_feed(self, feed: FeedLayout, partials: pa.Table | None, rows: RowGrouping | None, bounded: bool) -> None:
        index = self.groups.setdefault(feed.grouping.number, GroupIndex(feed.grouping.keys))
        try:
            of_feed = _of_feed(feed, partials, rows)
        except ComponentFailed as error:
            queries = [query for tree in feed.trees for query in tree.queries]
            self.failed |= {q.name: str(error) for q in queries if error.component in q.components}
            return
        if of_feed is None:
            return
        if bounded and is_single_slice(feed, self._layout):
            answers, matched, failed = answer_single_slices(of_feed, feed, self._layout)
            self.answers |= answers
            self.matched |= matched
            self.failed |= failed
            return
        fresh = _sorted_partials(of_feed, feed, index)
        for name, count in matched_rows(fresh, feed).items():
            self.matched[name] = self.matched.get(name, 0) + count
        for tree in feed.trees:
            self._take_tree(tree, feed, fresh, len(index))

    def _take_tree(self, tree: TreeLayout, feed: FeedLayout, fresh: Partials, group_count: int) -> None:
        earliest = None
        if self._watermark is not None and self._open_before is not None and not feed.backfill:
            earliest = self._open_before[tree.number]
            self.late |= count_late_rows(fresh, tree, self._layout, self._watermark)
        new = _of_tree(fresh, feed, tree, earliest, ansi=self._layout.ansi)
        self.new[tree.number] = new
        # Slices that expire with this batch are not written.
        self.added[tree.number] = new.where(new.slices >= self._open_after[tree.number])
        older = self.kept.get(tree.number)
        self.kept[tree.number] = new if older is None else older.merge(new, group_count)


def _left_state(
    answered: int | None, until: int, kept: Mapping[int, Partials], groups: Mapping[int, GroupIndex], layout: Layout
) -> State:
    """The state for the next batch: the slices of windows that are still open after `until`, compacted."""
    horizons, compactable = layout.horizons(until), layout.compactable(until)
    compacted = {} if answered is None else layout.compactable(answered)
    trees = {}
    for tree in layout.trees:
        if tree.number in horizons and tree.number in kept:
            partials = kept[tree.number].where(kept[tree.number].slices >= horizons[tree.number])
            group_count = len(groups[tree.grouping.number])
            before, now = compacted.get(tree.number), compactable[tree.number]
            trees[tree.number] = compact(partials, tree, before, now, group_count, ansi=layout.ansi)
    return State(until, trees, groups).pruned(layout)


def _of_feed(feed: FeedLayout, partials: pa.Table | None, rows: RowGrouping | None) -> pa.Table | None:
    """The feed's partials, in its own columns; None: it has none."""
    if rows is not None and feed in rows:
        return rows.partials(feed)
    if partials is None:
        return None
    names = dict.fromkeys(["slice", *feed.words, *feed.key_columns, *(n for of in feed.columns for n in of)])
    # The columns of a feed without partials may be missing: a backfill has only the columns of its own query.
    existing = [name for name in names if name in partials.schema.names]
    is_of_feed = pc.and_(pc.equal(partials.column("feed"), feed.number), pc.is_valid(partials.column("slice")))
    of_feed = partials.select(existing).filter(is_of_feed)
    return of_feed if of_feed.num_rows else None


def _sorted_partials(rows: pa.Table, feed: FeedLayout, index: GroupIndex) -> Partials:
    """The feed's partials with numbered groups, in the order of group and slice."""

    def column(name: str) -> pa.Array:
        return rows.column(name).combine_chunks()

    groups = index.number([column(name) for name in feed.key_columns], rows.num_rows)
    columns = tuple(
        partial_from_spark(component.definition, tuple(column(name) for name in names))
        for component, names in zip(feed.components, feed.columns, strict=True)
    )
    words = [column(name).to_numpy() for name in feed.words]
    return Partials.sorted(groups, plain(column("slice"), np.int64), words, columns, len(index))


def _of_tree(fresh: Partials, feed: FeedLayout, tree: TreeLayout, earliest: int | None, *, ansi: bool) -> Partials:
    """What the tree keeps of the feed's partials: its components, in its own slices, from the slice `earliest` on."""
    of_tree = fresh.keep([feed.components.index(c) for c in tree.components])
    if earliest is not None:
        of_tree = of_tree.where(of_tree.slices >= earliest)
    if tree.edges == feed.edges or not len(of_tree):
        return of_tree
    return of_tree.fold(tree.edges, tree.components, ansi=ansi)
