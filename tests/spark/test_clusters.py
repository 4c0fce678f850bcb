"""Clusters: executors and their Python workers are killed in the middle of batches, and every answer is there, once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support import ROOT, clusters
from tests.support.killing import assert_answers
from tests.support.streams import write_rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(clusters.cannot() is not None, reason=str(clusters.cannot())),
]

KILLED = {2: clusters.python_workers, 4: clusters.executors, 6: clusters.python_workers}
"""Who is killed after which batch."""


def live(folder: Path, uri: str, environment: Mapping[str, str]) -> int:
    """Run to the end while processes are killed; how many were."""
    errors = folder / "errors.txt"
    random, killed = Random(5), 0
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.resumable", uri],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=errors.open("w"),
        text=True,
    ) as process:
        assert process.stdout is not None
        for told, _ in enumerate(process.stdout, 1):
            if told in KILLED:
                time.sleep(random.uniform(0.1, 0.6))  # into the next batch
                assert process.poll() is None
                killed += clusters.kill(KILLED[told]())
        assert process.wait(60) == 0, errors.read_text()[-3000:]
    return killed


def assert_has_no_weft(python: Path, environment: Mapping[str, str]) -> None:
    missing = subprocess.run([python, "-c", "import pyarrow, weft"], env=environment, capture_output=True, text=True)
    assert "No module named 'weft'" in missing.stderr, "executors would find it without being given it"


def test_in_a_local_cluster_that_gets_an_archive_answers_stay_exact(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=8, rows=60)
    environment = clusters.clean_home(tmp_path) | {
        "SPARK_MASTER": "local-cluster[2,1,1024]",
        "PYSPARK_PYTHON": "./environment/bin/python",
        "PYSPARK_SUBMIT_ARGS": f"--archives {clusters.packed_environment(tmp_path)}#environment pyspark-shell",
    }
    assert live(tmp_path, str(tmp_path), environment) >= 4, "whoever was to die was not there"
    assert_answers(spark, tmp_path)


def test_on_a_standalone_cluster_that_gets_a_zip_answers_stay_exact(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=8, rows=60)
    python = clusters.python_without_weft(tmp_path / "clean")
    environment = clusters.clean_home(tmp_path)
    assert_has_no_weft(python, environment)
    with clusters.standalone(tmp_path, environment) as master:
        environment |= {
            "SPARK_MASTER": master,
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_SUBMIT_ARGS": f"--py-files {clusters.package_zip(tmp_path)} pyspark-shell",
        }
        assert live(tmp_path, tmp_path.as_uri(), environment) >= 4, "whoever was to die was not there"
    assert_answers(spark, tmp_path)
