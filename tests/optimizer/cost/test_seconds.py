"""Seconds of work: each term grows with what it counts, and with nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from weft.calibration.file import BadCalibration, Calibration, load_weights, save_calibration
from weft.calibration.weights import KEPT, MOVED, SENT, ValueWeights, Weights
from weft.model import ACQ, Call, Window
from weft.optimizer import TECHNIQUES, CannotOptimize, Cost, Statistics, optimize
from weft.optimizer.cost.seconds import BadStream, Stream, estimate

ONE = Weights(batch=1, query=1, row=1, partial=1, kept=1, operation=1, answer=1)


def query(name: str, seconds: int, slide: int) -> ACQ:
    return ACQ(name, Window(seconds * 1_000_000, slide * 1_000_000), (Call("max", ("v",)),), ())


def test_the_terms_of_one_query_are_what_they_say() -> None:
    plan = optimize([query("a", 10, 2)], rate=100, strategy="weave_share", technique="panes")
    found = estimate(plan, ONE, Stream(groups=4, batch_seconds=5))
    assert found.batches == (1 + 1) / 5
    assert found.rows == 100
    assert found.partials == 4 / 2  # a slice every two seconds, for each of the groups
    assert found.kept == 10 / 2 * 4 / 5  # five slices a group, once a batch
    assert found.operations == 4 / 2 * 5  # each slice is in five windows
    assert found.answers == 4 / 2
    assert found.seconds == pytest.approx(0.4 + 100 + 2 + 4 + 10 + 2)


def test_there_are_never_more_partials_than_rows() -> None:
    plan = optimize([query("a", 10, 2)], rate=100, strategy="weave_share", technique="panes")
    assert estimate(plan, ONE, Stream(groups=1_000_000)).partials == 100


def test_more_rows_cost_only_their_passes() -> None:
    plans = [
        optimize([query("a", 10, 2), query("b", 9, 3)], rate=r, strategy="weave_share", technique="panes")
        for r in (1_000, 2_000)
    ]
    slow, fast = (estimate(plan, ONE) for plan in plans)
    assert fast.rows >= 2 * slow.rows * len(plans[1].feeds) / len(plans[0].feeds)
    assert fast.answers == slow.answers


def test_rows_that_no_filter_passes_are_read_and_make_no_partial() -> None:
    plan = optimize([query("a", 10, 2)], rate=100, strategy="weave_share", technique="panes")
    found = estimate(plan, ONE, Stream(groups=1_000_000, selectivity=0.25, width=3))
    assert found.rows == 100
    assert found.partials == 100 * 0.25 * 3


def asking(name: str, function: str, seconds: int, slide: int, *more: str) -> ACQ:
    return replace(query(name, seconds, slide), calls=(Call(function, ("v", *more)),), keys=("k",))


def test_values_are_sent_once_a_feed_kept_once_a_tree_and_moved_for_every_query() -> None:
    a, b, batch = asking("a", "median", 10, 2), asking("b", "percentile", 6, 2, "0.9"), 5
    one, two, apart = (
        optimize(queries, rate=100, strategy=strategy)
        for queries, strategy in (([a], "no_share"), ([a, b], "shared"), ([a, b], "no_share"))
    )
    found = [estimate(plan, ONE, Stream(groups=4, batch_seconds=batch)).values for plan in (one, two, apart)]
    assert found[0] == pytest.approx(100 * SENT + 100 * 10 * KEPT / batch + 2 * 100 * MOVED)
    assert found[1] == pytest.approx(100 * SENT + 100 * 10 * KEPT / batch + 4 * 100 * MOVED)
    assert found[2] == pytest.approx(200 * SENT + 100 * 16 * KEPT / batch + 4 * 100 * MOVED)
    assert estimate(optimize([query("a", 10, 2)], rate=100), ONE).values == 0


def test_values_that_were_measured_weigh_what_they_took() -> None:
    plan = optimize([asking("a", "median", 10, 2)], rate=100, strategy="no_share")
    measured = replace(ONE, measured_values=ValueWeights(sent=3, kept=5, moved=7))
    found = estimate(plan, measured, Stream(groups=4, batch_seconds=5))
    assert found.values == pytest.approx(100 * 3 + 100 * 10 * 5 / 5 + 2 * 100 * 7)
    assert replace(found, values=0) == replace(estimate(plan, ONE, Stream(groups=4, batch_seconds=5)), values=0)


def test_a_file_of_weights_is_read_with_and_without_those_of_values(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    for weights in (replace(ONE, measured_values=ValueWeights(sent=3, kept=5, moved=7)), ONE):
        save_calibration(Calibration(weights), file)
        assert load_weights(file) == weights
    content = json.loads(file.read_text())
    del content["weights"]["measured_values"]  # as earlier versions wrote it
    file.write_text(json.dumps(content))
    assert load_weights(file) == ONE
    content["weights"]["measured_values"] = {"sent": 1}
    file.write_text(json.dumps(content))
    with pytest.raises(BadCalibration, match="weft calibrate"):
        load_weights(file)


def test_a_sketch_weighs_what_it_holds_for_each_slice_and_group() -> None:
    plan = optimize([asking("a", "approx_count_distinct", 10, 2)], rate=1e6)
    some, many = (estimate(plan, ONE, Stream(groups=groups)).values for groups in (1, 1000))
    assert many == pytest.approx(some * 1000)
    assert estimate(plan, ONE, Stream(groups=1e9)).values == pytest.approx(
        estimate(optimize([asking("a", "count_distinct", 10, 2)], rate=1e6), ONE, Stream(groups=1e9)).values
    )


def test_where_sketches_are_dear_slices_are_not_cut_finer_for_them() -> None:
    """Over the same windows, exact values share one pass and sketches are kept apart: finer slices hold more."""
    windows = [(7 * slide, slide) for slide in (7, 11, 13, 17)]
    stream = Stream(groups=1000, batch_seconds=10)
    weights = weighed(row=1e-9, partial=1e-6, kept=1e-7, operation=1e-9)
    trees = {}
    for function in ("count_distinct", "approx_count_distinct"):
        queries = [asking(f"q{i}", function, *window) for i, window in enumerate(windows)]
        plan = optimize(queries, 1e6, "weave_share", "panes", cost="seconds", weights=weights, stream=stream)
        trees[function] = len(plan.feeds)
    assert trees["count_distinct"] == 1 < trees["approx_count_distinct"]


@pytest.mark.parametrize("bad", [{"groups": 0}, {"width": -1}, {"selectivity": 1.5}, {"batch_seconds": 0}])
def test_statistics_that_no_stream_has_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadStream, match=next(iter(bad))):
        Stream(**bad)


WORKLOAD = [query(f"q{i}", 7 * s + i % 3, s) for i, s in enumerate((2, 3, 4, 5, 6, 7, 9, 10, 12, 15, 20, 30))]


def weighed(**heavy: float) -> Weights:
    return replace(Weights(batch=0, query=0, row=0, partial=0, kept=0, operation=1e-12, answer=0), **heavy)


def test_where_only_rows_take_time_all_queries_share_one_pass() -> None:
    plan = optimize(WORKLOAD, 0.001, "no_share", "panes", cost="seconds", weights=weighed(row=1.0))
    assert len(plan.feeds) == 1


def test_where_many_groups_make_partials_dear_fine_slices_are_not_shared() -> None:
    stream = Stream(groups=10_000)
    dear = optimize(WORKLOAD, 1e9, "shared", "panes", cost="seconds", weights=weighed(partial=1e-6), stream=stream)
    by_operations = optimize(WORKLOAD, 1e9, "shared", "panes")
    assert len(by_operations.trees) == 1
    made = [sum(float(f.edge_rate) for f in plan.feeds) for plan in (dear, by_operations)]
    assert made[0] <= made[1]


@pytest.mark.parametrize("strategy", ["no_share", "shared", "weave_share", "tri_weave"])
def test_by_seconds_no_plan_takes_longer_than_the_one_by_operations(strategy: str) -> None:
    weights = Weights(batch=0.5, query=1e-3, row=2e-7, partial=2e-6, kept=5e-8, operation=2e-9, answer=1e-7)
    for groups in (1, 100, 10_000):
        stream = Stream(groups=groups)
        plan = optimize(WORKLOAD, 5_000, strategy, "panes", cost="seconds", weights=weights, stream=stream)
        usual = optimize(WORKLOAD, 5_000, strategy, "panes")
        assert plan.seconds is not None
        assert plan.seconds == estimate(plan, weights, stream).seconds
        assert plan.seconds <= estimate(usual, weights, stream).seconds
        assert plan.cost == Cost(TECHNIQUES["panes"]).plan(plan.trees, plan.feeds, Statistics(Fraction(5_000)))


def test_seconds_want_weights_and_there_are_two_costs() -> None:
    with pytest.raises(CannotOptimize, match="weft calibrate"):
        optimize(WORKLOAD, cost="seconds")
    with pytest.raises(CannotOptimize, match="operations, seconds"):
        optimize(WORKLOAD, cost="money")
