"""advance() alone, without Spark: every window once, whatever the batches, and no trace of what has left."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.layouts import Entry, entries, layout, naive, partials, rows, windows
from weft.engine import (
    FOREVER,
    State,
    advance,
    to_table,
)
from weft.engine.final.single_slice import is_single_slice
from weft.kernels import TECHNIQUES
from weft.model import Window


@settings(derandomize=True, deadline=None, max_examples=120)
@given(
    st.lists(windows, min_size=1, max_size=3, unique=True),
    st.lists(st.lists(entries, max_size=12), min_size=1, max_size=5),
    st.sampled_from([1, 2]),
    st.sampled_from(["blocks", *TECHNIQUES]),
    st.booleans(),
)
def test_batches_saved_and_restored_on_the_way_give_every_window_once(
    drawn: list[Window], batches: list[list[Entry]], trees: int, technique: str, restored: bool
) -> None:
    plan = layout(drawn, trees=trees, technique=technique)
    state, answers = State(), {}
    ordered = [sorted(batch, key=lambda entry: entry[0]) for batch in batches]
    mark = -1000
    received: list[Entry] = []
    for batch in ordered:
        # Rows that an answered window would have held are left out here: the pipeline's laws speak of late ones.
        fresh = [e for e in batch if e[0] >= mark]
        received += fresh
        mark = max([mark, *(t for t, _, _ in fresh)])
        step = advance(state, partials(fresh, plan) if fresh else None, mark, plan)
        for name, table in step.answers.items():
            new = rows(table)
            assert not answers.setdefault(name, {}).keys() & new.keys(), "a window was answered twice"
            answers[name].update(new)
        state = step.state
        if restored:
            tables = {n: to_table(p, state.groups[0]) for n, p in state.trees.items() if len(p)}
            state = State(mark).with_tables(plan, [tables])
    for name, table in advance(state, None, FOREVER, plan).answers.items():
        answers.setdefault(name, {}).update(rows(table))
    for i, window in enumerate(drawn):
        expected = naive(received, window)
        assert answers.get(f"sum{i}", {}) == {at: sum(v) if v else None for at, v in expected.items()}
        assert answers.get(f"max{i}", {}) == {at: max(v, default=None) for at, v in expected.items()}


@pytest.mark.parametrize("technique", ["blocks", *TECHNIQUES])
@pytest.mark.parametrize("wild", [1e16, math.nan, math.inf, -math.inf, 1e308])
def test_a_float_sum_is_right_again_when_a_wild_value_has_left_the_window(wild: float, technique: str) -> None:
    window = Window(10, 1)
    plan = layout([window], technique=technique)
    values = [wild if t in (20, 21) else 0.1 * (t % 7) for t in range(200)]
    given_ = partials([(t, "a", v) for t, v in enumerate(values)], plan)
    answers = rows(advance(State(), given_, FOREVER, plan).answers["sum0"])
    for begin in (*range(11), *range(22, 190)):
        assert answers["a", begin] == pytest.approx(math.fsum(values[begin : begin + 10]), rel=1e-12)


def test_a_sum_of_integers_that_overflows_is_an_error_and_never_a_wrong_number() -> None:
    plan = layout([Window(10, 10)], pa.int64())
    step = advance(State(), partials([(1, "a", 2**62), (2, "a", -5)], plan, pa.int64()), FOREVER, plan)
    assert rows(step.answers["sum0"]) == {("a", 0): 2**62 - 5}
    step = advance(State(), partials([(1, "a", 2**62), (2, "a", 2**62)], plan, pa.int64()), FOREVER, plan)
    assert "sum0" not in step.answers
    assert "DECIMAL" in step.failed["sum0"]


def test_late_rows_are_counted_for_the_windows_that_they_missed() -> None:
    plan = layout([Window(10, 5), Window(5, 5)], trees=2)
    state = advance(State(), partials([(40, "a", 1.0)], plan), 40, plan).state
    step = advance(state, partials([(36, "a", 1.0), (28, "a", 1.0)], plan), 40, plan)
    # 36 lies in [30, 40), answered, and in [35, 45), open; 28 has missed everything.
    assert dict(step.late) == {"sum0": 2, "max0": 2, "sum1": 2, "max1": 2}
    assert rows(advance(step.state, None, FOREVER, plan).answers["sum0"]) == {("a", 35): 2.0, ("a", 40): 1.0}


def test_a_gap_of_years_costs_no_more_than_a_gap_of_a_second() -> None:
    plan = layout([Window(10, 1)])
    far = 10 * 365 * 86_400 * 1_000_000
    answers = rows(advance(State(), partials([(0, "a", 1.0), (far, "a", 2.0)], plan), FOREVER, plan).answers["sum0"])
    assert len(answers) == 20


def test_groups_that_are_gone_are_forgotten() -> None:
    plan = layout([Window(10, 10)])
    state = State()
    for batch in range(6):
        rows_ = [(batch * 100, f"{batch}-{i}", 1.0) for i in range(1500)]
        state = advance(state, partials(rows_, plan), batch * 100 + 1, plan).state
    assert len(state.groups[0]) < 6 * 1500 / 2


@pytest.mark.parametrize(
    ("window", "at_once"), [(Window(10, 10, 3), True), (Window(20, 10), False), (Window(10, 10), True)]
)
def test_a_table_that_is_whole_is_answered_as_a_stream_that_ended(window: Window, at_once: bool) -> None:
    entries: list[Entry] = [
        (slot * 10 + 4, key, None if slot == 2 else slot * 1.5) for slot in range(5) for key in ("a", None, "b")
    ]
    plan = layout([window])
    assert is_single_slice(plan.feeds[0], plan) == at_once
    given_rows = partials(entries, plan)
    shared, single_slice = (advance(State(), given_rows, FOREVER, plan, bounded=flag) for flag in (False, True))
    assert single_slice.matched == shared.matched == {"sum0": 15, "max0": 15}
    assert not any(len(kept) for kept in single_slice.state.trees.values())
    for name in ("sum0", "max0"):
        assert rows(single_slice.answers[name]) == rows(shared.answers[name])
        assert single_slice.answers[name].column_names == shared.answers[name].column_names


def test_partials_of_another_feed_alone_may_lack_the_columns_of_this_one() -> None:
    plan = layout([Window(10, 10)])
    state = advance(State(), partials([(4, "a", 1.0)], plan), 5, plan).state
    of_another = pa.table({"feed": pa.array([7], pa.int32()), "slice": pa.array([4], pa.int64()), "c0": [1]})
    assert rows(advance(state, of_another, FOREVER, plan).answers["sum0"]) == {("a", 0): 1.0}
