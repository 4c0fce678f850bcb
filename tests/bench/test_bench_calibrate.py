"""The weights that made the times are the weights that are read from them."""

from __future__ import annotations

import pytest

from weft.bench.calibrate import PROBES, Probe, Sample, fit
from weft.spark.pipeline import BatchMetrics

NATIVE = (0.3, 2e-7, 1e-6)
FINAL = (0.2, 1e-3, 2e-6, 3e-8, 5e-8)


def samples() -> list[Sample]:
    made: list[Sample] = []
    for probe in PROBES:
        for batch in range(2, probe.batches):
            rows = probe.rate * probe.seconds
            partials = min(rows, probe.keys * probe.seconds)
            answers = sum(probe.keys * probe.seconds // slide for _, slide in probe.windows)
            metrics = BatchMetrics(batch, rows, partials, answers, 0, 0, 0, None, None, 0.0, {}, 0, {})
            sample = Sample(probe, metrics, probe.kept([partials] * probe.batches)[batch])
            phases = {
                "native": sum(w * x for w, x in zip(NATIVE, sample.native, strict=True)),
                "final": sum(w * x for w, x in zip(FINAL, sample.final, strict=True)),
            }
            object.__setattr__(metrics, "phases", phases)
            made.append(sample)
    return made


def test_weights_come_out_as_they_went_in() -> None:
    weights, off = fit(samples(), 1e-9)
    assert weights.row == pytest.approx(2e-7, rel=1e-6)
    assert weights.batch == pytest.approx(0.5, rel=1e-6)
    assert weights.query == pytest.approx(1e-3, rel=1e-6)
    assert weights.partial == pytest.approx(3e-6, rel=1e-6)
    assert weights.kept == pytest.approx(3e-8, rel=1e-6)
    assert weights.answer == pytest.approx(5e-8, rel=1e-6)
    assert max(off.values()) < 1e-9


def test_nothing_takes_less_than_combining_it_once() -> None:
    lame = samples()
    for sample in lame:
        shorter = {"native": sample.metrics.phases["native"], "final": max(1e-3, 0.2 - 1e-7 * sample.metrics.answers)}
        object.__setattr__(sample.metrics, "phases", shorter)
    weights, _ = fit(lame, 1e-9)
    assert weights.answer == 1e-9
    assert min(weights.batch, weights.query, weights.row, weights.partial, weights.kept) >= 1e-9


def test_a_probe_keeps_what_its_longest_window_still_covers() -> None:
    probe = Probe("", ((30, 1),), keys=1, rate=1, seconds=20)
    # A window of 30 s reaches back over two batches of 20 s at most.
    assert probe.kept([1, 10, 100, 1000]) == [1, 11, 111, 1110]
