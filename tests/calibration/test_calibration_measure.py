"""The weights that made the times are the weights that are read from them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import weft.spark
from weft.calibration.file import load_weights
from weft.calibration.measure import speeds as measure_speeds
from weft.calibration.measure import table_costs as measure_table_costs
from weft.calibration.measure import weights as measure_weights
from weft.calibration.measure.weights import PROBES, VALUE_PROBES, WARM_BATCHES, Probe, Sample, fit, measure_stream
from weft.calibration.table_costs import TableCosts
from weft.calibration.weights import ValueWeights
from weft.cli.app import app
from weft.model import ACQ, Call, Window
from weft.optimizer import optimize
from weft.optimizer.cost.seconds import estimate
from weft.spark.execution.metrics import BatchMetrics

NATIVE = (0.3, 2e-7, 1e-6)
FINAL = (0.2, 1e-3, 2e-6, 3e-8, 5e-8)
VALUES = (4e-7, 6e-8, 2e-9)


def samples() -> list[Sample]:
    made: list[Sample] = []
    for probe in (*PROBES, *VALUE_PROBES):
        for batch in range(2, probe.batches):
            rows = probe.rate * probe.seconds
            partials = min(rows, probe.keys * probe.seconds)
            answers = sum(probe.keys * probe.seconds // slide for _, slide in probe.windows)
            metrics = BatchMetrics(batch, rows, partials, answers, 0, 0, 0, None, None, 0.0, {}, 0, {})
            kept, values = (probe.kept([brought] * probe.batches)[batch] for brought in (partials, rows))
            sample = Sample(probe, metrics, kept, values)
            final = float(np.dot(FINAL, sample.final))
            if probe in VALUE_PROBES:
                final += float(np.dot(VALUES, sample.values))
            phases = {"native": float(np.dot(NATIVE, sample.native)), "final": final}
            object.__setattr__(metrics, "phases", phases)
            made.append(sample)
    return made


def test_weights_come_out_as_they_went_in() -> None:
    fitted = fit(samples(), 1e-9)
    weights, values = fitted.weights, fitted.weights.values
    assert weights.row == pytest.approx(2e-7, rel=1e-6)
    assert weights.batch == pytest.approx(0.5, rel=1e-6)
    assert weights.query == pytest.approx(1e-3, rel=1e-6)
    assert weights.partial == pytest.approx(3e-6, rel=1e-6)
    assert weights.kept == pytest.approx(3e-8, rel=1e-6)
    assert weights.answer == pytest.approx(5e-8, rel=1e-6)
    assert (values.sent, values.kept, values.moved) == pytest.approx(VALUES, rel=1e-6)
    assert max(fitted.mean_errors.values()) < 1e-9
    assert fitted.by_probe == {probe.name: pytest.approx(1) for probe in (*PROBES, *VALUE_PROBES)}
    assert fitted.too_small == ()


def test_no_term_hides_behind_another_in_all_probes() -> None:
    """A term that varies only together with others has no price of its own: each needs a probe that separates it."""
    made = samples()
    for matrix in (
        [s.native for s in made if s.probe in PROBES],
        [s.final for s in made if s.probe in PROBES],
        [s.values for s in made if s.probe in VALUE_PROBES],
    ):
        relative = np.array(matrix) / np.max(matrix, axis=0)
        assert np.linalg.cond(relative) < 50


def test_nothing_takes_less_than_combining_it_once_and_what_was_not_seen_is_named() -> None:
    lame = samples()
    for sample in lame:
        shorter = {"native": sample.metrics.phases["native"], "final": max(1e-3, 0.2 - 1e-7 * sample.metrics.answers)}
        object.__setattr__(sample.metrics, "phases", shorter)
    fitted = fit(lame, 1e-9)
    weights = fitted.weights
    assert weights.answer == 1e-9
    assert min(weights.batch, weights.query, weights.row, weights.partial, weights.kept) >= 1e-9
    assert "answer" in fitted.too_small
    assert max(fitted.mean_errors.values()) > 0


def test_the_command_writes_what_values_take_and_the_estimate_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The streams are not run: their batches take what is said above."""
    by_probe: dict[str, list[Sample]] = {}
    for sample in samples():
        by_probe.setdefault(sample.probe.name, []).append(sample)
    monkeypatch.setattr(weft.spark, "local_session", lambda: None)
    monkeypatch.setattr(measure_weights, "measure_stream", lambda spark, probe, folder: by_probe[probe.name])
    monkeypatch.setattr(measure_weights, "operation_seconds", lambda: 1e-9)
    monkeypatch.setattr(measure_speeds, "measure_speeds", lambda say: {})
    prices = TableCosts(1e-6, 1e-7, 1e-6, 1e-7, 1e-6)
    monkeypatch.setattr(measure_table_costs, "measure_tables", lambda spark, say: prices)
    file = tmp_path / "calibration.json"

    def run(*options: str) -> Any:
        return CliRunner().invoke(app, ["calibrate", "--file", str(file), *options])

    result = run("--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["taken_over_estimated"].keys() == {probe.name for probe in (*PROBES, *VALUE_PROBES)}
    assert report["mean_error"].keys() == {"native", "final", "values"}
    weights = load_weights(file)
    assert weights is not None
    assert weights.measured_values == ValueWeights(*(pytest.approx(value, rel=1e-6) for value in VALUES))
    query = ACQ("q", Window(10_000_000, 2_000_000), (Call("median", ("v",)),), ("k",))
    plan = optimize([query], rate=1_000_000)
    unmeasured = replace(weights, measured_values=None)
    assert estimate(plan, weights).values == pytest.approx(1e6 * (VALUES[0] + VALUES[1] + 2 * VALUES[2]), rel=1e-6)
    assert estimate(plan, unmeasured).values != pytest.approx(estimate(plan, weights).values, rel=0.1)
    assert "many kept values  1.00" in run().stdout


def test_a_probe_keeps_what_its_longest_window_still_covers() -> None:
    probe = Probe("", ((30, 1),), keys=1, rate=1, seconds=20)
    # A window of 30 s reaches back over two batches of 20 s at most.
    assert probe.kept([1, 10, 100, 1000]) == [1, 11, 111, 1110]


def test_all_cores_read_the_rows_of_a_batch(spark: Any, tmp_path: Path) -> None:
    probe = Probe("", ((2, 1),), keys=3, rate=100, seconds=2, batches=WARM_BATCHES + 1)
    (sample,) = measure_stream(spark, probe, tmp_path)
    assert sample.metrics.rows == 200
    assert len(list(tmp_path.glob("rows/part-*"))) == probe.batches * spark.sparkContext.defaultParallelism
