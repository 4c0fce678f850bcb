"""From one executor to two, keys that are skewed, what is shuffled, and how many Spark jobs a batch takes.

Clusters are local ones, executors in processes of their own: `local-cluster[N,1,1024]`. An executor has one core, and
the driver has little to do while they work, so two of them can have two cores. The fixed cost of a batch does not
divide, so throughput is measured with rows that need work: they are JSON, as in topics, and parsing one takes ten times
as long as aggregating it.

JVMs compile what they run for as long as some of it is new to them, on the cores that the executors need: nearly half
of the processor time of an early batch is the compilers' (decision 23). So each point begins with small batches that do
not count; they run the same code, and there are enough of them that it is compiled when the others come.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from weft.calibration.file import load_weights
from weft.model import WeftError
from weft.optimizer import optimize
from weft.optimizer.cost.seconds import Stream, estimate
from weft.sql.inputs import read_queries
from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, option
from weft_bench.benchmarks.scale.rows import BEGUN, SMALL, RowShape, write_rows
from weft_bench.machine import describe_machine, load, two_over_one

SKEW = 1.2
BUCKETS = 8
"""For skewed keys: more than cores, so that hashing alone would leave some with much more than others."""

RATE = 10_000
"""Rows per second of event time where shuffled bytes are counted, with one-second slices and a hundred keys."""

HOT = 200
"""Queries without keys, which have one tree."""

KEYS = 100
BATCH_SECONDS = 60
"""Seconds of event time in a batch where throughput is measured."""

EVERY = (
    *((2, name) for name in ("throughput", "parquet", "hot tree")),
    *((1, name) for name in ("throughput", "parquet", "skewed", "shuffled", "trees")),
)
"""Executors and points of a first turn. One executor is what is left of two when the other has ended: a cluster is
begun once, and what is measured later has the warmer JVMs. Skewed keys have more partitions than executors: where a
task runs beside no other, its time is its own.
"""

SUMMARY = {
    "throughput_ratio": "rows per second of two executors over those of one, where the work divides; the bar is 1.6",
    "machine_ratio": "throughput of two independent processes on this machine over that of one",
    "rows_per_second_1": "rows per second of one executor, one core, rows in JSON",
    "rows_per_second_2": "of two",
    "parquet_ratio": "the same ratio for rows in parquet files, where the fixed cost of a batch dominates",
    "driver_share_1": "seconds per batch that do not divide, over those of a batch with one executor, from both times",
    "estimated_over_measured_1": "parquet: seconds per batch by docs/sizing.md over one executor's; calibrate first",
    "estimated_over_measured_2": "the same for two executors",
    "zipf_slowest_over_mean": "Zipf(1.2) keys: time of the slowest partition of the final stage over the mean; bar 1.2",
    "zipf_partials_over_mean": "partials of the fullest partition over the mean, which no other load disturbs",
    "hot_tree_slowest_over_mean": "queries without keys: the same of the buckets that their tree is divided over",
    "zipf_hashed_over_mean": "the same counted in partials, were groups only hashed to partitions",
    "shuffled_bytes_a_row": "at 10,000 rows per second, one-second slices, 100 keys; the bar is 2",
    "jobs_a_batch": "Spark jobs of a batch after the first",
    "stages_a_batch": "Spark stages of a batch after the first, rows aggregated to each tree's feed",
    "stages_a_batch_most": "the same at the point that has most: one more where feeds are rolled up from a finer one",
    "jobs_constant": "whether jobs are the same for one query and many, one tree and many, one node and two",
    "load": "load average at the start: above the number of cores, other processes affect the times",
}


class NoCluster(WeftError):
    """A cluster that did not start, or a run on it that failed."""


@dataclass(frozen=True, slots=True)
class ScaleSettings:
    rows: int = option(8_000_000, "JSON rows of a batch where throughput is measured.", quick=200_000)
    parquet: int = option(10_000_000, "Rows of a batch in parquet files; 0: not measured.", quick=0, parse=integer)
    warm: int = option(30, "Small batches at the begin of each point that do not count.", quick=1)
    batches: int = option(4, "Batches of each point that are counted.", quick=1)
    repeat: int = option(2, "Turns of one and two executors; the faster counts.", quick=1)
    seconds: int = option(240, "Seconds of event time in a batch where keys are skewed, an eighth elsewhere.", quick=16)
    keys: int = option(1_000, "Different keys where they are skewed.")
    queries: int = option(20, "Queries at a point.", quick=10)
    seed: int = option(1, "Of the rows.", parse=integer)


def run(settings: ScaleSettings, say: Say) -> Report:
    busy, machine = load(), two_over_one(times=settings.repeat)
    folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    try:
        rows = [add_up(row) for row in _measure(settings, folder, say)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    hashed = hashed_over_mean(settings)
    estimated = compare_with_paper(rows, settings)
    around = {"machine_ratio": machine, "zipf_hashed_over_mean": hashed, "load": busy}
    summary = {**summarise(rows), **estimated, **around}
    return Report("scale", describe_machine(), asdict(settings), rows, summary)


def _measure(settings: ScaleSettings, folder: Path, say: Say) -> list[Row]:
    environment = spark_home(folder)
    many, few, overall = _queries(settings.queries), _queries(1), _queries(HOT, keys="")
    sizes, small = {"json": settings.rows, "parquet": settings.parquet}, settings.warm
    say(f"making {sum(rows * (small + SMALL[k] * settings.batches) // SMALL[k] for k, rows in sizes.items()):,} rows")
    evenly = {
        kind: _write(folder / kind, settings, rows, RowShape(KEYS, rows // BATCH_SECONDS), kind, small)
        for kind, rows in sizes.items()
        if rows
    }
    skewed = _write(folder / "skewed", settings, settings.seconds * RATE, RowShape(settings.keys, RATE, SKEW))
    steady = _write(folder / "steady", settings, settings.seconds * RATE // 8, RowShape(KEYS, RATE))
    warmed = {"queries": many, "strategy": "tri_weave", "buckets": 2, "warm": settings.warm}
    points: dict[str, dict[str, Any]] = {
        "throughput": warmed | {"rows": str(evenly["json"]), "format": "json"},
        "parquet": warmed | {"rows": str(evenly.get("parquet"))},
        "skewed": {"rows": str(skewed), "queries": many, "strategy": "tri_weave", "buckets": BUCKETS},
        "shuffled": {"rows": str(steady), "queries": few, "strategy": "tri_weave", "buckets": 2},
        "hot tree": {"rows": str(steady), "queries": overall, "strategy": "tri_weave", "buckets": 2},
        "trees": {"rows": str(steady), "queries": many, "strategy": "no_share", "buckets": 2},
    }
    measured: list[Row] = []
    for turn in range(settings.repeat):
        names = [p for p in EVERY if p[1] != "parquet" or settings.parquet]
        if turn:
            names = [(2, "throughput"), (1, "throughput")]
        say(f"turn {turn + 1}: {', '.join(f'{name} on {executors}' for executors, name in names)}")
        usual = {"format": "parquet", "warm": BEGUN}
        runs = [
            usual | points[name] | {"executors": executors, "folder": str(folder / f"state-{turn}-{executors}-{name}")}
            for executors, name in names
        ]
        for (executors, name), row in zip(names, _run(runs, environment), strict=True):
            measured.append({"point": name, "executors": executors, "queries": len(points[name]["queries"])} | row)
    return measured


def _write(
    folder: Path, settings: ScaleSettings, rows: int, shape: RowShape, kind: str = "parquet", small: int | None = None
) -> Path:
    return write_rows(folder, settings.seed, rows, settings.batches, shape, kind, small)


def spark_home(folder: Path) -> dict[str, str]:
    """The environment of a Spark home whose work folders are here; executors of a local cluster write into it."""
    import pyspark

    shipped = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    if not (shipped / "bin" / "spark-class").exists():
        raise NoCluster(f"{shipped} has no bin/spark-class, so no cluster can be started; install pyspark with pip")
    home = folder / "spark-home"
    home.mkdir(parents=True)
    for part in ("bin", "jars", "python"):
        (home / part).symlink_to(shipped / part)
    kept = {k: v for k, v in os.environ.items() if k not in ("PYSPARK_SUBMIT_ARGS", "SPARK_MASTER")}
    return kept | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def _run(points: Sequence[Mapping[str, Any]], environment: dict[str, str]) -> list[Row]:
    command = [sys.executable, "-m", "weft_bench.benchmarks.scale.cluster", json.dumps(points)]
    life = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if life.returncode:
        raise NoCluster(f"a run on a local cluster failed; it said: {life.stderr.strip()[-2000:]}")
    measured: list[Row] = json.loads(life.stdout.splitlines()[-1])
    return measured


def _queries(number: int, keys: str = "k, ") -> list[str]:
    """Windows of a minute and less over one-second slices, aggregates in turn."""
    calls = ("sum(v) AS a", "max(v) AS a", "avg(v) AS a", "count(*) AS a")
    return [
        f"SELECT {keys}window.start AS start, {calls[i % len(calls)]} FROM stream "
        f"GROUP BY {keys}window(ts, '{60 - i % 4 * 10} seconds', '{1 + i % 3} seconds')"
        for i in range(number)
    ]


def hashed_over_mean(settings: ScaleSettings) -> float:
    """Partials of the fullest partition over the mean, the mean of many throws of the groups into partitions."""
    import numpy as np

    random = np.random.default_rng(settings.seed)
    shares = np.arange(1, settings.keys + 1, dtype=np.float64) ** -SKEW
    odds = -np.expm1(-RATE * shares / shares.sum())
    throws = [
        np.bincount(random.integers(0, BUCKETS, settings.keys), weights=odds, minlength=BUCKETS) for _ in range(200)
    ]
    return float(np.mean([thrown.max() / thrown.mean() for thrown in throws]))


def add_up(row: Row) -> Row:
    """The times of a point, per batch and per row, of the median batch."""
    batches = row.pop("batches")
    rows, seconds = sum(b["rows"] for b in batches), median(b["seconds"] for b in batches)
    times, partials = (
        [median(of_batches) for of_batches in zip(*(b[what] for b in batches), strict=True)]
        for what in ("final_tasks", "final_partials")
    )
    return row | {
        "rows": rows,
        "partials": sum(b["partials"] for b in batches),
        "answers": sum(b["answers"] for b in batches),
        "seconds_a_batch": seconds,
        "rows_per_second": rows / len(batches) / seconds,
        "final_tasks": times,
        "shuffled_bytes_a_row": sum(b["shuffled_bytes"] for b in batches) / rows,
        "jobs_a_batch": max(b["jobs"] for b in batches),
        "stages_a_batch": max(b["stages"] for b in batches),
        "jobs_differ": len({(b["jobs"], b["stages"]) for b in batches}) > 1,
        "slowest_over_mean": max(times) * len(times) / sum(times),
        "fullest_over_mean": max(partials) * len(partials) / sum(partials),
    }


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    """The summary of each point alone."""
    one, two = (_fastest(rows, "throughput", executors) or {} for executors in (1, 2))
    parquet = [row and row["rows_per_second"] for row in (_fastest(rows, "parquet", n) for n in (1, 2))]
    skewed, shuffled, hot = (_point(rows, name) for name in ("skewed", "shuffled", "hot tree"))
    took = [one["seconds_a_batch"], two["seconds_a_batch"]]
    return {
        "throughput_ratio": two["rows_per_second"] / one["rows_per_second"],
        "rows_per_second_1": one["rows_per_second"],
        "rows_per_second_2": two["rows_per_second"],
        "parquet_ratio": parquet[1] / parquet[0] if parquet[0] and parquet[1] else None,
        # seconds = fixed + divided / executors, for one and for two
        "driver_share_1": max(0.0, 2 * took[1] - took[0]) / took[0],
        "zipf_slowest_over_mean": skewed["slowest_over_mean"],
        "hot_tree_slowest_over_mean": hot["slowest_over_mean"],
        "zipf_partials_over_mean": skewed["fullest_over_mean"],
        "shuffled_bytes_a_row": shuffled["shuffled_bytes_a_row"],
        "jobs_a_batch": one["jobs_a_batch"],
        "stages_a_batch": one["stages_a_batch"],
        "stages_a_batch_most": max(r["stages_a_batch"] for r in rows),
        "jobs_constant": len({r["jobs_a_batch"] for r in rows}) == 1 and not any(r["jobs_differ"] for r in rows),
    }


def compare_with_paper(rows: Sequence[Row], settings: ScaleSettings) -> dict[str, float | None]:
    """Seconds of a batch by the formula of docs/sizing.md, over those that it took; None: not calibrated, or
    it was not measured.

    Weights hold with all cores at work, and an executor has one.
    """
    weights, measured = load_weights(), {n: _fastest(rows, "parquet", n) for n in (1, 2)}
    if weights is None or None in measured.values():
        return {f"estimated_over_measured_{executors}": None for executors in measured}
    plan = optimize(read_queries(_queries(settings.queries), "ts"), settings.parquet // BATCH_SECONDS, "tri_weave")
    took = estimate(plan, weights, Stream(groups=KEYS, batch_seconds=BATCH_SECONDS))
    cores = len(os.sched_getaffinity(0))
    return {
        f"estimated_over_measured_{executors}": BATCH_SECONDS
        * (took.batches + (took.seconds - took.batches) * cores / executors)
        / row["seconds_a_batch"]
        for executors, row in measured.items()
        if row is not None
    }


def _point(rows: Sequence[Row], name: str) -> Row:
    return next(row for row in rows if row["point"] == name)


def _fastest(rows: Sequence[Row], point: str, executors: int) -> Row | None:
    """None: not measured."""
    of_point = [r for r in rows if (r["point"], r["executors"]) == (point, executors)]
    return min(of_point, key=lambda row: float(row["seconds_a_batch"]), default=None)


SCALE = Benchmark(
    name="scale",
    about="from one executor to two: throughput, skewed keys, shuffled bytes, and Spark jobs per batch",
    summary=SUMMARY,
    settings=ScaleSettings,
    run=run,
)
