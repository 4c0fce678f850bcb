"""What all tests share: one Spark session, and a machine that was never calibrated."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.serving import served as served

CONFIG = "XDG_CONFIG_HOME"
"""Where `weft calibrate` keeps what it measured. Plans follow that; tests must not hang on who has measured here."""


def pytest_configure(config: pytest.Config) -> None:
    before, folder = os.environ.get(CONFIG), tempfile.mkdtemp(prefix="weft-config-")
    os.environ[CONFIG] = folder

    def put_back() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop(CONFIG) if before is None else os.environ.update({CONFIG: before})

    config.add_cleanup(put_back)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
