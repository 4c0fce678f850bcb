"""Clusters that live as long as a test: a Spark home, a standalone master with workers, and who is killed of them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyspark

import weft
from weft_bench.benchmarks.scale.benchmark import spark_home

SHIPPED = Path(pyspark.__file__).parent


def cannot() -> str | None:
    """Why no cluster can be started here; None: it can."""
    missing = [name for name in ("bin/spark-class", "jars") if not (SHIPPED / name).exists()]
    return f"a cluster needs {' and '.join(missing)} of PySpark, which this one came without" if missing else None


def clean_home(folder: Path) -> dict[str, str]:
    """The environment of a Spark home in the test's folder; nobody finds the checkout through it."""
    return {name: value for name, value in spark_home(folder).items() if name != "PYTHONPATH"}


@contextmanager
def standalone(folder: Path, environment: Mapping[str, str], workers: int = 2) -> Iterator[str]:
    """A master and its workers, of one core each; its address."""
    started: list[subprocess.Popen[str]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        command = [f"{environment['SPARK_HOME']}/bin/spark-class", *arguments]
        started.append(
            subprocess.Popen(command, env=environment, stderr=log.open("w"), text=True, start_new_session=True)
        )
        return log

    try:
        local = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        log = start("master", "org.apache.spark.deploy.master.Master", *local)
        address = _said(log, r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}"))
            start(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *local, *size, address)
        for number in range(workers):
            _said(folder / f"worker-{number}.log", r"Successfully registered with master (\S+)")
        yield address
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _said(log: Path, pattern: str, seconds: float = 120) -> str:
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        found = re.search(pattern, log.read_text())
        if found:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} never said {pattern}:\n{log.read_text()[-2000:]}")


def executors() -> list[psutil.Process]:
    """The executors of the test's clusters: all below this process."""
    return _below("CoarseGrainedExecutorBackend")


def python_workers() -> list[psutil.Process]:
    """The Python processes of the executors, without the daemon that forks them."""
    return [child for daemon in _below("pyspark.daemon") for child in daemon.children()]


def _below(named: str) -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if any(named in word for word in process.cmdline()) and process.name() != "bash":
                found.append(process)
    return found


def kill(processes: list[psutil.Process]) -> int:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return len(processes)


def package_zip(folder: Path) -> Path:
    """The package as `--py-files` takes it."""
    source = Path(weft.__file__).parent
    with zipfile.ZipFile(folder / "weft.zip", "w") as archive:
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, Path("weft") / path.relative_to(source))
    return folder / "weft.zip"


def python_without_weft(environment: Path) -> Path:
    """An interpreter with every package of this one, and no weft."""
    venv.create(environment, symlinks=True)
    # Folders on the path are not looked into for paths: what is installed for editing is not found this way.
    others = "\n".join(p for p in sys.path if p.endswith("site-packages"))
    (_packages(environment) / "others.pth").write_text(others)
    return environment / "bin" / "python"


def packed_environment(folder: Path) -> Path:
    """An environment with weft, as `--archives` takes it."""
    environment = folder / "packed"
    python_without_weft(environment)
    shutil.copytree(
        Path(weft.__file__).parent, _packages(environment) / "weft", ignore=shutil.ignore_patterns("__pycache__")
    )
    return Path(shutil.make_archive(str(folder / "environment"), "gztar", environment))


def _packages(environment: Path) -> Path:
    (found,) = (environment / "lib").glob("python*/site-packages")
    return found
