"""Late rows put into windows that were answered: the newest answer of each is right, and only those come again."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.layouts import DOUBLE, Entry, entries, layout, naive, partials, windows
from weft.engine import FOREVER, State, advance, to_table
from weft.engine.layout import MARKS, Layout
from weft.engine.project import Typed
from weft.model import Window


def revised(plan: Layout, lateness: int) -> Layout:
    marked = plan.with_trees(
        lambda tree: replace(
            tree, queries=tuple(replace(q, schema=pa.schema([*q.schema, *MARKS])) for q in tree.queries)
        )
    )
    return replace(marked, allowed_lateness=lateness)


Place = tuple[str | None, int]


def rows(table: pa.Table | None) -> list[tuple[Place, float | None, int, bool]]:
    if table is None:
        return []
    starts = table.column("start").cast(pa.int64()).to_pylist()
    columns = [table.column(name).to_pylist() for name in ("k", "value", "weft_revision", "weft_retracted")]
    return [((k, s), v, r, gone) for s, k, v, r, gone in zip(starts, *columns, strict=True)]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    st.lists(windows, min_size=1, max_size=3, unique=True),
    st.lists(st.lists(entries, max_size=12), min_size=1, max_size=6),
    st.integers(1, 60),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_the_newest_answer_of_every_window_holds_its_late_rows(
    drawn: list[Window], batches: list[list[Entry]], lateness: int, trees: int, restored: bool
) -> None:
    plan = revised(layout(drawn, trees=trees), lateness)
    state, mark = State(), -1000
    expected: dict[tuple[int, Place], list[float]] = {}
    newest: dict[tuple[int, Place], float | None] = {}
    for number, batch in enumerate([*batches, None], 1):
        until = FOREVER if batch is None else max([mark, *(t for t, _, _ in batch)])
        step = advance(state, partials(batch or [], plan), until, plan, number)
        for i, window in enumerate(drawn):
            late = naive(batch or [], window)
            touched = {p for p in late if mark - lateness < p[1] + window.length <= mark}
            again = set()
            for place, value, revision, retracted in rows(step.answers.get(f"sum{i}")):
                assert not retracted
                if revision:
                    assert revision == number
                    again.add(place)
                else:
                    assert (i, place) not in newest, "a window was answered for the first time twice"
                newest[i, place] = value
            assert again == touched
            for place, values in late.items():
                if place[1] + window.length > mark - lateness:  # a row is too late for a window, not for all of them
                    expected.setdefault((i, place), []).extend(values)
        state, mark = step.state, until
        if restored:
            tables = {n: to_table(p, state.groups[0]) for n, p in state.trees.items() if len(p)}
            state = State(mark).with_tables(plan, [tables])
    assert newest == {at: sum(values) if values else None for at, values in expected.items()}


def test_an_answer_that_no_longer_passes_having_is_taken_back() -> None:
    plan = revised(layout([Window(10, 10)]), 100)
    below = Typed("lt", pa.bool_(), (Typed("call", DOUBLE, (), 0), Typed("literal", DOUBLE, (), 5.0)))
    plan = plan.with_trees(lambda tree: replace(tree, queries=(replace(tree.queries[0], having=below),)))
    first = advance(State(), partials([(1, "a", 2.0), (2, "b", 9.0)], plan), 20, plan, 0)
    assert rows(first.answers["sum0"]) == [(("a", 0), 2.0, 0, False)]
    second = advance(first.state, partials([(3, "a", 4.0), (4, "b", -9.0), (25, "c", 1.0)], plan), 25, plan, 1)
    assert rows(second.answers["sum0"]) == [(("a", 0), 6.0, 1, True), (("b", 0), 0.0, 1, False)]
