"""The conditions of a measurement: the machine, its load, and the memory in use.

Processes are read from /proc. Without it, memory is None.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import IO, Any, Self

PROC = Path("/proc")

LOOK_SECONDS = 0.1
"""Between two samples of the memory of all processes; a sample takes a few milliseconds."""


def describe_machine() -> dict[str, Any]:
    return {
        "processor": _field(PROC / "cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": _kilobytes(PROC / "meminfo", "MemTotal"),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("weft", "pyspark", "pyarrow", "numba")},
    }


def load() -> float:
    """The load average of the last minute: above the number of cores, other processes affect a measurement."""
    return round(os.getloadavg()[0], 2)


LOOP = """
import json, sys, time
text = json.dumps({"ts": "2026-01-01T00:00:00Z", "k": 7, "v": 0.5})
print(flush=True)
sys.stdin.readline()
end, done = time.perf_counter() + float(sys.argv[1]), 0
while time.perf_counter() < end:
    for _ in range(1000):
        json.loads(text)
    done += 1
print(done)
"""


def two_over_one(seconds: float = 1.0, times: int = 3) -> float:
    """The throughput of two independent processes over that of one: 2 if each has its own core."""
    return median(_rounds_finished(2, seconds) / _rounds_finished(1, seconds) for _ in range(times))


def _rounds_finished(processes: int, seconds: float) -> int:
    command = [sys.executable, "-c", LOOP, str(seconds)]
    with ExitStack() as stack:
        begun = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(processes)
        ]
        # All processes are ready before any begins.
        for process in begun:
            _pipe(process.stdout).readline()
        for process in begun:
            _pipe(process.stdin).write("\n")
            _pipe(process.stdin).flush()
        return sum(int(_pipe(process.stdout).readline()) for process in begun)


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _field(path: Path, name: str) -> str | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        # A process may end between being listed and being read.
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def _kilobytes(path: Path, name: str) -> int | None:
    text = _field(path, name)
    return None if text is None else int(text.split()[0]) * 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident bytes: of this process and its JVM, and of the Python workers. A page that two share counts twice."""

    driver: int
    workers: int


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    name: str


def processes(proc: Path = PROC) -> list[Process]:
    running = []
    for folder in proc.iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:
                continue
            # pid (name) state parent ...; the name may hold spaces and brackets.
            before, _, after = stat.rpartition(")")
            running.append(Process(int(folder.name), int(after.split()[1]), before.partition("(")[2]))
    return running


def family(root: int, running: list[Process]) -> tuple[set[int], set[int]]:
    """The driver's processes, which are `root` and everything down to its JVM, and the Python workers below that.

    A JVM that starts a process is listed twice for a moment, with all its memory; the copy is neither.

    >>> family(1, [Process(1, 0, "python"), Process(2, 1, "java"), Process(3, 2, "python"), Process(9, 0, "java")])
    ({1, 2}, {3})
    """
    children: dict[int, list[Process]] = {}
    for process in running:
        children.setdefault(process.parent, []).append(process)
    driver: set[int] = {root}
    workers: set[int] = set()
    waiting = [(child, False) for child in children.get(root, [])]
    while waiting:
        process, below_jvm = waiting.pop()
        if not below_jvm:
            driver.add(process.pid)
        elif process.name.startswith("python"):
            workers.add(process.pid)
        below = below_jvm or process.name == "java"
        waiting.extend((child, below) for child in children.get(process.pid, []))
    return driver, workers


def memory_now(root: int | None = None, proc: Path = PROC) -> Memory | None:
    if not proc.is_dir():
        return None
    driver, workers = family(os.getpid() if root is None else root, processes(proc))

    def resident_bytes(pids: set[int]) -> int:
        return sum(resident(pid, proc) or 0 for pid in pids)

    return Memory(resident_bytes(driver), resident_bytes(workers))


def resident(pid: int, proc: Path = PROC) -> int | None:
    """Resident bytes of a process; None: it has ended, or there is no /proc."""
    return _kilobytes(proc / str(pid) / "status", "VmRSS")


class PeakMemory:
    """The peak memory of all samples while the block ran.

    A JVM seldom returns memory, so the driver of a later run also has the memory that earlier runs needed.
    """

    def __init__(self) -> None:
        self._peak: Memory | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _look(self) -> None:
        now = memory_now()
        if now is not None:
            before = self._peak or Memory(0, 0)
            self._peak = Memory(max(before.driver, now.driver), max(before.workers, now.workers))

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            self._look()

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()
        self._look()

    def as_row(self) -> dict[str, int | None]:
        return {
            "peak_memory_driver_bytes": None if self._peak is None else self._peak.driver,
            "peak_memory_workers_bytes": None if self._peak is None else self._peak.workers,
        }
