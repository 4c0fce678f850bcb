"""SLIDE AT MOST without Spark: whatever is chosen, every answer is that of the window that it names."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.layouts import Entry, entries, layout, naive, partials, rows
from weft.engine import FOREVER, Layout, State, advance
from weft.model import Refresh, Window
from weft.schedule import Schedule
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.execution.refresh import choose_refreshes

ASKED = Window(20, 10), Window(30, 10), Window(50, 10)
INTERVAL = 10


def at_most(plan: Layout) -> Layout:
    """The same plan, whose queries leave it to weft when they are answered."""
    return plan.with_trees(
        lambda tree: replace(
            tree,
            queries=tuple(replace(q, requested_window=Window(q.window.length, q.window.length)) for q in tree.queries),
        )
    )


PLAN = at_most(layout([Window(w.length, INTERVAL) for w in ASKED]))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.lists(entries, max_size=12), st.floats(0, 2)), min_size=1, max_size=8), st.floats(0, 1))
def test_every_answer_is_that_of_its_window_and_no_window_has_two(
    batches: list[tuple[list[Entry], float]], cost: float
) -> None:
    state, record = State(), BatchRecord.initial()
    received: list[Entry] = []
    until: int | None = None
    answers: dict[str, dict[tuple[str | None, int], float | None]] = {q.name: {} for q in PLAN.queries}
    for number, (batch, grant) in enumerate([*batches, ([], 0.0)]):
        # Nothing comes late: a row that would be is of now.
        floor = -60 if until is None else until
        fresh = [(max(t + 30 * number, floor), k, v) for t, k, v in batch]
        received += fresh
        latest = max((t for t, _, _ in received), default=None)
        until = FOREVER if number == len(batches) else latest
        chosen = choose_refreshes(PLAN, record, -FOREVER if until is None else until)
        plan = replace(PLAN, refresh=chosen.refresh)
        step = advance(state, partials(fresh, plan) if fresh else None, -FOREVER if until is None else until, plan)
        state = step.state
        spent = dict.fromkeys(chosen.refresh, cost)
        record = replace(record, watermark=until, schedule=chosen.after.measured({}, spent, grant))
        for name, table in step.answers.items():
            new_answers = rows(table)
            assert not new_answers.keys() & answers[name].keys(), "a window was answered twice"
            answers[name] |= new_answers
    for query in PLAN.queries:
        truth = naive(received, query.window)
        for key, value in answers[query.name].items():
            values = truth[key]
            wanted = None if not values else sum(values) if query.name.startswith("sum") else max(values)
            assert value == wanted
    assert sum(record.schedule.refreshes.values()) > 0 or not received


def test_queries_that_are_not_chosen_wait_and_find_their_newest_window_later() -> None:
    plan = at_most(layout([Window(20, 10)]))
    step = advance(State(), partials([(5, "a", 1.0), (15, "a", 2.0), (25, "a", 4.0)], plan), 25, plan)
    assert not step.answers
    later = replace(plan, refresh={"sum0": Refresh(20, 20, 20)})
    step = advance(step.state, partials([(27, "a", 8.0)], plan), 28, later)
    assert {name: rows(table) for name, table in step.answers.items()} == {"sum0": {("a", 0): 3.0}}
    assert step.refreshes.keys() == {"sum0"}
    assert len(step.scans) == 1


def test_rows_are_late_for_what_was_answered_only() -> None:
    plan = at_most(layout([Window(20, 10)]))
    state = advance(State(), partials([(5, "a", 1.0), (45, "a", 2.0)], plan), 45, plan).state
    late = partials([(35, "a", 1.0), (25, "a", 1.0)], plan)
    assert not advance(state, late, 45, plan).late
    assert advance(state, late, 45, replace(plan, answered={"sum0": 30})).late == {"sum0": 1}


def test_an_empty_schedule_is_what_an_earlier_checkpoint_has() -> None:
    assert BatchRecord(0).schedule == Schedule()
