"""Streams over a cluster, in a process of their own; arguments and result are JSON.

    python -m weft_bench.benchmarks.scale.cluster POINTS

What batches took comes from the run; jobs, stages, tasks and shuffled bytes from Spark's own status.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ONE_CORE = "-XX:ActiveProcessorCount=1"
"""What an executor of one core sees of a machine in a container. Without it one executor collects garbage with the
cores that it has not got, and a second one, which takes them away, seems to bring less than it does."""

PARTITION = "16m"
"""Of a file, what a task reads: several tasks for a core, as Spark advises, so that no executor waits long for the
other when one of them shares its core with the driver."""


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """A stream of files, each a batch, and the queries over it."""

    executors: int
    rows: str
    format: str
    queries: tuple[str, ...]
    strategy: str
    buckets: int
    folder: str
    warm: int
    """Batches that are not counted: the first begins the workers and places the groups, and JVMs compile in all."""


def live(points: Sequence[ClusterRun]) -> list[dict[str, Any]]:
    """The points one after the other, on one cluster. A point with fewer executors than the one before stops some."""
    from weft.spark import local_session

    most = points[0].executors
    settings = {
        "spark.master": f"local-cluster[{most},1,1024]",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.executor.extraJavaOptions": ONE_CORE,
        "spark.sql.files.maxPartitionBytes": PARTITION,
    }
    spark = local_session(settings)
    try:
        results = []
        for point in points:
            _keep_executors(spark, point.executors)
            results.append(_measure(spark, point))
        return results
    finally:
        spark.stop()


def _measure(spark: Any, point: ClusterRun) -> dict[str, Any]:
    from weft.calibration.measure.events import SCHEMA
    from weft.spark import weave

    begun = time.monotonic()
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    stream = reader.format(point.format).load(point.rows)
    job = weave(stream, list(point.queries), strategy=point.strategy, buckets=point.buckets)
    run = job.start(sink="noop", checkpoint=point.folder, available_now=True)
    run.wait()
    status = _Status(spark, str(run.query.runId))
    return {
        "trees": len(job.plan.trees),
        "point_seconds": time.monotonic() - begun,
        "batches": [
            {"rows": b.rows, "partials": b.partials, "answers": b.answers, "seconds": b.seconds} | status.batch(b.batch)
            for b in run.batches()[point.warm :]
        ],
    }


def _keep_executors(spark: Any, wanted: int) -> None:
    """Wait until all are there that should be, and end those that should not."""
    context = spark.sparkContext._jsc.sc()
    too_many = context.getExecutorIds().drop(wanted)  # chosen once: the driver learns of an end only after it
    if too_many.size():
        context.killExecutors(too_many)
        for place in range(too_many.size()):
            _kill(spark.sparkContext.applicationId, too_many.apply(place))
    begun = time.monotonic()
    while (number := context.getExecutorIds().size()) != wanted:
        if time.monotonic() - begun > 120:
            raise TimeoutError(f"the cluster has {number} executors, and not {wanted} within two minutes")
        time.sleep(0.1)


def _kill(application: str, executor: str) -> None:
    """Executors of a local cluster ignore SIGTERM, as the driver that began them does; Spark would wait ten seconds
    before it kills them, and so it does where there is no /proc to find them in.
    """
    arguments = (("--app-id", application), ("--executor-id", executor))
    wanted = [f"\0{option}\0{value}\0".encode() for option, value in arguments]
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()  # others' may be no text
            if all(words in command for words in wanted):
                os.kill(int(process.name), signal.SIGKILL)


class _Status:
    """Spark's status store, which is there without its page."""

    def __init__(self, spark: Any, group: str) -> None:
        self._store = spark.sparkContext._jsc.sc().statusStore()
        tracker = spark.sparkContext.statusTracker()
        self._stages: dict[int, list[list[int]]] = {}
        """Of each job of a batch. Spark describes a job by the batch that it is for."""
        for job in sorted(tracker.getJobIdsForGroup(group)):
            number = re.search(r"batch = (\d+)", str(self._store.job(job).description()))
            info = tracker.getJobInfo(job)
            if number and info is not None:
                # A stage whose shuffle was there already has no tasks.
                ran = [stage for stage in sorted(info.stageIds) if self._tasks(stage)]
                self._stages.setdefault(int(number[1]), []).append(ran)

    def batch(self, number: int) -> dict[str, Any]:
        """Jobs, stages, bytes written for others, and what each partition of the last stage takes and gets."""
        jobs = self._stages[number]
        tasks = [task for stages in jobs for stage in stages for task in self._tasks(stage)]
        return {
            "jobs": len(jobs),
            "stages": sum(map(len, jobs)),
            "shuffled_bytes": sum(int(task.shuffleWriteMetrics().bytesWritten()) for task in tasks),
            "final_tasks": [int(task.executorRunTime()) for task in self._tasks(jobs[-1][-1])],
            "final_partials": self._read(jobs[0], len(self._tasks(jobs[-1][-1]))),
        }

    def _read(self, stages: list[int], partitions: int) -> list[int]:
        """Rows that each partition read from a shuffle, in the last stage with this number of partitions."""
        readers = next(tasks for stage in reversed(stages) if len(tasks := self._tasks(stage)) == partitions)
        return [int(task.shuffleReadMetrics().recordsRead()) for task in readers]

    def _tasks(self, stage: int) -> list[Any]:
        listed = self._store.taskList(stage, 0, 1 << 20)
        tasks = sorted((listed.apply(i) for i in range(listed.size())), key=lambda task: int(task.index()))
        return [task.taskMetrics().get() for task in tasks if task.taskMetrics().isDefined()]


if __name__ == "__main__":
    runs = [ClusterRun(**{**point, "queries": tuple(point["queries"])}) for point in json.loads(sys.argv[1])]
    print(json.dumps(live(runs)))
