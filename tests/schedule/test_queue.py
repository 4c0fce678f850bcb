"""What runs when: the schedules of figure 4, ties and priorities, queries that come, go, and ask one time only."""

from __future__ import annotations

import pytest

from tests.support.relative_cost import Combines
from weft.schedule import POLICIES, Budget, Periodic, Policy, Queue, SharedRun, UnknownQuery, run_within
from weft_bench.figures.schedule.simulation import run_cost

WINDOWS = ((10, 2), (5, 2), (6, 2), (15, 3), (12, 3), (20, 5), (30, 5))
G1 = [Periodic(f"Q{i}", ("max",), w, p) for i, (w, p) in enumerate(WINDOWS, 1)]
SUB_GROUPS = {2: "1", 3: "2", 5: "3"}


def price(run: SharedRun) -> float:
    return run_cost(run.queries, Combines())


def timeline(policy: str, until: int) -> dict[int, list[str]]:
    """The sub-groups of each run, as figure 4 draws them: by the period that their queries ask for."""
    queue, found = Queue(G1, POLICIES[policy], Combines()), {}
    for now in range(1, until + 1):
        runs, _ = run_within(queue, now, Budget(1000), price, early=False)
        if runs:
            found[now] = ["".join(sorted({SUB_GROUPS[q.period] for q in run.queries})) for run in runs]
    return found


def test_aggressive_runs_everything_every_two_minutes() -> None:
    assert timeline("aggressive", 6) == {2: ["123"], 4: ["123"], 6: ["123"]}


def test_conservative_runs_together_what_happens_to_be_due_together() -> None:
    assert timeline("conservative", 10) == {
        2: ["1"], 3: ["2"], 4: ["1"], 5: ["3"], 6: ["12"], 8: ["1"], 9: ["2"], 10: ["13"],
    }  # fmt: skip


def test_hybrid_runs_the_second_sub_group_with_the_first() -> None:
    assert timeline("hybrid", 10) == {2: ["12"], 4: ["12"], 5: ["3"], 6: ["12"], 8: ["12"], 10: ["123"]}


def test_without_sharing_what_is_due_together_runs_one_after_the_other() -> None:
    assert sorted(timeline("edf", 6)[6]) == ["1", "2"]


@pytest.mark.parametrize(
    ("policy", "runs"),
    [("hybrid", ["12", "3"]), ("late", ["12", "3"]), ("late_pending", ["123"])],
)
def test_late_pending_takes_along_what_is_due_now(policy: str, runs: list[str]) -> None:
    # t         2        4        5
    # G1, G2    run      due      late by one
    # G3                          due            nothing could run at 4
    queue = Queue(G1, POLICIES[policy], Combines())
    for now in (1, 2, 3):
        run_within(queue, now, Budget(1000), price, early=False)
    found, _ = run_within(queue, 5, Budget(1000), price, early=False)
    assert ["".join(sorted({SUB_GROUPS[q.period] for q in run.queries})) for run in found] == runs
    assert found[0].until_deadline == -1


def test_late_sharing_catches_up_all_that_is_late_in_one_run() -> None:
    # At 7 these are late by 4, late by 2, and due.
    queries = [Periodic("a", ("max",), 10, 3), Periodic("b", ("max",), 100, 5), Periodic("c", ("max",), 200, 7)]
    taken = {}
    for policy in ("conservative", "late", "late_pending"):
        apart = Policy(POLICIES["conservative"].split, POLICIES[policy].reach)
        run = Queue(queries, apart, Combines()).next(7)
        assert run is not None
        taken[policy] = "".join(q.name for q in run.queries)
    assert taken == {"conservative": "a", "late": "ab", "late_pending": "abc"}


def test_of_equal_deadlines_the_greater_priority_comes_first_and_of_others_it_does_not() -> None:
    queries = [
        Periodic("plain", ("x",), 5, 4),
        Periodic("urgent", ("y",), 5, 4, priority=1),
        Periodic("sooner", ("z",), 5, 3),
    ]
    queue, order = Queue(queries, POLICIES["late_pending"], Combines()), []
    while (run := queue.next(4)) is not None:
        order += [q.name for q in run.queries]
        queue.complete(run, 4)
    assert order == ["sooner", "urgent", "plain"]


def test_nothing_runs_twice_between_two_updates_and_early_runs_are_a_choice() -> None:
    queue = Queue(G1, POLICIES["conservative"], Combines())
    assert queue.next(1, early=False) is None
    early = queue.next(1)
    assert early is not None
    assert (early.until_deadline, len(early.queries)) == (1, 3)
    runs, _ = run_within(queue, 1, Budget(1000), price)
    assert sorted(q.name for run in runs for q in run.queries) == [f"Q{i}" for i in range(1, 8)]
    assert queue.next(1) is None
    assert queue.next(2) is not None


def test_a_late_answer_does_not_hurry_the_next_one() -> None:
    queue = Queue([Periodic("q", ("max",), 5, 3)], POLICIES["edf"], Combines())
    run_within(queue, 5, Budget(1), price)
    assert queue.lateness("q", 8) == 0
    assert queue.lateness("q", 9) == 1
    assert queue.deadline(queue.tasks[0]) == 8


def test_queries_join_and_leave_and_the_others_keep_their_deadlines() -> None:
    queue = Queue(G1[:3], POLICIES["conservative"], Combines())
    run_within(queue, 2, Budget(1000), price)
    queue.join(G1[3], now=3)
    assert {task.period: queue.deadline(task) for task in queue.tasks} == {2: 4, 3: 6}
    queue.leave("Q1")
    queue.leave("Q2")
    queue.leave("Q3")
    assert [task.period for task in queue.tasks] == [3]
    with pytest.raises(UnknownQuery, match="there is no query Q1; there are Q4"):
        queue.leave("Q1")
    with pytest.raises(UnknownQuery, match="already is a query Q4"):
        queue.join(G1[3], now=4)


def test_a_query_whose_synopsis_is_not_full_yet_waits_and_delays_nobody() -> None:
    queue = Queue(G1[:1], POLICIES["aggressive"], Combines())
    queue.join(G1[1], now=1, ready=7)
    runs, _ = run_within(queue, 6, Budget(1000), price)
    assert [q.name for run in runs for q in run.queries] == ["Q1"]
    runs, _ = run_within(queue, 8, Budget(1000), price)
    assert [q.name for run in runs for q in run.queries] == ["Q1", "Q2"]


def test_a_one_time_query_is_answered_once_with_others_where_it_can() -> None:
    queue = Queue(G1, POLICIES["late_pending"], Combines())
    queue.join(Periodic("now", ("max",), 8, 1, once=True), now=2)
    queue.join(Periodic("alone", ("sum",), 8, 1, once=True), now=2)
    runs, _ = run_within(queue, 2, Budget(1000), price, early=False)
    assert [sorted(q.name for q in run.queries) for run in runs] == [["Q1", "Q2", "Q3", "Q4", "Q5", "now"], ["alone"]]
    assert len(queue.queries) == 7
    assert all(not q.once for task in queue.tasks for q in task.queries)
    for number in range(300):  # places of what was answered are cleared in passing
        queue.join(Periodic(f"n{number}", ("max",), 8, 1, once=True), now=3 + number)
        run_within(queue, 3 + number, Budget(1000), price)
    assert len(queue.queries) == 7
    assert len(queue.tasks) == 2


def test_the_queue_goes_on_from_when_queries_were_answered() -> None:
    one = Queue(G1, POLICIES["hybrid"], Combines())
    for now in range(1, 8):
        run_within(one, now, Budget(10), price)
    other = Queue(G1, POLICIES["hybrid"], Combines(), dict(one.answered))
    assert one.next(8) == other.next(8)


def test_a_run_longer_than_every_budget_is_paid_for_later_and_an_early_one_waits() -> None:
    queue = Queue([Periodic("long", ("max",), 31, 1)], POLICIES["edf"], Combines())
    runs, budget = run_within(queue, 1, Budget().grant(10), price)
    assert (len(runs), budget.left) == (1, -20)
    budget = budget.grant(10)
    assert run_within(queue, 2, budget, price) == ([], budget)
    patient = Queue([Periodic("long", ("max",), 31, 5)], POLICIES["edf"], Combines())
    assert run_within(patient, 2, Budget(10), price) == ([], Budget(10))
    assert len(run_within(patient, 2, Budget(30), price)[0]) == 1
