"""The answers of a tree: for each query the windows that are due, and its output rows for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from weft.engine.final.filtered_partials import FilteredPartials, passing
from weft.engine.final.output_rows import output_rows
from weft.engine.final.refresh_meter import RefreshMeter
from weft.engine.final.windows import DueWindows
from weft.engine.layout import Layout, QueryLayout, TreeLayout
from weft.engine.state.groups import GroupIndex
from weft.engine.state.partials import Partials
from weft.model import WeftError


@dataclass(frozen=True, slots=True)
class AnswerInput:
    """The input of one batch, for windows that end in `(answered, until]`; None: all that end by `until`."""

    layout: Layout
    answered: int | None
    until: int
    kept: Mapping[int, Partials]
    """The partials of each tree, those of this batch included."""
    groups: Mapping[int, GroupIndex]
    """The groups of each grouping."""
    new: Mapping[int, Partials] = field(default_factory=dict)
    """The new partials of this batch, by tree: if answers may be revised, late ones cause revisions."""
    batch: int = 0


def answer_tree(
    inputs: AnswerInput, tree: TreeLayout, meter: RefreshMeter
) -> tuple[dict[str, pa.Table], dict[str, str]]:
    """The output rows of each query of the tree, and the error messages of queries that cannot be answered.

    SLIDE AT MOST queries come last, so the meter measures only the time that they add to the other queries.
    """
    layout = inputs.layout
    by_filter: dict[tuple[str | None, tuple[int, ...]], FilteredPartials] = {}
    answers: dict[str, pa.Table] = {}
    failed: dict[str, str] = {}
    active = [q for q in tree.queries if q.name not in layout.backfilling]
    for query in sorted(active, key=lambda q: q.requested_window is not None):
        if query.requested_window is not None and query.name not in layout.refresh:
            continue
        key = (query.filter, query.older)
        if key not in by_filter:
            sources = [tree, *(t for t in layout.trees if t.number in query.older)]
            group_count = len(inputs.groups[tree.grouping.number])
            by_filter[key] = FilteredPartials.of(inputs.kept, query.filter, sources, group_count, ansi=layout.ansi)
        try:
            tables = list(_answer_query(query, by_filter[key], inputs, tree, meter))
        except WeftError as error:
            failed[query.name] = str(error)
            continue
        if any(table.num_rows for table in tables):
            same_schema = tables if len(tables) == 1 else [table.cast(query.schema) for table in tables]
            answers[query.name] = pa.concat_tables(same_schema)
    return answers, failed


def _answer_query(
    query: QueryLayout, partials: FilteredPartials, inputs: AnswerInput, tree: TreeLayout, meter: RefreshMeter
) -> Iterator[pa.Table]:
    """The rows of windows that are due, and the revised rows of windows that late rows have changed."""
    layout, index = inputs.layout, inputs.groups[tree.grouping.number]

    def rows(due: DueWindows, revision: int | None = None) -> pa.Table:
        calls = [partials.lowered(call, due) for call in query.calls]
        return output_rows(query, index.keys_of(due.groups), due.starts, calls, layout, revision)

    if query.requested_window is not None:
        due = partials.refreshed(query, layout.refresh[query.name])
        meter.prepare(query, tree, partials)
        with meter.answering(query.name, due):
            tables = [] if due is None else [rows(due)]
        yield from tables
        return
    answered = None if query.name in layout.joining else inputs.answered
    due = partials.due(query, answered, inputs.until)
    if due is not None:
        yield rows(due)
    if layout.allowed_lateness and answered is not None and tree.number in inputs.new:
        new = passing(inputs.new[tree.number], query.filter, tree)
        touched = partials.touched(query, new, answered, layout.allowed_lateness)
        if touched is not None:
            yield rows(touched, inputs.batch)
