"""Windows of one slice over a bounded table: each partial is an answer, and nothing has to be combined.

Where almost every row has its own group, numbering and sorting groups would be most of the work.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.combine.registry import partial_from_spark
from weft.engine.final.lower import lower
from weft.engine.final.output_rows import output_rows
from weft.engine.layout import FeedLayout, Layout, QueryLayout
from weft.kernels import plain
from weft.model import Edges, WeftError


def is_single_slice(feed: FeedLayout, layout: Layout) -> bool:
    """Whether every partial of the feed is one answer of each of its queries."""
    if feed.words or feed.backfill or any(c.keeps_values for c in feed.components):
        return False
    return all(
        tree.edges == feed.edges
        and Edges.of([query.window]) == feed.edges
        and query.window.length == query.window.slide
        and not query.older
        and query.since is None
        and query.until is None
        and query.requested_window is None
        and query.name not in layout.backfilling
        for tree in feed.trees
        for query in tree.queries
    )


def answer_single_slices(
    partials: pa.Table, feed: FeedLayout, layout: Layout
) -> tuple[dict[str, pa.Table], dict[str, int], dict[str, str]]:
    """The answers of the feed's queries, the rows that each one counts, and the errors of those that failed."""

    def column(name: str) -> pa.Array:
        return partials.column(name).combine_chunks()

    parts = {
        component: partial_from_spark(component.definition, tuple(map(column, names)))
        for component, names in zip(feed.components, feed.columns, strict=True)
    }
    keys = [column(name) for name in feed.key_columns]
    starts = plain(column("slice"), np.int64)
    counted = int(pc.sum(column(feed.columns[0][0])).as_py())
    answers: dict[str, pa.Table] = {}
    failed: dict[str, str] = {}

    def answer(query: QueryLayout) -> pa.Table:
        calls = [
            lower(c.lower, [parts[component] for component in c.components], c.type, ansi=layout.ansi)
            for c in query.calls
        ]
        typed = [a if a.type == c.type else a.cast(c.type) for a, c in zip(calls, query.calls, strict=True)]
        return output_rows(query, keys, starts, typed, layout)

    queries = [query for tree in feed.trees for query in tree.queries]
    for query in queries:
        try:
            table = answer(query)
        except WeftError as error:
            failed[query.name] = str(error)
            continue
        if table.num_rows:
            answers[query.name] = table
    return answers, {query.name: counted for query in queries}, failed
