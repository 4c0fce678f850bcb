"""`weft bench`: what it lists, what it refuses, and the shape of what it prints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft_bench import BENCHMARKS

runner = CliRunner()


def test_the_list_names_every_benchmark() -> None:
    shown = runner.invoke(app, ["bench", "--list"])
    assert shown.exit_code == 0
    assert [name for name in BENCHMARKS if name in shown.stdout] == list(BENCHMARKS)
    as_json = json.loads(runner.invoke(app, ["bench", "--list", "--json"]).stdout)
    assert [entry["bench"] for entry in as_json] == list(BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_help_lists_every_name_of_the_summary(name: str) -> None:
    shown = runner.invoke(app, ["bench", name, "--help"]).stdout
    assert [n for n in BENCHMARKS[name].summary if n not in shown] == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--rows", "lots"], "'lots' is not a number"),
        (["--queries", "0"], "whole number from 1 on"),
        (["--rivals", "abacus"], "unknown rival 'abacus'"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_runs(words: list[str], reason: str) -> None:
    refused = runner.invoke(app, ["bench", "spark", *words])
    assert refused.exit_code == 2
    assert reason in refused.stderr


def report(*words: str) -> dict[str, Any]:
    done = runner.invoke(app, ["bench", *words, "--quick", "--json"])
    assert done.exit_code == 0, done.stderr
    assert " s  " in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert set(found) == {"bench", "machine", "settings", "rows", "summary"}
    assert found["bench"] == words[0]
    assert set(BENCHMARKS[words[0]].summary) <= set(found["summary"])
    return found


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_weft_and_spark_take_turns_on_the_same_rows() -> None:
    found = report("spark", "--rows", "20000", "--queries", "1,2", "--keys", "50", "--budget", "30")
    rows, summary = found["rows"], found["summary"]
    assert [(r["engine"], r["queries"], r["keys"]) for r in rows] == [
        ("weft", 1, 50),
        ("spark", 1, 50),
        ("weft", 2, 50),
        ("spark", 2, 50),
        ("weft_parquet", 2, 50),
        ("spark_one_job", 2, 50),
        ("weft", 1, 100),
        ("weft", 2, 100),
    ]
    assert {r["rows"] for r in rows if r["engine"].startswith("weft")} == {20_000}
    assert all(r["seconds"] > 0 and r["rows_per_second"] > 0 and r["answers"] > 0 for r in rows)
    assert all(set(r) >= {"load", "sampled", "cut", "answers_per_second", "peak_memory_driver_bytes"} for r in rows)
    assert summary["answers_checked"] is True
    for name in ("ratio_1", "ratio_2", "one_job_ratio_2", "wall_2_over_1_at_100_keys", "parquet_over_noop_2"):
        assert summary[name] > 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_state_of_a_long_range_is_kept_and_not_written_again() -> None:
    found = report("state", "--batches", "4", "--step", "30", "--rate", "100", "--keys", "20")
    rows = found["rows"]
    assert [(r["range"], r["batch"]) for r in rows] == [(t, b) for t in ("1 hour", "1 minute") for b in range(4)]
    assert {r["rows"] for r in rows} == {3_000}
    hour, minute = rows[:4], rows[4:]
    assert hour[-1]["kept_bytes"] == sum(r["state_bytes"] - r["record_bytes"] for r in hour)
    assert minute[-1]["kept_bytes"] < hour[-1]["kept_bytes"]
    assert 0.9 < found["summary"]["growth"] < 1.1
    assert 0.9 < found["summary"]["hour_over_minute"] < 1.1
