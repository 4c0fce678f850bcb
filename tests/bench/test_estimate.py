"""Estimated against actual: what is said about rows that were measured."""

from __future__ import annotations

from typing import Any

import pytest

from weft.calibration.weights import Weights
from weft_bench.benchmark import BadSetting, make_settings
from weft_bench.benchmarks.estimate import ESTIMATE, EstimateSettings, charts, deviation, find_weights, summarise
from weft_bench.output.charts import to_text


def row(optimizer: str, technique: str, operations: float, estimated: float, actual: float) -> dict[str, Any]:
    return {"optimizer": optimizer, "series": technique, "operations": operations, "estimated_seconds": estimated,
            "actual_seconds": actual}  # fmt: skip


ROWS = [
    row("weave_share", "panes", 100.0, 2.0, 4.0),
    row("weave_share", "flat_fit", 10.0, 1.0, 2.0),
    row("tri_weave", "panes", 50.0, 3.0, 3.0),
    row("tri_weave", "flat_fit", 50.0, 1.5, 3.0),
]


def test_lines_that_are_proportional_do_not_deviate() -> None:
    assert deviation([1.0, 2.0, 5.0], [30.0, 60.0, 150.0]) == pytest.approx(0)


def test_the_summary_tells_operations_from_seconds() -> None:
    found = summarise(ROWS)
    # By operations Panes is ten times slower, it was two times slower: 0.1 against 0.5, and nothing for the fastest.
    assert found["weave_share_operations_deviation_percent"] == pytest.approx(100 * (1 - 0.1 / 0.5) / 2)
    assert found["weave_share_seconds_deviation_percent"] == pytest.approx(0)
    assert found["tri_weave_operations_deviation_percent"] == pytest.approx(0)
    assert found["seconds_error_percent"] == pytest.approx(100 * (0.5 + 0.5 + 0 + 0.5) / 4)
    assert found["same_fastest"] is True
    assert found.keys() <= ESTIMATE.summary.keys()


def test_each_optimizer_is_drawn_with_its_fastest_as_one() -> None:
    drawn = charts(ROWS)
    assert [chart.title.split(":")[0] for chart in drawn] == ["weave_share", "tri_weave"]
    assert drawn[0].series["actual"] == [(1.0, 0.5), (2.0, 1.0)]
    assert "by seconds" in to_text(drawn[0])


def test_quick_settings_are_small_and_a_drawing_has_a_known_ending() -> None:
    quick = make_settings(EstimateSettings, {}, quick=True)
    assert quick.shape.number < EstimateSettings().shape.number == 100
    assert (EstimateSettings().weights, quick.weights) == ("measured", "kept")
    with pytest.raises(BadSetting, match="neither"):
        make_settings(EstimateSettings, {"draw": "estimate.png"}, quick=True)
    with pytest.raises(BadSetting, match="measured or kept"):
        make_settings(EstimateSettings, {"weights": "guessed"}, quick=True)


def test_weights_that_were_kept_are_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Weights(batch=1.0, query=0.1, row=0.1, partial=0.1, kept=0.1, operation=0.1, answer=0.1)
    monkeypatch.setattr("weft_bench.benchmarks.estimate.load_weights", lambda: kept)
    said: list[str] = []
    assert find_weights(None, make_settings(EstimateSettings, {}, quick=True), said.append) == (kept, None)
    assert not said
