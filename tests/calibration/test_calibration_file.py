"""One file for everything that was measured, and the three files of earlier versions."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from weft.calibration.file import (
    BadCalibration,
    Calibration,
    calibration_file,
    is_calibrated,
    load_speeds,
    load_table_costs,
    load_weights,
    save_calibration,
)
from weft.calibration.speeds import DEFAULT_SPEEDS
from weft.calibration.table_costs import DEFAULT_TABLE_COSTS
from weft.calibration.weights import Weights

WEIGHTS = Weights(batch=1, query=2, row=3, partial=4, kept=5, operation=6, answer=7)


def write_old_files(folder: Path) -> None:
    speeds = {o: {t: asdict(speed) for t, speed in by.items()} for o, by in DEFAULT_SPEEDS.items()}
    old = {"weights.json": asdict(WEIGHTS), "speeds.json": speeds, "tables.json": asdict(DEFAULT_TABLE_COSTS)}
    for name, content in old.items():
        (folder / name).write_text(json.dumps(content))


def test_the_file_has_a_version_and_one_section_per_kind(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    save_calibration(Calibration(WEIGHTS, DEFAULT_SPEEDS, DEFAULT_TABLE_COSTS), file)
    assert list(json.loads(file.read_text())) == ["version", "weights", "speeds", "table_costs"]
    assert (load_weights(file), load_speeds(file), load_table_costs(file)) == (
        WEIGHTS,
        DEFAULT_SPEEDS,
        DEFAULT_TABLE_COSTS,
    )


def test_what_was_not_measured_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert (load_weights(), load_speeds(), load_table_costs(), is_calibrated()) == (None, None, None, False)
    save_calibration(Calibration(table_costs=DEFAULT_TABLE_COSTS), calibration_file())
    assert (load_weights(), load_speeds(), load_table_costs(), is_calibrated()) == (
        None,
        None,
        DEFAULT_TABLE_COSTS,
        True,
    )


def test_files_of_earlier_versions_are_read_until_there_is_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "weft"
    folder.mkdir()
    write_old_files(folder)
    assert (load_weights(), load_speeds(), load_table_costs()) == (WEIGHTS, DEFAULT_SPEEDS, DEFAULT_TABLE_COSTS)
    assert is_calibrated()
    assert load_weights(folder / "weights.json") == WEIGHTS, "as `weft simulate --weights` names it"
    save_calibration(Calibration(WEIGHTS), calibration_file())
    assert (load_weights(), load_speeds(), load_table_costs()) == (WEIGHTS, None, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"version": 2, "weights": {}}', "it has format 2, and this version of weft reads format 1"),
        ('{"version": 1, "weights": {"batch": 1}}', "has no weights"),
        ("{", "has no weights"),
    ],
)
def test_a_file_that_cannot_be_used_says_what_to_do(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "calibration.json"
    file.write_text(content)
    with pytest.raises(BadCalibration, match=message) as refused:
        load_weights(file)
    assert "run `weft calibrate` again, or delete it" in str(refused.value)


def test_costs_of_tables_are_above_0(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    file.write_text(json.dumps({"version": 1, "table_costs": {**asdict(DEFAULT_TABLE_COSTS), "row": 0}}))
    with pytest.raises(BadCalibration, match="not above 0"):
        load_table_costs(file)


def test_calibrating_imports_no_benchmark() -> None:
    code = """
import sys
import weft.cli.calibrate
import weft.calibration.measure.speeds, weft.calibration.measure.table_costs, weft.calibration.measure.weights
assert not [name for name in sys.modules if name.startswith("weft_bench")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
