"""`weft bench scale`: what its summary says of the points, and the rows that it makes."""

from __future__ import annotations

import json
import os
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from weft.calibration.file import Calibration, calibration_file, save_calibration
from weft.calibration.weights import Weights
from weft_bench.benchmarks.scale.benchmark import (
    SUMMARY,
    NoCluster,
    ScaleSettings,
    add_up,
    compare_with_paper,
    hashed_over_mean,
    spark_home,
    summarise,
)
from weft_bench.benchmarks.scale.rows import BEGUN, SMALL, RowShape, draw_keys, write_rows


def point(name: str, executors: int, seconds: float, tasks: tuple[int, ...] = (10, 10), jobs: int = 2) -> Any:
    batch = {"rows": 100, "partials": 10, "answers": 5, "seconds": seconds, "jobs": jobs, "stages": 5}
    batches = [batch | {"shuffled_bytes": 150, "final_tasks": list(tasks), "final_partials": [5, 7]}] * 3
    return add_up({"point": name, "executors": executors, "queries": 1, "trees": 1, "batches": batches})


def test_the_summary_has_the_ratio_the_skew_and_whether_jobs_are_constant() -> None:
    points = [
        point("throughput", 1, 9.0),
        point("throughput", 2, 5.0),
        point("throughput", 1, 8.0),
        point("parquet", 1, 3.0),
        point("parquet", 2, 2.5),
        point("skewed", 2, 1.0, tasks=(10, 10, 10, 15)),
        point("shuffled", 2, 1.0),
        point("trees", 1, 1.0),
        point("hot tree", 1, 1.0, tasks=(6, 10)),
    ]
    found = summarise(points)
    assert found["throughput_ratio"] == pytest.approx(1.6)
    assert found["parquet_ratio"] == pytest.approx(1.2)
    assert found["driver_share_1"] == pytest.approx(0.25), "8 seconds are 2 that stay and 6 that divide"
    assert found["zipf_slowest_over_mean"] == pytest.approx(15 / 11.25)
    assert found["hot_tree_slowest_over_mean"] == pytest.approx(1.25)
    assert found["zipf_partials_over_mean"] == pytest.approx(7 / 6)
    assert found["shuffled_bytes_a_row"] == 1.5
    assert (found["jobs_a_batch"], found["stages_a_batch"], found["jobs_constant"]) == (2, 5, True)
    paper = compare_with_paper(points, ScaleSettings())
    assert found.keys() | paper.keys() | {"machine_ratio", "zipf_hashed_over_mean", "load"} == SUMMARY.keys()
    assert not summarise([*points, point("trees", 1, 1.0, jobs=3)])["jobs_constant"]
    assert summarise([p for p in points if p["point"] != "parquet"])["parquet_ratio"] is None


def test_the_formula_of_the_sizing_page_is_beside_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    points = [point("parquet", executors, 2.0) for executors in (1, 2)]
    assert set(compare_with_paper(points, ScaleSettings()).values()) == {None}
    save_calibration(
        Calibration(Weights(batch=1, query=0, row=1e-6, partial=0, kept=0, operation=0, answer=0)), calibration_file()
    )
    found = compare_with_paper(points, ScaleSettings(parquet=600_000))
    divided = 0.6 * len(os.sched_getaffinity(0))
    assert found["estimated_over_measured_1"] == pytest.approx((1 + divided) / 2)
    assert found["estimated_over_measured_2"] == pytest.approx((1 + divided / 2) / 2)


def test_keys_are_drawn_as_zipf_has_them() -> None:
    counts = np.bincount(draw_keys(np.random.default_rng(2), 200_000, 1000, 1.2), minlength=1000)
    assert counts[0] / counts[9] == pytest.approx(10**1.2, rel=0.1)
    even = np.bincount(draw_keys(np.random.default_rng(2), 200_000, 100, 0.0), minlength=100)
    assert even.max() < 1.15 * even.mean()


def test_hashing_alone_leaves_a_partition_with_more() -> None:
    assert 1.05 < hashed_over_mean(ScaleSettings()) < 1.3


def test_a_batch_is_a_file_that_executors_can_divide(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "rows", 1, 1000, 1, RowShape(keys=10, rate=100))
    files = sorted(folder.iterdir())
    assert len(files) == BEGUN + 1
    first, second = (pq.read_table(path).column("ts").to_pylist() for path in files[:2])
    assert (second[0] - first[0]).total_seconds() == 10
    assert pq.ParquetFile(files[0]).num_row_groups == 8


def test_small_batches_come_first_and_time_goes_on_after_them(tmp_path: Path) -> None:
    rows = 10 * SMALL["parquet"]
    folder = write_rows(tmp_path / "rows", 1, rows, 2, RowShape(keys=10, rate=100), small=3)
    times = [pq.read_table(path).column("ts").to_pylist() for path in sorted(folder.iterdir())]
    assert [len(some) for some in times] == [10, 10, 10, rows, rows]
    together = [time for some in times for time in some]
    assert {(after - before).total_seconds() for before, after in pairwise(together)} == {0.01}


def test_json_rows_are_those_of_parquet(tmp_path: Path) -> None:
    table, lines = (
        write_rows(tmp_path / kind, 1, 50, 1, RowShape(keys=10, rate=100), kind=kind) / f"0000.{kind}"
        for kind in ("parquet", "json")
    )
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row | {"ts": datetime.fromisoformat(row["ts"])} for row in rows] == pq.read_table(table).to_pylist()


def test_a_spark_without_its_scripts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(NoCluster, match="no bin/spark-class"):
        spark_home(tmp_path)
