"""`weft bench techniques`: the shape of its report, its picture, and the arithmetic of its summary. No Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft.kernels import TECHNIQUES
from weft_bench.benchmark import BadSetting
from weft_bench.benchmarks.techniques.settings import TechniqueSettings, exponents
from weft_bench.benchmarks.techniques.setup import read_stream
from weft_bench.benchmarks.techniques.summary import SUMMARY, rates, steadiest, within

SMALL = ["--windows", "0,3,5", "--multi", "2,3", "--ranges", "4", "--groups", "10", "--slides", "2000",
         "--budget", "1", "--latencies", "5000"]  # fmt: skip


def test_windows_are_powers_of_two_within_reach() -> None:
    assert exponents("4,0,4") == (0, 4)
    for text in ("25", "-1", "x"):
        with pytest.raises(BadSetting):
            exponents(text)


def test_values_come_from_the_third_column_of_a_file_or_from_the_seed(tmp_path: Path) -> None:
    file = tmp_path / "events.tsv"
    file.write_text("2012-02-22T16:46:28\t1\t13056\t14406\n2012-02-22T16:46:29\t2\t13054\t14405\n")
    assert read_stream(TechniqueSettings(data=str(file))).tolist() == [13056, 13054]
    seeded = read_stream(TechniqueSettings(seed=3))
    assert (seeded == read_stream(TechniqueSettings(seed=3))).all()
    assert (seeded != read_stream(TechniqueSettings(seed=4))).any()


def test_a_file_without_readings_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "words.tsv"
    file.write_text("a\tb\tc\n")
    with pytest.raises(BadSetting, match="third column"):
        read_stream(TechniqueSettings(data=str(file)))


def test_the_steadiest_is_the_one_whose_slowest_window_is_fastest() -> None:
    found = {"a": {16: 9.0, 32: 1.0}, "b": {16: 4.0, 32: 3.0}, "short": {16: 99.0}, "touch": {16: 50.0, 32: 50.0}}
    assert steadiest(found) == "b"
    assert within({1: 5.0, 16: 2.0, 1 << 21: 7.0}) == [2.0]
    assert within({1: 5.0}) == [5.0]


@pytest.mark.slow
def test_a_small_run_reports_everything_it_promises(tmp_path: Path) -> None:
    page = tmp_path / "figures.html"
    done = CliRunner().invoke(app, ["bench", "techniques", *SMALL, "--count", "--json", "--page", str(page)])
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    rows, summary = found["rows"], found["summary"]
    assert set(summary) == set(SUMMARY)
    assert summary["answers_checked"] is True
    assert {row["figure"] for row in rows} == {
        "bulk",
        "23",
        "24",
        "25",
        "26",
        "27",
        "29",
        "together",
        "groups",
        "table 4",
    }
    assert {row["technique"] for row in rows if row["figure"] == "29"} == set(TECHNIQUES)
    assert all(row["slides_per_second"] > 0 for row in rows if "slides_per_second" in row)
    assert rates(rows, "24", "max")["slick_deque_non_inv"].keys() == {1, 8, 32}
    counted = [row for row in rows if row["figure"] == "table 4"]
    assert all(row["amortised"] <= row["amortised_bound"] and row["worst"] <= row["worst_bound"] for row in counted)
    assert [f["figure"] for f in summary["findings"]] == ["16", "17, 18", "19", "23", "24", "25", "26", "27, 28", "29"]
    assert all(np.isfinite(v) and v > 0 for v in summary.values() if isinstance(v, float))
    text = page.read_text()
    assert text.count("<svg") == 11
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
