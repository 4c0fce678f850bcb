"""What is kept behind the watermark: a partial for each place where a window begins, whoever brought the rows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.layouts import Entry, layout, naive, partials, rows, windows
from weft.engine import FOREVER, Layout, State, advance, to_table
from weft.model import Edges, Window


def cutty(windows_: list[Window]) -> Layout:
    plan = layout(windows_)
    feed = plan.feeds[0]
    trees = tuple(replace(t, begins=Edges.of_begins(q.window for q in t.queries)) for t in feed.trees)
    return replace(plan, feeds=(replace(feed, trees=trees),))


def kept(state: State) -> list[int]:
    return state.trees[0].slices.tolist()


@pytest.mark.parametrize("batch", [1, 3, 7, 40])
def test_slices_behind_the_watermark_are_cut_only_where_windows_begin(batch: int) -> None:
    window = Window(23, 5)  # ends lie between begins
    plan, state = cutty([window]), State()
    for first in range(0, 120, batch):
        entries: list[Entry] = [(t, "a", 1.0) for t in range(first, min(first + batch, 120))]
        step = advance(state, partials(entries, plan), entries[-1][0], plan)
        state = step.state
        mark = entries[-1][0]
        behind = [s for s in kept(state) if s < plan.feeds[0].trees[0].edges.floor(mark)]
        begins = {s - s % 5 for s in behind}
        assert len(behind) == len(begins), "a slice behind the watermark has several partials"


def test_many_batches_for_one_slice_keep_one_partial() -> None:
    plan, state = layout([Window(100, 100)]), State()
    for t in range(90):
        state = advance(state, partials([(t, "a", 1.0), (t, "b", 2.0)], plan), t, plan).state
    assert len(state.trees[0]) == 2
    answers = advance(state, None, FOREVER, plan).answers
    assert rows(answers["sum0"]) == {("a", 0): 90.0, ("b", 0): 180.0}


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    st.lists(windows, min_size=1, max_size=3, unique=True),
    st.lists(st.integers(0, 6), min_size=5, max_size=80),
    st.integers(1, 9),
    st.integers(0, 12),
    st.booleans(),
)
def test_settled_slices_answer_as_all_of_them_would(
    drawn: list[Window], steps: list[int], batch: int, delay: int, restored: bool
) -> None:
    """Rows out of order within the delay; saved and restored on the way, from segments with one batch each."""
    times = [sum(steps[: i + 1]) - (5 * i) % (delay + 1) for i in range(len(steps))]
    entries: list[Entry] = [(t, "ab"[t % 2], float(t % 5)) for t in times]
    plan, state, mark = cutty(drawn), State(), -1000
    answers: dict[str, dict[object, object]] = {}
    segments: list[dict[int, pa.Table]] = []
    for first in range(0, len(entries), batch):
        some = [e for e in entries[first : first + batch] if e[0] >= mark]
        if not some:
            continue
        mark = max(mark, max(t for t, _, _ in some) - delay)
        step = advance(state, partials(some, plan), mark, plan)
        for name, table in step.answers.items():
            answers.setdefault(name, {}).update(rows(table))
        state = step.state
        segments.append({n: to_table(p, step.groups[0]) for n, p in step.added.items() if len(p)})
        if restored:
            state = State(mark)
            for tables in segments:
                state = state.with_tables(plan, [tables])
            state = state.compacted(plan)
    for name, table in advance(state, None, FOREVER, plan).answers.items():
        answers.setdefault(name, {}).update(rows(table))
    low = -1000
    received: list[Entry] = []
    for first in range(0, len(entries), batch):
        some = [e for e in entries[first : first + batch] if e[0] >= low]
        received += some
        low = max([low, *(t - delay for t, _, _ in some)])
    for i, window in enumerate(drawn):
        expected = naive(received, window)
        assert answers.get(f"sum{i}", {}) == {at: sum(v) if v else None for at, v in expected.items()}
        assert answers.get(f"max{i}", {}) == {at: max(v, default=None) for at, v in expected.items()}
