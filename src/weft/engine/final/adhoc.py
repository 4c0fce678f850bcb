"""Ad-hoc queries: one answer from the slices that a running job keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from weft.engine.final.answers import AnswerInput, answer_tree
from weft.engine.final.refresh_meter import RefreshMeter
from weft.engine.layout import GroupingLayout, Layout, QueryLayout, TreeLayout
from weft.engine.plan_transition import Reader, complete_readers, usable_reader
from weft.engine.project import EvaluationError
from weft.engine.state.groups import GroupIndex
from weft.engine.state.partials import Partials
from weft.engine.state.slices import State
from weft.model import Edges


@dataclass(frozen=True, slots=True)
class AdhocSource:
    """The kept slices that answer an ad-hoc query, for windows that begin at `reader.since` or later.

    `key_positions` are the positions of the query's keys among the keys of the slices.
    """

    reader: Reader
    key_positions: tuple[int, ...]


def find_source(
    query: QueryLayout,
    keys: tuple[str, ...],
    layout: Layout,
    watermark: int,
    groupings: Mapping[int, tuple[str, ...]],
    kept: Mapping[int, int],
) -> AdhocSource | None:
    """Of the slices that hold what the query needs, those that reach furthest back; None: there are none.

    A group of the query may be a union of groups of the slices. `layout` describes the slices in the segments, which
    are never compacted; `kept` is the first slice that each tree still has (see `first_kept`).
    """
    trees = {tree.number: tree for tree in layout.trees}
    sources = []
    for reader in complete_readers(layout, watermark):
        grouping = trees[reader.pools[-1]].grouping
        if not set(keys) <= set(groupings[grouping.number]):
            continue
        usable = usable_reader(query, grouping, layout, reader, watermark, kept)
        if usable is not None:
            sources.append(AdhocSource(usable, tuple(groupings[grouping.number].index(key) for key in keys)))
    return min(sources, key=lambda source: (source.reader.since, source.reader.pools), default=None)


def answer_once(state: State, query: QueryLayout, source: AdhocSource, layout: Layout, until: int) -> pa.Table:
    """The rows of every window of the query that ended by `until` and whose slices are all in the source."""
    trees = {tree.number: tree for tree in layout.trees}
    *older, current = source.reader.pools
    finer = trees[current].grouping
    index = state.groups.get(finer.number)
    if index is None:
        return query.schema.empty_table()
    coarser = GroupingLayout(finer.number, tuple(finer.keys[position] for position in source.key_positions))
    groups = GroupIndex(coarser.keys)
    numbers = groups.number([index.columns[position] for position in source.key_positions], len(index))
    kept = {
        number: _grouped(state.trees[number], numbers, len(groups))
        for number in source.reader.pools
        if number in state.trees
    }
    from_source = replace(query, since=source.reader.since, older=tuple(older))
    tree = replace(trees[current], grouping=coarser, queries=(from_source,))
    layout = replace(layout, allowed_lateness=0)
    inputs = AnswerInput(layout, None, until, kept, {coarser.number: groups})
    answers, failed = answer_tree(inputs, tree, RefreshMeter())
    if failed:
        raise EvaluationError(failed[query.name])
    return answers[query.name].cast(query.schema) if query.name in answers else query.schema.empty_table()


def _grouped(partials: Partials, numbers: np.ndarray[tuple[int], np.dtype[np.int32]], count: int) -> Partials:
    groups = numbers[partials.groups]
    return Partials.sorted(groups, partials.slices, partials.words, partials.columns, count)


def why_not(
    query: QueryLayout, keys: tuple[str, ...], trees: Iterable[TreeLayout], groupings: Mapping[int, tuple[str, ...]]
) -> str:
    """What the slices that come closest to answering the query lack."""
    reasons = [
        f"none are grouped by {', '.join(keys)}",
        f"none say which rows pass {query.filter}" if query.filter else "all are of filtered rows",
        "none hold all of its aggregates",
        "none are cut where its windows begin and end",
    ]
    passed = 0
    for tree in trees:
        lacking = [
            not set(keys) <= set(groupings[tree.grouping.number]),
            query.filter not in tree.filters,
            not all(c in tree.components for call in query.calls for c in call.components),
            not tree.edges.contains(Edges.of([query.window])),
        ]
        passed = max(passed, lacking.index(True) if True in lacking else len(lacking) - 1)
    return reasons[passed]
