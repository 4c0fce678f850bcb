"""A query that is asked once, over the slices that a running job keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from weft.engine.final.windows import Meter, answer_tree
from weft.engine.layout import GroupingLayout, Layout, QueryLayout, TreeLayout
from weft.engine.plan_transition import Reader, pasts, take_over
from weft.engine.project import EvaluationError
from weft.engine.state.groups import GroupIndex
from weft.engine.state.partials import Partials
from weft.engine.state.slices import State
from weft.model import Edges


@dataclass(frozen=True, slots=True)
class AdhocSource:
    """The kept slices that a question is answered from: windows from `reader.since` on. `places` are where the
    question's keys stand among the keys of the slices.
    """

    reader: Reader
    places: tuple[int, ...]


def find_source(
    query: QueryLayout,
    keys: tuple[str, ...],
    layout: Layout,
    watermark: int,
    groupings: Mapping[int, tuple[str, ...]],
    kept: Mapping[int, int],
) -> AdhocSource | None:
    """The slices that reach furthest back of those that hold what the query needs; its groups may be unions of theirs.

    `layout` is of what was written down, where slices never grow together; `kept` is what batches left of that.
    """
    trees = {tree.number: tree for tree in layout.trees}
    found = []
    for reader in pasts(layout, watermark):
        grouping = trees[reader.pools[-1]].grouping
        if not set(keys) <= set(groupings[grouping.number]):
            continue
        seen = take_over(query, grouping, layout, reader, watermark, kept)
        if seen is not None:
            found.append(AdhocSource(seen, tuple(groupings[grouping.number].index(key) for key in keys)))
    return min(found, key=lambda source: (source.reader.since, source.reader.pools), default=None)


def answer_once(state: State, query: QueryLayout, source: AdhocSource, layout: Layout, until: int) -> pa.Table:
    """The rows of every window of the query that the source holds whole and that ended by `until`."""
    trees = {tree.number: tree for tree in layout.trees}
    *older, current = source.reader.pools
    finer = trees[current].grouping
    index = state.groups.get(finer.number)
    if index is None:
        return query.schema.empty_table()
    coarser = GroupingLayout(finer.number, tuple(finer.keys[place] for place in source.places))
    groups = GroupIndex(coarser.keys)
    numbers = groups.number([index.columns[place] for place in source.places], len(index))
    kept = {
        number: _grouped(state.trees[number], numbers, len(groups))
        for number in source.reader.pools
        if number in state.trees
    }
    asked = replace(query, since=source.reader.since, older=tuple(older))
    tree = replace(trees[current], grouping=coarser, queries=(asked,))
    layout = replace(layout, lateness=0)
    answers, failed = answer_tree(kept, Partials.none(), tree, groups, None, until, layout, 0, Meter())
    if failed:
        raise EvaluationError(failed[query.name])
    found = answers.get(query.name)
    return query.schema.empty_table() if found is None else found.cast(query.schema)


def _grouped(partials: Partials, numbers: np.ndarray[tuple[int], np.dtype[np.int32]], count: int) -> Partials:
    groups = numbers[partials.groups]
    return Partials.sorted(groups, partials.slices, partials.words, partials.columns, count)


def why_not(
    query: QueryLayout, keys: tuple[str, ...], trees: Iterable[TreeLayout], groupings: Mapping[int, tuple[str, ...]]
) -> str:
    """What the slices lack that come closest to answering the query."""
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
