"""What all tests share: one Spark session, a machine that was never calibrated, and a list of what was not run."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import served as served

CONFIG = "XDG_CONFIG_HOME"
"""Where `weft calibrate` keeps what it measured. Plans depend on it; tests must not."""

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""The quick compiler alone, for every JVM that a test starts: half the time of a batch, since none runs for long.

Alone it has 48 MB for what it compiles, which some hundred queries fill; then the JVM interprets everything."""

ROOM = 2 << 30
"""Bytes that the files of all tests need at most."""


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("JDK_JAVA_OPTIONS", JAVA_OPTIONS)
    _keep_files_in_memory()
    before, folder = os.environ.get(CONFIG), tempfile.mkdtemp(prefix="weft-config-")
    os.environ[CONFIG] = folder

    def put_back() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop(CONFIG) if before is None else os.environ.update({CONFIG: before})

    config.add_cleanup(put_back)


def _keep_files_in_memory() -> None:
    """Checkpoints wait for the disk with every batch; in memory, where there is enough of it, they do not."""
    memory = Path("/dev/shm")
    if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM:
        os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = str(memory)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that takes the session needs Spark: `-m "not spark"` leaves it out."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was not run, and what to do to run it: one line per missing part."""
    skipped = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", ()))
    slow = sum(item.get_closest_marker("slow") is not None for item in terminalreporter.stats.get("deselected", ()))
    if not skipped and not slow:
        return
    terminalreporter.section("not run")
    for reason, count in skipped.most_common():
        terminalreporter.line(f"{_tests(count)} skipped: {reason}")
    if slow:
        terminalreporter.line(f"{_tests(slow)} marked slow: run `make test-slow`")


def _reason(report: Any) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(text).removeprefix("Skipped: ").splitlines()[0]


def _tests(count: int) -> str:
    return f"{count} test" if count == 1 else f"{count} tests"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One JVM for all tests; a test that needs other settings takes `spark.newSession()`."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from weft.spark import local_session

    session = local_session(
        {"spark.master": "local[2]", "spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
