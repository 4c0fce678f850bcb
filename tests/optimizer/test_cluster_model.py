"""Clusters on paper: work is neither lost nor doubled, and what is said of skew, slow nodes and losses is counted."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from weft.calibration.file import Calibration, save_calibration
from weft.calibration.weights import Weights
from weft.cli.app import app
from weft.optimizer import optimize
from weft.optimizer.cluster_model import BadCluster, Cluster, Keys, least_nodes, simulate, to_lowest
from weft.optimizer.cost.seconds import Stream, estimate
from weft.optimizer.paper_workloads import Shape, generate
from weft.plan.logical import Plan

WEIGHTS = Weights(batch=0.3, query=1e-4, row=5e-7, partial=1e-6, kept=2e-8, operation=5e-9, answer=2e-7)
STREAM = Stream(batch_seconds=10)
examine = settings(max_examples=40, deadline=None, derandomize=True)


@pytest.fixture(scope="module")
def plan() -> Plan:
    shape = Shape(number=40, maximum_slide=60, rate=Fraction(5_000_000), skew=0.6, maximum_overlap=10)
    return optimize(generate(shape), rate=shape.rate, strategy="weave_share")


@examine
@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 500), st.floats(0, 2))
def test_the_work_of_all_nodes_is_that_of_the_plan(
    plan: Plan, nodes: int, buckets: int, keys: int, skew: float
) -> None:
    load = simulate(plan, WEIGHTS, Cluster(nodes, buckets, slow=0), Keys(keys, skew), STREAM, batches=3)
    took = estimate(plan, WEIGHTS, Stream(groups=max(1.0, load.groups_per_slice), batch_seconds=10))
    assert load.estimate == took
    for nodes_loads in (load.hashed, load.placed):
        assert nodes_loads.sum() == pytest.approx(took.seconds - took.batches)
    assert load.placed.max() <= load.hashed.max() * (4 / 3 + 1e-9), "no worse than its bound"
    assert load.batch_seconds == pytest.approx(took.batches + load.busiest), "no node is slow"


def test_groups_are_present_as_often_as_rows_fall_into_them() -> None:
    random, rows, keys = np.random.default_rng(3), 300, Keys(50, 1.2)
    weights = np.arange(1, 51) ** -1.2
    drawn = [np.unique(random.choice(50, random.poisson(rows), p=weights / weights.sum())) for _ in range(4_000)]
    counted = np.bincount(np.concatenate(drawn), minlength=50) / 4_000
    assert np.abs(keys.odds_per_slice(rows) - counted).max() < 0.03


def test_slow_nodes_hold_up_their_buckets_and_rows_go_to_the_others(plan: Plan) -> None:
    cluster, keys = Cluster(4, 2, slow=1, slowness=3), Keys(1_000)
    load = simulate(plan, WEIGHTS, cluster, keys, STREAM, batches=5)
    took = load.estimate
    assert load.batch_seconds - took.batches == pytest.approx(3 * load.busiest), "all are slow"
    some = simulate(plan, WEIGHTS, Cluster(4, 2, slow=0.5, slowness=3), keys, STREAM, batches=500)
    assert load.busiest + took.batches <= some.batch_seconds.min() + 1e-12
    assert some.batch_seconds.max() <= load.batch_seconds.max() + 1e-12


def test_a_lost_node_is_a_matter_of_its_state_and_of_the_room_that_is_left(plan: Plan) -> None:
    keys = Keys(10_000)
    alone, few, many = (simulate(plan, WEIGHTS, Cluster(n), keys, STREAM, batches=1) for n in (1, 2, 20))
    assert (alone.recovery_seconds, alone.catch_up_seconds) == (0.0, None)
    assert many.recovery_seconds < few.recovery_seconds
    assert few.catch_up_seconds is None or few.catch_up_seconds > (many.catch_up_seconds or 0)


def test_the_fewest_nodes_are_found_or_there_are_none(plan: Plan) -> None:
    keys, cluster = Keys(10_000, 0.5), Cluster()
    found = least_nodes(plan, WEIGHTS, cluster, keys, STREAM, busy=0.2)
    assert found is not None

    def busy(nodes: int) -> float:
        load = simulate(plan, WEIGHTS, Cluster(nodes, slow=0), keys, STREAM, batches=1)
        return load.estimate.batches + load.busiest

    assert busy(found) <= 0.2 < busy(found - 1)
    assert least_nodes(plan, WEIGHTS, cluster, keys, STREAM, busy=0.01) is None, "the driver alone takes longer"


@examine
@given(st.lists(st.floats(0, 10), max_size=20), st.lists(st.floats(0, 10), min_size=1, max_size=5))
def test_buckets_go_to_whoever_has_least(shares: list[float], loads: list[float]) -> None:
    node_of_share = to_lowest(np.array(shares), np.array(loads))
    now = list(loads)
    for bucket in sorted(range(len(shares)), key=lambda b: (-shares[b], b)):
        assert now[node_of_share[bucket]] == min(now)
        now[node_of_share[bucket]] += shares[bucket]


@pytest.mark.parametrize("wrong", [{"nodes": 0}, {"buckets": 0}, {"slow": 1.5}, {"slowness": 0.5}])
def test_clusters_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadCluster):
        Cluster(**wrong)  # type: ignore[arg-type]


def test_the_command_says_what_a_cluster_would_do(tmp_path: Path) -> None:
    weights = tmp_path / "calibration.json"
    save_calibration(Calibration(WEIGHTS), weights)
    command = [
        "simulate",
        "--nodes",
        "20",
        "--queries",
        "200",
        "--rate",
        "1e6",
        "--keys",
        "5000",
        "--weights",
        str(weights),
    ]
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert (found["nodes"], found["queries"]) == (20, 200)
    assert found["node_busy_most"] >= found["node_busy_mean"] > 0
    assert "busiest node" in CliRunner().invoke(app, command).stdout
    missing = CliRunner().invoke(app, [*command[:-1], str(tmp_path / "nowhere.json")])
    assert missing.exit_code == 2
    assert "weft calibrate" in missing.stderr
