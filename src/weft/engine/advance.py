"""The final aggregation of a bucket: `advance(state, partials, until) -> answers, state`, a pure function on Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.combine.registry import partial_from_spark
from weft.engine.final.filter_counts import matched_rows
from weft.engine.final.lateness import count_late_rows
from weft.engine.final.single_slice import alone, answer_at_once
from weft.engine.final.windows import Meter, answer_tree
from weft.engine.layout import FeedLayout, Layout, TreeLayout
from weft.engine.partial.from_rows import Gathering, NotGathered
from weft.engine.state.compaction import settle
from weft.engine.state.groups import GroupIndex
from weft.engine.state.partials import Partials
from weft.engine.state.slices import State
from weft.kernels import plain


@dataclass(frozen=True, slots=True)
class Step:
    """What one call gave. `added` are the partials that the state gained, by tree: what must be written down."""

    answers: Mapping[str, pa.Table]
    state: State
    added: Mapping[int, Partials]
    groups: Mapping[int, GroupIndex]
    """What the numbers in `added` stand for, by grouping."""
    late: Mapping[str, int]
    matched: Mapping[str, int]
    """Rows that passed each query's filter."""
    failed: Mapping[str, str]
    """Queries that cannot be answered, for a reason that Spark would stop them for."""
    synopses: int = 0
    """Bytes of partials that have no fixed size, before what no later window covers was forgotten."""
    scans: Mapping[str, float] = field(default_factory=dict)
    refreshes: Mapping[str, float] = field(default_factory=dict)
    """Seconds that queries took which are answered at most so often: see `Meter`."""


def advance(
    state: State,
    partials: pa.Table | None,
    until: int,
    layout: Layout,
    batch: int = 0,
    whole: bool = False,
    gathering: Gathering | None = None,
) -> Step:
    """Add the partials, answer the windows that end by `until`, and forget what no later window covers.

    `whole` says that these partials are all there ever is, one for each group, slice and signature. Feeds that come
    as rows get their partials from `gathering`.

    partials  (feed, slice, words..., keys..., components...), from Spark, in any order
    answers   a table a query, as Spark's schema of it says; with revisions marked by `batch` where there may be some
    """
    groups: dict[int, GroupIndex] = dict(state.groups)
    kept: dict[int, Partials] = dict(state.trees)
    taken: dict[int, Partials] = {}
    added: dict[int, Partials] = {}
    late: dict[str, int] = {}
    matched: dict[str, int] = {}
    answers: dict[str, pa.Table] = {}
    failed: dict[str, str] = {}
    before = None if state.watermark is None else layout.horizons(state.watermark)
    after = layout.horizons(until)
    for feed in layout.feeds:
        index = groups.setdefault(feed.grouping.number, GroupIndex(feed.grouping.keys))
        try:
            mine = _of(feed, partials, gathering)
        except NotGathered as error:
            failed |= {q.name: str(error) for t in feed.trees for q in t.queries if error.component in q.components}
            continue
        if whole and mine is not None and alone(feed, layout):
            given, counted, not_given = answer_at_once(mine, feed, layout)
            answers |= given
            failed |= not_given
            matched |= counted
            continue
        fresh = None if mine is None else _receive(mine, feed, index)
        if fresh is not None:
            for name, rows in matched_rows(fresh, feed).items():
                matched[name] = matched.get(name, 0) + rows
        for tree in feed.trees if fresh is not None else ():
            assert fresh is not None
            earliest = None
            if state.watermark is not None and before is not None and not feed.replayed:
                earliest = before[tree.number]
                late |= count_late_rows(fresh, tree, layout, state.watermark)
            new = _take_in(fresh, feed, tree, earliest)
            taken[tree.number] = new
            # What expires at once need not be written down.
            added[tree.number] = new.where(new.slices >= after[tree.number])
            older = kept.get(tree.number)
            kept[tree.number] = new if older is None else older.merge(new, len(index))
    synopses = sum(kept[t.number].synopsis_bytes(t.components) for t in layout.trees if t.number in kept)
    meter = Meter()
    for tree in layout.current:
        new = taken.get(tree.number, Partials.none())
        index = groups[tree.grouping.number]
        given, not_given = answer_tree(kept, new, tree, index, state.watermark, until, layout, batch, meter)
        answers |= given
        failed |= not_given
    trees = {}
    answered = {} if state.watermark is None else layout.settled(state.watermark)
    ended = layout.settled(until)
    for tree in layout.trees:
        if tree.number in after and tree.number in kept:
            live = kept[tree.number].where(kept[tree.number].slices >= after[tree.number])
            count = len(groups[tree.grouping.number])
            trees[tree.number] = settle(live, tree, answered.get(tree.number), ended[tree.number], count)
    left = State(until, trees, groups).pruned(layout)
    return Step(answers, left, added, groups, late, matched, failed, synopses, meter.scans, meter.answers)


def _of(feed: FeedLayout, partials: pa.Table | None, gathering: Gathering | None) -> pa.Table | None:
    """The feed's partials, in its own columns; None where it has none."""
    if gathering is not None and feed in gathering:
        return gathering.partials(feed)
    if partials is None:
        return None
    names = dict.fromkeys(["slice", *feed.words, *feed.key_columns, *(n for of in feed.columns for n in of)])
    # Where nothing came for a feed, its columns may not be there: the past of another query alone has fewer.
    there = [name for name in names if name in partials.schema.names]
    mine = pc.and_(pc.equal(partials.column("feed"), feed.number), pc.is_valid(partials.column("slice")))
    found = partials.select(there).filter(mine)
    return found if found.num_rows else None


def _receive(rows: pa.Table, feed: FeedLayout, index: GroupIndex) -> Partials:
    """The feed's partials, their groups numbered, in the order of group and slice."""

    def column(name: str) -> pa.Array:
        return rows.column(name).combine_chunks()

    groups = index.number([column(name) for name in feed.key_columns], rows.num_rows)
    columns = tuple(
        partial_from_spark(component.definition, tuple(column(name) for name in names))
        for component, names in zip(feed.components, feed.columns, strict=True)
    )
    words = [column(name).to_numpy() for name in feed.words]
    return Partials.sorted(groups, plain(column("slice"), np.int64), words, columns, len(index))


def _take_in(fresh: Partials, feed: FeedLayout, tree: TreeLayout, earliest: int | None) -> Partials:
    """What the tree keeps of the feed's partials: its own components, in its own slices, for windows still open."""
    mine = fresh.keep([feed.components.index(c) for c in tree.components])
    if earliest is not None:
        mine = mine.where(mine.slices >= earliest)
    if tree.edges == feed.edges or not len(mine):
        return mine
    return mine.fold(tree.edges, tree.components)
