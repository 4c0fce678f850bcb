"""A job at a steady rate for a long time: memory and disk must not grow with it.

The memory of a JVM does not show what it needs: it takes all it may before it collects garbage. So each sample collects
first, and the rest is what the driver really keeps.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from weft_bench.benchmark import Benchmark, Report, Row, Say, option, part
from weft_bench.machine import describe_machine, load, memory_now, resident

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHAT = {
    "driver_heap_bytes": "objects that the driver's JVM holds on to: its heap in use just after a collection",
    "driver_code_bytes": "what its JVM uses beside the heap: classes and compiled code",
    "driver_python_bytes": "resident memory of the driver's Python process",
    "driver_bytes": "resident memory of both, with heap that the JVM has taken and not given back",
    "workers_bytes": "resident memory of the Python workers",
    "disk_bytes": "bytes in the checkpoint folder",
    "disk_files": "files in it",
}

SUMMARY = {
    **{f"{what}_growth": f"{what} of the last quarter of the looks over those of the quarter before the middle, medians"
       for what in WHAT},
    **{what: f"{about}, at the end" for what, about in WHAT.items()},
    "rows_per_second": "rows per second, over the whole time",
    "batches": "batches in all",
    "lag_seconds": "how far the last batch was behind the clock",
    "changes": "queries that were added and dropped while it ran",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SoakSettings:
    minutes: float = option(30.0, "How long, from the first rows on.", quick=0.5, parse=part, metavar="MINUTES")
    rate: int = option(20_000, "Rows per second.")
    keys: int = option(1_000, "Different group keys.")
    every: int = option(
        5, "Seconds between two looks, each after a collection; a query comes or goes with every fourth.", quick=2
    )


def run(settings: SoakSettings, say: Say) -> Report:
    from weft.spark import local_session, weave

    spark = local_session()
    folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    source = spark.readStream.format("rate").option("rowsPerSecond", settings.rate).load()
    key = f"concat('k', value % {settings.keys}) AS k"
    stream = source.selectExpr("timestamp AS ts", key, "CAST(value % 1000 AS DOUBLE) AS v")
    rows: list[Row] = []
    changes = 0
    try:
        job = weave(stream, [_query("long", 60, 1), _query("short", 10, 2)], rate=settings.rate)
        running = job.start(sink="noop", checkpoint=folder / "state", trigger="1 second")
        while running.metrics()["rows"] == 0 and not running.wait(0.2):  # workers start, and load what is compiled
            continue
        begun, before = time.monotonic(), running.metrics()["rows"]
        while time.monotonic() - begun < 60 * settings.minutes:
            if running.wait(settings.every):
                break
            sample = _look(running, spark, folder)
            rows.append(
                {"seconds": time.monotonic() - begun, **sample, "rows": sample["rows"] - before, "load": load()}
            )
            if len(rows) % 4 == 0:
                changes += 1
                _change(running, changes)
            if len(rows) % 12 == 0:
                say(f"  {rows[-1]['seconds']:5.0f} s  batch {sample['batch']}  lag {sample['lag_seconds']:.1f} s")
        running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Report("soak", describe_machine(), asdict(settings), rows, {**summarise(rows), "changes": changes})


def _query(name: str, length: int, slide: int) -> str:
    window = f"window(ts, '{length} seconds', '{slide} seconds')"
    return f"CREATE VIEW {name} AS SELECT k, window, sum(v) AS x, max(v) AS y FROM events GROUP BY k, {window}"


def _change(running: Any, number: int) -> None:
    """One query more, and one less."""
    if number % 2:
        running.add(_query(f"guest{number}", 20 + number % 7, 1 + number % 3))
    else:
        running.drop(f"guest{number - 1}")


def _look(running: Any, spark: SparkSession, folder: Path) -> Row:
    metrics = running.metrics()
    return {**_memory_and_disk(spark, folder), **{name: metrics[name] for name in ("batch", "rows", "lag_seconds")}}


def _memory_and_disk(spark: SparkSession, folder: Path) -> dict[str, int | None]:
    heap, code = _collected(spark)
    memory = memory_now()
    sizes = []
    for path in folder.rglob("*"):
        try:
            sizes += [path.stat().st_size] if path.is_file() else []
        except FileNotFoundError:  # deleted while we look
            continue
    return {
        "driver_heap_bytes": heap,
        "driver_code_bytes": code,
        "driver_python_bytes": resident(os.getpid()),
        "driver_bytes": None if memory is None else memory.driver,
        "workers_bytes": None if memory is None else memory.workers,
        "disk_bytes": sum(sizes),
        "disk_files": len(sizes),
    }


def _collected(spark: SparkSession) -> tuple[int, int]:
    """Memory of the driver's JVM after a collection: heap, and the rest. It includes the running batch.

    Spark releases shuffles and broadcasts only after a garbage collection finds them unused: their memory is freed by
    the next sample.
    """
    jvm: Any = spark.sparkContext._jvm
    jvm.java.lang.System.gc()
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    return int(memory.getHeapMemoryUsage().getUsed()), int(memory.getNonHeapMemoryUsage().getUsed())


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    size = max(1, len(rows) // 4)
    before, last = rows[size : 2 * size] or rows, rows[-size:]

    def growth(what: str) -> float | None:
        if any(row[what] is None for row in (*before, *last)):
            return None
        return float(median(row[what] for row in last) / median(row[what] for row in before))

    return {
        **{f"{what}_growth": growth(what) for what in WHAT},
        **{what: rows[-1][what] for what in WHAT},
        "rows_per_second": rows[-1]["rows"] / rows[-1]["seconds"],
        "batches": rows[-1]["batch"],
        "lag_seconds": rows[-1]["lag_seconds"],
    }


SOAK = Benchmark(
    name="soak",
    about="memory of driver and workers after collections, and disk, of a job at a steady rate for half an hour",
    summary=SUMMARY,
    settings=SoakSettings,
    run=run,
)
