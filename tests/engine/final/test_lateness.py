"""Which rows are late: those that a window of the query covers which has ended, and is the query's own."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.layouts import Entry, entries, layout, partials
from weft.engine import Layout, QueryLayout, State, advance
from weft.model import Window


def living(plan: Layout, since: int | None, until: int | None) -> Layout:
    return plan.with_trees(
        lambda tree: replace(tree, queries=tuple(replace(q, since=since, until=until) for q in tree.queries))
    )


def is_late(query: QueryLayout, time: int, watermark: int) -> bool:
    """By plain loops: over all windows that cover the time."""
    w = query.window
    begins = [begin for begin in range(time - w.length + 1, time + 1) if (begin - w.offset) % w.slide == 0]
    return any(
        begin + w.length <= watermark
        and (query.since is None or begin >= query.since)
        and (query.until is None or begin + w.length <= query.until)
        for begin in begins
    )


def test_a_row_after_the_end_of_a_query_is_not_late_for_it() -> None:
    # t       0        10        20        30        40   watermark
    # UNTIL                       |
    # rows         x                   x
    plan = living(layout([Window(10, 10)]), None, 20)
    state = advance(State(), partials([(40, "a", 1.0)], plan), 40, plan).state
    late = advance(state, partials([(5, "a", 1.0), (25, "a", 1.0)], plan), 40, plan).late
    assert late == {"sum0": 1, "max0": 1}


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.lists(entries, min_size=1, max_size=12),
    st.integers(-40, 60),
    st.none() | st.integers(-40, 60),
    st.none() | st.integers(-40, 60),
)
def test_late_rows_are_counted_as_plain_loops_do(
    rows: list[Entry], watermark: int, since: int | None, until: int | None
) -> None:
    plan = living(layout([Window(12, 9), Window(20, 10, 3), Window(7, 7)]), since, until)
    state = replace(State(), watermark=watermark)
    late = advance(state, partials(rows, plan), watermark, plan).late
    for query in plan.queries:
        assert late.get(query.name, 0) == sum(is_late(query, time, watermark) for time, _, _ in rows), query.name
