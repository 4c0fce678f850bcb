"""A job without Spark: changes are planned, amended, replanned and written as in a real one; rows are loops.

Whatever the script of rows, joins, leaves, replacements, plans, kills and restarts, every query gives every window of
its time once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.layouts import BY_KEY, COMPONENTS, DOUBLE, TIME, Entry, entries, query, rows, windows
from tests.support.soak import SOAK
from weft.calibration.weights import Weights
from weft.engine import FOREVER, FeedLayout, Layout, State, TreeLayout, advance, to_table
from weft.engine.plan_transition import first_kept
from weft.model import ACQ, Window, Workload
from weft.optimizer import Stream
from weft.optimizer.incremental import Curve
from weft.plan import Plan, PlanRejected
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.files import CheckpointFileError, CheckpointFiles
from weft.spark.checkpoint.plan_log import BackfillRecord
from weft.spark.checkpoint.state_store import Segment, SegmentPart
from weft.spark.execution.metrics import BatchMetrics
from weft.spark.execution.statistics import OBSERVED, Observer
from weft.spark.final.report import KeptTreeState
from weft.spark.options import JobOptions
from weft.spark.physical.analyzer import AnalyzedStream
from weft.spark.physical.check import check_physical
from weft.spark.physical.columns import PhysicalColumns
from weft.spark.physical.plan import NativeFeed, PhysicalPlan
from weft.spark.physical.planner import Planner, keep_slices
from weft.spark.physical.signature import Signature
from weft.spark.physical.statistics import Feeding, StreamStatistics
from weft.spark.queries import versions
from weft.spark.queries.backfill import BackfillReader
from weft.spark.queries.registry import QueryRegistry
from weft.spark.queries.validate import CannotChange
from weft.sql import parse

COLUMNS = (("c0",), ("c1",), ("c2",))


@cache
def acq(name: str, window: Window, more: str = "") -> ACQ:
    spans = ", ".join(f"'{t} microseconds'" for t in (window.length, window.slide, window.offset))
    text = f"SELECT k, window.start AS start, sum(v) AS value FROM stream GROUP BY k, window(ts, {spans})"
    return parse(f"{text} {more}", name=name)[0]


NO_STREAM = AnalyzedStream(cast(Any, None))


class Loom(Planner):
    """A planner that knows the types without asking Spark."""

    def bind(self, plan: Plan, statistics: StreamStatistics, groupings: object = ()) -> PhysicalPlan:
        feeds = tuple(
            FeedLayout(
                number, BY_KEY, feed.edges, ("k0",), (), COMPONENTS, COLUMNS,
                tuple(
                    TreeLayout(
                        t, BY_KEY, plan.trees[t].edges, COMPONENTS, {None: None}, 0,
                        tuple(_bound(plan.workload.by_name[name]) for name in plan.trees[t].queries),
                    )
                    for t in feed.trees
                ),
            )
            for number, feed in enumerate(plan.feeds)
        )  # fmt: skip
        native = tuple(NativeFeed(feed, {}, {}, Signature(all_rows=True)) for feed in feeds)
        layout = keep_slices(Layout(feeds, True, TIME), self.options.times)
        physical = PhysicalPlan(plan, layout, native, "", PhysicalColumns(), (("k",),))
        check_physical(physical)
        return physical


def _bound(acq: ACQ) -> Any:
    found = query(acq.name, acq.window, COMPONENTS[1], DOUBLE)
    names = [output.name for output in acq.outputs]
    return replace(found, schema=pa.schema([f.with_name(n) for f, n in zip(found.schema, names, strict=True)]))


def loom(**settings: Any) -> Loom:
    return Loom(NO_STREAM, JobOptions(**{"strategy": "weave_share", "technique": "panes", "rate": 1e6, **settings}))


def begin(
    planner: Planner, first: Sequence[ACQ], folder: str | Path, opened: Any = lambda layout: None
) -> QueryRegistry:
    physical = planner.plan(Workload(first))
    return QueryRegistry(planner, physical, planner.assumed, CheckpointFiles(str(folder)), opened)


def partials(batch: Sequence[Entry], layout: Layout) -> pa.Table:
    """A partial a row and feed, which is what a batch of single rows gives."""
    fed = [(feed.number, feed.edges.floor(t), k, v) for feed in layout.feeds for t, k, v in batch]
    values = pa.array([v for *_, v in fed], DOUBLE)
    return pa.table(
        {
            "feed": pa.array([f for f, *_ in fed], pa.int32()),
            "slice": pa.array([s for _, s, *_ in fed], pa.int64()),
            "k0": pa.array([k for _, _, k, _ in fed], pa.string()),
            "c0": pa.array([1] * len(fed), pa.int64()),
            "c1": values,
            "c2": values,
        }
    )


@dataclass
class Registered:
    """A query as plain loops see it: the values in each of its windows, and which of them it has answered."""

    name: str
    window: Window
    seen: bool = False
    """Whether a batch has taken it up."""
    fresh: bool = True
    since: int | None = None
    values: dict[tuple[str | None, int], list[float]] = field(default_factory=dict)
    found: dict[tuple[str | None, int], float | None] = field(default_factory=dict)
    last: int = FOREVER

    def see(self, batch: Sequence[Entry], watermark: int) -> None:
        since = -FOREVER if self.since is None else self.since
        for time, key, value in batch:
            for k in range(self.window.first_over(time), self.window.last_over(time) + 1):
                if self.window.begin(k) >= since and self.window.end(k) > watermark:
                    self.values.setdefault((key, self.window.begin(k)), []).extend([] if value is None else [value])

    def expected(self) -> dict[tuple[str | None, int], float | None]:
        if not self.seen:
            return {}
        ended = {at: v for at, v in self.values.items() if at[1] + self.window.length <= self.last}
        return {at: sum(v) if v else None for at, v in ended.items()}


class Job:
    """Batches one after another, as a pipeline runs them, beside what plain loops expect."""

    def __init__(self, planner: Planner, first: Sequence[Window], folder: str, delay: int) -> None:
        self.planner, self.folder, self.delay = planner, folder, delay
        self.given = [acq(f"q{i}", w) for i, w in enumerate(first)]
        self.everyone = [Registered(q.name, q.window) for q in self.given]
        self.present = {r.name: r for r in self.everyone}
        self.history: list[Entry] = []
        self.record = BatchRecord.initial()
        self.state = State()
        self.kept: dict[int, pa.Table] = {}  # of trees that are gone, too: a file goes when it has nothing else
        self.live = begin(planner, self.given, folder)
        self.live.take_up(0, BatchRecord.initial())

    @property
    def batch(self) -> int:
        return self.record.batch + 1

    @property
    def mark(self) -> int:
        return -FOREVER if self.record.watermark is None else self.record.watermark

    def join(self, window: Window, since: Any, life: int | None) -> None:
        name = f"q{len(self.everyone)}"
        self.live.add([acq(name, window, "" if life is None else f"FOR {life} MICROSECONDS")], since)
        self._register(name, window)

    def leave(self, number: int) -> None:
        names = list(self.present)
        if len(names) > 1:
            name = names[number % len(names)]
            self.live.drop([name])
            self._end(name)

    def replace(self, number: int, window: Window) -> None:
        name = list(self.present)[number % len(self.present)]
        self.live.replace(acq(name, window))
        self._end(name)
        self._register(name, window)

    def _end(self, name: str) -> None:
        gone = self.present.pop(name)
        gone.last = min(gone.last, self.mark)  # its life may have ended before
        gone.seen = gone.seen and not gone.fresh  # a plan may have had it, and no batch

    def _register(self, name: str, window: Window) -> None:
        self.present[name] = Registered(name, window)
        self.everyone.append(self.present[name])

    def run(self, batch: Sequence[Entry], *, kill: bool = False) -> None:
        layout = self._take_up()
        if kill:  # after the plan was written down, before anything else was
            self.restart()
            layout = self._take_up()
        if any(r.fresh for r in self.present.values()):
            # Whoever reads the past answers with this batch what has ended before. Whether a late row of the same batch
            # still counts in that depends on the tree that it comes to, so here there is none.
            batch = [(t, k, v) for t, k, v in batch if t >= self.mark]
        for registered in self.present.values():
            registered.see(batch, self.mark)
            registered.fresh = False
        self.history += batch
        times = [t for t, _, _ in batch]
        before = self.record.max_event_time
        latest = max([*times, *([] if before is None else [before])], default=None)
        mark = self.mark if latest is None else max(self.mark, latest - self.delay)
        step = advance(self.state, partials(batch, layout), mark, layout)
        self._take(step.answers)
        self.state = step.state
        self.kept |= {n: to_table(p, step.state.groups[0]) for n, p in step.state.trees.items() if len(p)}
        parts = {n: SegmentPart(0, 0, int(p.slices.max())) for n, p in step.state.trees.items() if len(p)}
        segments = {0: (Segment("", self.batch, self.batch, 0, parts, 0),)}
        kept = {} if latest is None else first_kept(self.record.kept, layout, mark)
        self.record = BatchRecord(self.batch, None if latest is None else mark, latest, segments, kept=kept)

    def _take_up(self) -> Layout:
        layout = self.live.take_up(self.batch, self.record).layout
        for name in self.present.keys() - self.live.plan.workload.by_name.keys():
            assert self.present.pop(name).last <= self.mark, "it left before its life had ended"
        for name, registered in self.present.items():
            if not registered.seen:
                registered.seen, registered.since = True, self.live.since(name)
                registered.see(self.history, -FOREVER)
            until = self.live.until(name)
            registered.last = registered.last if until is None else until
        return layout

    def _take(self, answers: Any) -> None:
        for name, table in answers.items():
            new = rows(table)
            assert not self.present[name].found.keys() & new.keys(), "a window was answered twice"
            self.present[name].found.update(new)

    def restart(self) -> None:
        """Only what was written down is left."""
        self.live.wait_for_plan()
        layout = self.live.physical.layout
        self.state = State(self.state.watermark).with_tables(layout, [self.kept])
        self.live = begin(self.planner, self.given, self.folder)
        self._take_up()

    def end(self) -> None:
        self._take(advance(self.state, None, FOREVER, self._take_up()).answers)


joins = st.tuples(st.just("join"), windows, st.sampled_from(["now", "state"]), st.none() | st.integers(1, 60))
leaves = st.tuples(st.just("leave"), st.integers(0, 9))
replacements = st.tuples(st.just("replace"), st.integers(0, 9), windows)
rates = st.tuples(st.just("observe"), st.sampled_from([1e3, 1e8]))
restarts = st.tuples(st.just("restart"))  # with what was asked for and no batch has taken up yet, too
batches = st.tuples(st.just("run"), st.lists(entries, max_size=10), st.sampled_from(["", "kill", "restart", "plan"]))


# To explain a failure, hypothesis would trace every line of every script, which takes ten times as long.
PHASES = (Phase.explicit, Phase.generate, Phase.shrink)


@settings(derandomize=True, deadline=None, max_examples=200 * SOAK, phases=PHASES)
@given(
    st.lists(windows, min_size=1, max_size=3),
    st.lists(joins | leaves | replacements | rates | restarts | batches | batches, min_size=1, max_size=14),
    st.integers(0, 20),
    st.sampled_from(["weave_share", "tri_weave", "no_share"]),
    st.sampled_from([1e3, 1e6, 1e8]),
    st.sampled_from([None, 0.0, 0.1]),
    st.sampled_from([0, 25]),
)
def test_any_script_gives_each_query_the_windows_of_its_time_once(
    first: list[Window], script: list[Any], delay: int, strategy: str, rate: float, tolerance: float | None, retain: int
) -> None:
    with TemporaryDirectory() as folder:
        planner = loom(strategy=strategy, rate=rate, tolerance=tolerance, retention=f"{retain} microseconds")
        job = Job(planner, first, folder, delay)
        for what, *arguments in script:
            if what == "observe":
                job.live.observe(StreamStatistics(Fraction(arguments[0])))
            elif what == "run":
                batch, then = arguments
                if then == "plan":
                    job.live.wait_for_plan()
                job.run(batch, kill=then == "kill")
                if then == "restart":
                    job.restart()
            else:
                getattr(job, what)(*arguments)
        job.end()
        job.live.wait_for_plan()
        for registered in job.everyone:
            assert registered.found == registered.expected(), registered.name


def windows_of(*spans: tuple[int, int]) -> list[ACQ]:
    return [acq(f"q{i}", Window(length, slide)) for i, (length, slide) in enumerate(spans)]


def never(*arguments: object, **settings: object) -> Plan:
    raise AssertionError("planned from scratch")


def test_a_change_mends_the_plan_and_says_what_it_cost_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = begin(loom(tolerance=None), windows_of((16, 4), (10, 5)), tmp_path)
    live.take_up(0, BatchRecord.initial())
    monkeypatch.setattr("weft.spark.physical.planner.optimize", never)
    live.add([acq("late", Window(9, 9))], "now")
    live.drop(["q1"])
    live.take_up(3, BatchRecord(2, 50, 60))
    log = live.changes()
    assert [(c["batch"], c["reason"], c["queries"]) for c in log] == [
        (0, "woven", 2), (3, "added late", 3), (3, "dropped q1", 2),
    ]  # fmt: skip
    assert [c["cost_before"] for c in log] == [None, log[0]["cost_after"], log[1]["cost_after"]]
    assert log[-1]["cost_after"] == float(live.plan.cost)
    assert live.since("late") == 61


def test_a_plan_is_checked_with_what_former_plans_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = begin(loom(), windows_of((10, 5)), tmp_path)
    live.take_up(0, BatchRecord.initial())
    live.add([acq("late", Window(8, 4))], "now")
    follow = versions.follow
    monkeypatch.setattr(versions, "follow", lambda *arguments: replace(follow(*arguments), older=()))
    with pytest.raises(PlanRejected, match="query q0 reads tree 0, which is not kept"):
        live.take_up(3, BatchRecord(2, 50, 60))
    monkeypatch.undo()
    assert live.take_up(3, BatchRecord(2, 50, 60)).layout.older


class Unsharing(Loom):
    """Amends a plan as if its queries shared nothing, though sharing is far cheaper: the plan drifts."""

    def amend(self, plan: Plan, joining: Any, leaving: Any, statistics: StreamStatistics, groupings: Any) -> Any:
        unshared = self.with_options(strategy="no_share").plan(plan.workload, statistics).logical
        return super().amend(replace(unshared, strategy=plan.strategy), joining, leaving, statistics, groupings)


class Slow(Unsharing):
    """Replans only when it is told to."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        object.__setattr__(self, "go", threading.Semaphore(0))

    def replan(self, workload: Workload, curve: Curve, statistics: StreamStatistics) -> tuple[Plan, Curve]:
        self.go.acquire(timeout=60)  # type: ignore[attr-defined]
        return super().replan(workload, curve, statistics)


def drifting(folder: Path, kind: type[Loom] = Slow, tolerance: float | None = 0.1) -> tuple[Loom, QueryRegistry]:
    """A plan of four queries, which share nothing from the first change on."""
    planner = kind(NO_STREAM, JobOptions(strategy="weave_share", technique="panes", rate=1e8, tolerance=tolerance))
    live = begin(planner, windows_of((6, 3), (6, 3), (6, 3), (6, 3)), folder)
    live.take_up(0, BatchRecord.initial())
    return planner, live


def replannings(caplog: pytest.LogCaptureFixture) -> int:
    return sum(message.startswith("replanning starts") for message in caplog.messages)


def test_a_plan_that_drifted_is_made_anew_beside_the_job_and_taken_up_by_a_later_batch(tmp_path: Path) -> None:
    planner, live = drifting(tmp_path)
    live.drop(["q2", "q3"])
    assert len(live.take_up(1, BatchRecord(0, 5, 5)).layout.queries) == 2, "the batch does not wait for the other plan"
    planner.go.release()  # type: ignore[attr-defined]
    live.wait_for_plan()
    assert [tree.queries for tree in live.plan.trees] == [("q0", "q1")]
    live.take_up(2, BatchRecord(1, 6, 6))
    dropped, anew = live.changes()[-2:]
    assert (dropped["batch"], dropped["trees"], anew["batch"], anew["trees"]) == (1, 2, 2, 1)
    assert anew["reason"] == "replanned: 292.2% above the cost that earlier plans predict"
    assert anew["cost_after"] < anew["cost_before"] == dropped["cost_after"]


def test_a_plan_that_another_change_overtook_is_thrown_away_and_made_once_more(tmp_path: Path) -> None:
    planner, live = drifting(tmp_path)
    live.drop(["q2"])
    live.drop(["q3"])
    planner.go.release(2)  # type: ignore[attr-defined]
    live.wait_for_plan()
    live.take_up(1, BatchRecord(0, 5, 5))
    assert [tree.queries for tree in live.plan.trees] == [("q0", "q1")]
    assert [q.name for q in live.physical.layout.queries] == ["q0", "q1"]
    reasons = [c["reason"].partition(":")[0] for c in live.changes()]
    assert reasons == ["woven", "dropped q2", "dropped q3", "replanned"]


class Failing(Loom):
    """Amends plans, and fails to replan."""

    def replan(self, *arguments: object) -> tuple[Plan, Curve]:
        raise ValueError("not today")


class UnsharingAndFailing(Unsharing, Failing):
    pass


WEIGHTS = Weights(batch=0.1, query=1e-3, row=1e-6, partial=1e-5, kept=1e-7, operation=1e-8, answer=1e-7)

FAILED = "replanning failed, the plan stays: ValueError: not today"


def test_a_planner_that_fails_beside_the_job_leaves_it_as_it_was_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="weft")
    monkeypatch.setattr("weft.spark.physical.planner.load_weights", lambda: WEIGHTS)
    options = JobOptions(strategy="weave_share", technique="panes", rate=1e6, cost="seconds", tolerance=0.1)
    live = begin(UnsharingAndFailing(NO_STREAM, options), windows_of((10, 5), (10, 5)), tmp_path)
    live.take_up(0, BatchRecord.initial())
    plan = live.plan
    for attempt in (1, 2):
        live.observe(StreamStatistics(Fraction(1_000_000), Stream(groups=1_000.0)))
        live.wait_for_plan()
        assert live.plan == plan
        assert replannings(caplog) == attempt, "the plan still counts on another stream"
    live.add([acq("more", Window(6, 3))], "now")
    live.wait_for_plan()
    assert replannings(caplog) == 3, "plans are still compared with the cost of the first"
    live.take_up(1, BatchRecord(0, 5, 5))
    assert [c["reason"] for c in live.changes()] == ["woven", FAILED, "added more"], "told once"
    assert [q.name for q in live.physical.layout.queries] == ["q0", "q1", "more"]


def test_a_drifted_plan_stays_where_planning_fails_and_queries_come_and_go_on(tmp_path: Path) -> None:
    _, live = drifting(tmp_path, UnsharingAndFailing)
    live.drop(["q3"])
    live.drop(["q2"])
    live.wait_for_plan()
    live.take_up(1, BatchRecord(0, 5, 5))
    assert [tree.queries for tree in live.plan.trees] == [("q0",), ("q1",)]
    assert sorted(c["reason"] for c in live.changes()) == ["dropped q2", "dropped q3", FAILED, "woven"]


def test_without_a_tolerance_no_plan_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="weft")
    _, live = drifting(tmp_path, Unsharing, tolerance=None)
    live.drop(["q2", "q3"])
    live.wait_for_plan()
    assert replannings(caplog) == 0
    assert [tree.queries for tree in live.plan.trees] == [("q0",), ("q1",)]
    assert loom(tolerance=0.05).options.deviation == Fraction(1, 20)


def test_a_query_that_takes_the_place_of_another_goes_on_without_a_gap_where_the_slices_allow(tmp_path: Path) -> None:
    live = begin(loom(), windows_of((12, 6)), tmp_path)
    live.take_up(0, BatchRecord.initial())
    live.replace(acq("q0", Window(6, 6), "HAVING sum(v) > 3"))
    live.take_up(1, BatchRecord(0, watermark=20, max_event_time=31))
    assert live.since("q0") == 18, "[12, 18) is answered, [18, 24) is not"
    live.replace(acq("q0", Window(7, 7)))
    live.take_up(2, BatchRecord(1, watermark=20, max_event_time=31))
    assert live.since("q0") == 32, "slices of six microseconds cannot be cut: only windows without a row yet are left"
    assert [c["reason"] for c in live.changes()] == ["woven", "replaced q0", "replaced q0"]


def test_a_query_with_other_columns_cannot_take_the_place_of_another(tmp_path: Path) -> None:
    live = begin(loom(), windows_of((12, 6)), tmp_path)
    (other,) = parse(live.plan.workload[0].text.replace("AS value", "AS total"), name="q0")
    with pytest.raises(
        CannotChange, match=r"q0 answers \(k string, .*value double\), and its replacement .* total double\)"
    ):
        live.replace(other)
    with pytest.raises(CannotChange, match="there is no query q7; there are q0"):
        live.replace(acq("q7", Window(6, 6)))
    live.take_up(1, BatchRecord(0, 5, 5))
    assert [c["reason"] for c in live.changes()] == ["woven"]


def test_what_a_sink_refuses_does_not_join(tmp_path: Path) -> None:
    told: list[list[str]] = []

    def opened(layout: Layout) -> None:
        told.append([q.name for q in layout.queries])
        if "bad" in told[-1]:
            raise CannotChange("not here")

    live = begin(loom(), windows_of((12, 6)), tmp_path, opened)
    with pytest.raises(CannotChange, match="not here"):
        live.add([acq("bad", Window(6, 6))], "now")
    live.add([acq("good", Window(6, 6))], "now")
    assert told == [["bad"], ["good"]]
    assert [q.name for q in live.plan.workload] == ["q0", "good"]


def test_a_restart_goes_by_what_was_written_down(tmp_path: Path) -> None:
    given = windows_of((12, 6), (9, 3))
    live = begin(loom(), given, tmp_path)
    live.take_up(0, BatchRecord.initial())
    live.replace(acq("q0", Window(6, 6)))
    live.take_up(1, BatchRecord(0, 20, 31))
    live.replace(acq("q0", Window(18, 6)))
    live.drop(["q1"])
    live.add([acq("more", Window(3, 3))], "now")
    live.take_up(2, BatchRecord(1, 20, 31))
    again = begin(loom(), given, tmp_path)
    again.take_up(3, BatchRecord(2, 20, 31))
    assert {q.name: q.window for q in again.plan.workload} == {"q0": Window(18, 6), "more": Window(3, 3)}
    changed = begin(loom(), [acq("q0", Window(24, 6))], tmp_path)
    changed.take_up(4, BatchRecord(3, 20, 40))
    assert changed.changes()[-1]["reason"] == "restarted, replaced q0"
    assert changed.since("q0") == 41


def test_a_query_leaves_by_itself_when_its_life_has_ended(tmp_path: Path) -> None:
    live = begin(loom(), [acq("q0", Window(4, 4)), acq("q1", Window(4, 4), "FOR 10 MICROSECONDS")], tmp_path)
    live.take_up(0, BatchRecord.initial())
    assert live.until("q1") is None, "no row has come, so no time is known"
    layout = live.take_up(1, BatchRecord(0, watermark=3, max_event_time=5)).layout
    assert live.until("q1") == 16
    rows_at = [(t, "a", 1.0) for t in range(6, 30)]
    answers = advance(State(3), partials(rows_at, layout), 24, layout).answers
    assert [max(start for _, start in rows(answers[name])) for name in ("q0", "q1")] == [20, 12]
    again = begin(loom(), [acq("q0", Window(4, 4)), acq("q1", Window(4, 4), "FOR 10 MICROSECONDS")], tmp_path)
    again.take_up(2, BatchRecord(1, watermark=15, max_event_time=29))
    assert again.until("q1") == 16, "a restart does not begin its life again"
    assert [q.name for q in again.take_up(3, BatchRecord(2, watermark=16, max_event_time=29)).layout.queries] == ["q0"]
    change = again.changes()[-1]
    assert (change["batch"], change["reason"], change["queries"]) == (3, "the TTL of q1 ended", 1)
    assert change["cost_after"] <= change["cost_before"]
    later = begin(loom(), [acq("q0", Window(4, 4)), acq("q1", Window(4, 4), "FOR 10 MICROSECONDS")], tmp_path)
    assert [q.name for q in later.plan.workload] == ["q0"]


def test_the_last_query_stays_without_answers_when_its_life_has_ended(tmp_path: Path) -> None:
    live = begin(loom(), [acq("q0", Window(4, 4), "UNTIL '1970-01-01 00:00:00.000008'")], tmp_path)
    layout = live.take_up(0, BatchRecord.initial()).layout
    answers = advance(State(), partials([(t, "a", 1.0) for t in range(20)], layout), 16, layout).answers
    assert sorted(start for _, start in rows(answers["q0"])) == [0, 4]
    assert [q.name for q in live.take_up(1, BatchRecord(0, 16, 19)).layout.queries] == ["q0"]


def test_a_stream_that_brings_more_rows_than_the_plan_counts_on_is_planned_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="weft")
    live = begin(loom(rate=1e3, tolerance=0.1), windows_of((10, 5), (9, 3)), tmp_path)
    live.take_up(0, BatchRecord.initial())
    assert len(live.plan.trees) == 2
    live.observe(StreamStatistics(Fraction(1.05e3)))
    assert replannings(caplog) == 0, "within the tolerance"
    live.observe(StreamStatistics(Fraction(2e3)))
    live.wait_for_plan()
    assert (len(live.plan.trees), live.plan.rate) == (2, 2000)
    live.take_up(1, BatchRecord(0, 5, 5))
    assert [c["reason"] for c in live.changes()] == ["woven"], "the same trees are still the best"
    before = float(live.plan.cost)
    live.observe(StreamStatistics(Fraction(1e8)))
    live.wait_for_plan()
    live.take_up(2, BatchRecord(1, 5, 5))
    change = live.changes()[-1]
    assert (change["reason"], change["trees"]) == ("replanned: 100,000,000 rows per second, not 2,000", 1)
    assert change["cost_after"] < change["cost_before"]
    assert change["cost_before"] > before, "the trees of before at the rate of now"


def test_plans_by_seconds_are_made_anew_where_groups_or_filters_are_not_what_they_count_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="weft")
    monkeypatch.setattr("weft.spark.physical.planner.load_weights", lambda: WEIGHTS)
    # In one tree short slices are kept for an hour, a partial for each group; apart, each row passes twice.
    windows = windows_of((1_000_000, 1_000), (3_600_000_000, 3_600_000_000))
    live = begin(loom(rate=1e6, cost="seconds", tolerance=0.1), windows, tmp_path)
    live.take_up(0, BatchRecord.initial())
    assert len(live.plan.trees) == 1
    same = StreamStatistics(Fraction(1_000_000), Stream())
    live.observe(same)
    assert replannings(caplog) == 0, "the stream is what the plan counts on"
    live.observe(replace(same, stream=Stream(groups=1_000.0, selectivity=0.5)))
    live.wait_for_plan()
    live.take_up(1, BatchRecord(0, 5, 5))
    said = "replanned: 1,000 groups in a slice, not 1; 0.5 of the rows pass a filter, not 1"
    assert [c["reason"] for c in live.changes()] == ["woven", said]
    assert len(live.plan.trees) == 2
    live.observe(replace(same, stream=Stream(groups=1_000.0, selectivity=0.5)))
    assert replannings(caplog) == 1, "it counts on that now"


def test_other_phantoms_by_new_counts_are_told_of(tmp_path: Path) -> None:
    live = begin(loom(), windows_of((6, 3)), tmp_path)
    live.take_up(0, BatchRecord.initial())
    for fed in (None, "AB A B", "AB A B", "AB(A B)"):
        live.note_feeding(Feeding(fed))
    live.take_up(1, BatchRecord(0, 5, 5))
    assert [c["reason"] for c in live.changes()] == ["woven", "groups were counted again: AB(A B), not AB A B"]


def test_a_phantom_that_longer_flows_have_chosen_is_told_with_their_length(tmp_path: Path) -> None:
    live = begin(loom(), windows_of((6, 3)), tmp_path)
    live.take_up(0, BatchRecord.initial())
    live.note_feeding(Feeding("A B", 1.04))
    live.note_feeding(Feeding("AB(A B)", 31.4))
    live.take_up(1, BatchRecord(0, 5, 5))
    said = "groups were counted again, in flows of 31.4 rows, not 1.0: AB(A B), not A B"
    assert [c["reason"] for c in live.changes()] == ["woven", said]


def test_filters_in_other_classes_are_bound_beside_the_job_once_for_each_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="weft")
    asked: list[Fraction] = []

    def better(classes: object, known: object, tolerance: Fraction) -> str:
        asked.append(tolerance)
        return "in other classes"

    monkeypatch.setattr("weft.spark.queries.replanner.better_classes", better)
    planner = loom(tolerance=0.1)
    live = begin(planner, windows_of((6, 3), (8, 4)), tmp_path)
    live.take_up(0, BatchRecord.initial())
    live.weigh_classes()
    assert replannings(caplog) == 0, "nothing was counted"
    live.refine(replace(planner.assumed, signature_samples=1))
    for batch in (1, 2):
        live.weigh_classes()
        live.wait_for_plan()
        live.take_up(batch, BatchRecord(batch - 1, 5, 5))
    assert asked == [Fraction(1, 10)]
    (change,) = [c for c in live.changes() if c["reason"] == "in other classes"]
    assert change["batch"] == 1
    assert change["cost_before"] == change["cost_after"] == float(live.plan.cost)


def test_the_stream_is_measured_over_some_batches() -> None:
    def batch(number: int) -> BatchMetrics:
        kept = {0: KeptTreeState(slices=10, partials=300), 1: KeptTreeState(slices=5, partials=150)}
        return BatchMetrics(number, 1_000, 90, 0, 0, 0, 0, None, number * 2_000_000, 0.1, {}, 0, kept, selectivity=0.25)

    observer = Observer(Stream())
    found = [observer.take(batch(n)) for n in range(2 * OBSERVED)]
    assert [n for n, seen in enumerate(found) if seen is not None] == [OBSERVED - 1, 2 * OBSERVED - 1]
    assert found[-1] == StreamStatistics(Fraction(500), Stream(groups=30.0, selectivity=0.25, batch_seconds=2.0))


class HaltedReader(BackfillReader):
    """Its backfills never run: a test reports that they fail."""

    def __init__(
        self,
        store: CheckpointFiles,
        planner: Planner,
        buckets: int,
        failed: Callable[[str, BackfillRecord, Exception], None],
    ) -> None:
        super().__init__(store, planner, buckets, failed)
        self.report_failure = failed
        self.begun: dict[str, BackfillRecord] = {}

    def begin(self, name: str, acq: ACQ, backfill: BackfillRecord, groupings: object) -> None:
        self.begun[name] = backfill


@pytest.fixture
def backfilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QueryRegistry:
    """Batch 1 runs a query that sees all rows, and one with a backfill that has begun, q1."""
    monkeypatch.setattr("weft.spark.queries.registry.BackfillReader", HaltedReader)
    live = begin(loom(), windows_of((6, 3)), tmp_path)
    live.take_up(0, BatchRecord.initial())
    CheckpointFiles(str(tmp_path)).write("spark/offsets/0", b"v1")
    live.add([acq("q1", Window(6, 3))], "source")
    live.take_up(1, BatchRecord(0, 5, 5))
    return live


def halted(live: QueryRegistry) -> HaltedReader:
    assert isinstance(live.backfill_reader, HaltedReader)
    return live.backfill_reader


def test_a_past_that_cannot_be_read_ends_the_query_or_the_job_and_says_why(backfilled: QueryRegistry) -> None:
    live, reader = backfilled, halted(backfilled)
    former = reader.begun["q1"]
    live.drop(["q1"])
    live.add([acq("q1", Window(6, 3)), acq("q2", Window(6, 3))], "source")
    live.take_up(2, BatchRecord(1, 5, 5, empty_batches=1))
    reader.report_failure("q1", former, OSError("of one that was dropped before"))
    assert "q1" in live.plan.workload.by_name
    reader.report_failure("q1", reader.begun["q1"], OSError("gone"))
    assert "q1" not in live.plan.workload.by_name
    live.drop(["q0"])
    live.take_up(3, BatchRecord(2, 5, 5, empty_batches=2))
    reasons = [c["reason"] for c in live.changes()]
    assert reasons[-2:] == ["q1 left: its backfill failed, OSError: gone", "dropped q0"]
    assert live.failed() == {"q1": "its backfill failed, OSError: gone"}
    reader.report_failure("q2", reader.begun["q2"], OSError("gone"))
    assert [q.name for q in live.plan.workload] == ["q2"], "a job has a query"
    with pytest.raises(CannotChange, match="q2 cannot be answered: its backfill failed, OSError: gone"):
        live.take_up(4, BatchRecord(3, 5, 5, empty_batches=3))


def test_a_past_that_a_full_disk_had_no_room_for_stops_the_job_and_a_restart_reads_it_again(
    tmp_path: Path, backfilled: QueryRegistry
) -> None:
    live, reader = backfilled, halted(backfilled)
    reader.report_failure("q1", reader.begun["q1"], OSError(28, "No space left on device"))
    assert "q1" in live.plan.workload.by_name
    with pytest.raises(
        CheckpointFileError, match=r"the backfill of q1 .* disk is full.*make room and start again, nothing is lost"
    ):
        live.take_up(2, BatchRecord(1, 5, 5))
    again = begin(loom(), windows_of((6, 3)), tmp_path)
    again.take_up(2, BatchRecord(1, 5, 5))
    assert halted(again).begun == reader.begun


def test_a_query_that_can_neither_get_its_past_nor_leave_stops_the_job_with_both_reasons(
    tmp_path: Path, backfilled: QueryRegistry
) -> None:
    live, reader = backfilled, halted(backfilled)

    def full(self: CheckpointFiles, name: str, data: object) -> int:
        raise CheckpointFileError(
            f"{name} could not be written: the disk is full; make room and start again, nothing is lost"
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointFiles, "write", full)
        reader.report_failure("q1", reader.begun["q1"], OSError("gone"))  # in a thread that nobody waits for
    both = r"q1 .*its backfill failed, OSError: gone.* asked/.* the disk is full; make room and start again"
    with pytest.raises(CheckpointFileError, match=both):
        live.take_up(2, BatchRecord(1, 5, 5))
    assert live.failed() == {}
    again = begin(loom(), windows_of((6, 3)), tmp_path)
    assert [q.name for q in again.plan.workload] == ["q0", "q1"]


def test_changes_are_logged_with_their_values(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="weft")
    live = begin(loom(tolerance=None), windows_of((6, 3), (8, 4)), tmp_path)
    live.take_up(0, BatchRecord.initial())
    live.add([acq("late", Window(9, 9))], "now")
    live.drop(["q1"])
    assert live.expel({"q0": "division by zero"})
    live.take_up(1, BatchRecord(0, 5, 6))
    logged = [(r.name, r.levelname, r.message, r.context) for r in caplog.records]  # type: ignore[attr-defined]
    assert logged[0][:3] == ("weft.spark.queries.registry", "INFO", "query joins: query=late, since=now")
    assert logged[0][3] == {"query": "late", "since": "now"}
    assert [message for *_, message, _ in logged[1:4]] == [
        "query leaves: query=q1, reason=dropped q1",
        "query leaves: query=q0, reason=q0 left: division by zero",
        "query fails and leaves: query=q0, reason=division by zero",
    ]
    assert logged[3][1] == "WARNING"
    assert [(c["batch"], c["reason"]) for *_, message, c in logged[4:] if message.startswith("plan changes")] == [
        (1, "added late"), (1, "dropped q1"), (1, "q0 left: division by zero"),
    ]  # fmt: skip


def test_replanning_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="weft.spark.queries.replanner")
    live = begin(loom(rate=1e3, tolerance=0.1), windows_of((10, 5), (9, 3)), tmp_path)
    live.observe(StreamStatistics(Fraction(10**8)))
    live.wait_for_plan()
    assert caplog.messages[0] == "replanning starts: queries=2"
    assert caplog.messages[1].startswith("replanning finds a better plan: reason=replanned: 100,000,000 rows")
    failing = Failing(None, JobOptions(strategy="weave_share", technique="panes", rate=1e3))
    live = begin(failing, windows_of((10, 5), (9, 3)), tmp_path / "failing")
    live.observe(StreamStatistics(Fraction(10**8)))
    live.wait_for_plan()
    assert caplog.records[-1].levelname == "WARNING"
    assert caplog.messages[-1] == FAILED
