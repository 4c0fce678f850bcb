"""Spark sessions: one made as weft wants it, and the settings that a batch runs under."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from weft.model import WeftError
from weft.spark.connectors import resolving


class MissingJava(WeftError):
    """Spark needs a Java runtime."""


class NotOverConnect(WeftError):
    """A session of Spark Connect."""


LONGEST_SOCKET_FOLDER = 60
"""Characters. Linux takes 107 for the whole path of a socket, and Spark's names for them have 42."""

QUIET = Path(__file__).parent / "log4j2.properties"

AS_WEFT_WRITES: Mapping[str, str] = {
    # Names are in lower case in the statements that weft writes. No two columns of a stream differ in case only.
    "spark.sql.caseSensitive": "false",
}
"""What the meaning of weft's own statements depends on."""

BATCH_SETTINGS: Mapping[str, str] = {
    **AS_WEFT_WRITES,
    # A batch's stages are known: re-planning between them would only add jobs.
    "spark.sql.adaptive.enabled": "false",
    # The JVM compiles no longer methods: hundreds of filters in one would be interpreted. Spark makes shorter ones.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # What stands behind AND may fail where what stands before it is false: it is not computed ahead of time.
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    # Partials are cached for a moment: packing them would take longer than moving them.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # The transfer of partials to Python costs per Arrow batch, not per row.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    # A worker that dies says where it was.
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}


def local_session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session in use, or a local one on all cores."""
    require_java()
    # PySpark reads the workers' interpreter from the environment; without it they get whatever python3 is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = os.environ.get("SPARK_MASTER", "local[*]")
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # all of it is here: nobody else need reach it
    builder = (
        SparkSession.builder.appName("weft")
        .config("spark.master", master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 2))
        .config("spark.driver.memory", "4g")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={QUIET.as_uri()}")
    )
    wanted = dict(settings or {})
    if wanted.get("spark.master", master).startswith("local") and SparkSession.getActiveSession() is None:
        wanted = {**worker_sockets(), **wanted}
    for key, value in wanted.items():
        builder = builder.config(key, value)
    with resolving(settings or {}), _deaf_to_sigterm():
        return builder.getOrCreate()


@cache
def worker_sockets() -> dict[str, str]:
    """Spark talks to Python workers through sockets in a folder that nobody else may enter.

    Through TCP, which is its default, a task often waits 40 ms for rows that are there: the last piece is held back
    until the one before is acknowledged, and Linux delays that.
    """
    if sys.platform != "linux":
        return {}
    folder = tempfile.mkdtemp(prefix="weft-sockets-")
    if len(folder) > LONGEST_SOCKET_FOLDER:
        os.rmdir(folder)
        return {}
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": folder}


_launching = threading.Event()


def _ignore_sigterm() -> None:
    if _launching.is_set():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


os.register_at_fork(after_in_child=_ignore_sigterm)


@contextmanager
def _deaf_to_sigterm() -> Iterator[None]:
    """A JVM that is started meanwhile leaves SIGTERM to this process, as PySpark has it leave Ctrl-C.

    `timeout`, a shell or a supervisor sends it to the whole group. Spark's own hook would then take the session away
    from under the batch that runs, before this process can let it finish. What a process ignores when it begins, the
    JVM ignores too; and it ends with this process, whatever ends that, since it reads the end of its input.
    """
    _launching.set()
    try:
        yield
    finally:
        _launching.clear()


def require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin" / "java").exists()) and shutil.which("java") is None:
        raise MissingJava(
            "Spark needs a Java runtime, and none was found; install JDK 17 or 21 "
            "(Debian and Ubuntu: apt-get install openjdk-17-jre-headless, macOS: brew install openjdk@17)"
        )


def require_classic(stream: DataFrame) -> None:
    """A job lives in the driver: its plan, its queries and the record of its batches are there."""
    if not isinstance(stream, ClassicDataFrame):
        raise NotOverConnect(
            "this DataFrame is of a Spark Connect session. There the function of foreachBatch is sent to a process of "
            "the server, without the job's plan, its record of batches, and the queries that join and leave; and "
            "Spark's analyser, which says whether a query may be woven, cannot be asked. Weave in a classic session: "
            "SparkSession.builder.master(...), or spark-submit, with the same cluster as master"
        )


def use_this_python(spark: SparkSession) -> None:
    """Python workers run the interpreter that runs here, unless the user has chosen one."""
    if "PYSPARK_PYTHON" not in os.environ:
        spark.sparkContext.pythonExec = sys.executable


@contextmanager
def batch_settings(spark: SparkSession, partitions: int) -> Iterator[None]:
    """The settings of a batch, put back afterwards: the session is the user's."""
    with settings_for(spark, {**BATCH_SETTINGS, "spark.sql.shuffle.partitions": str(partitions)}):
        yield


@contextmanager
def settings_for(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, and with its own afterwards."""
    before = {key: spark.conf.get(key) for key in wanted}
    changed = {key: value for key, value in wanted.items() if before[key] != value}
    for key, value in changed.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in changed:
            old = before[key]
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
