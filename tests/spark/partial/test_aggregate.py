"""Partials are built from the plan alone: what is counted on rows is counted before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from weft.spark import weave
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.partial.aggregate import aggregate_bounded, sub_aggregate
from weft.spark.physical.plan import FromRows, FromTables, HashTables


class Jobs:
    """How many Spark jobs were started."""

    started = -1


@contextmanager
def counted(context: Any, group: str) -> Iterator[Jobs]:
    """Events come in order: when the last job is seen, all before it are."""
    jobs = Jobs()
    context.setJobGroup(group, "a test")
    try:
        yield jobs
        before = time.monotonic()
        context.parallelize([1], 1).count()
        tracker = context.statusTracker()
        while not (ids := tracker.getJobIdsForGroup(group)) or tracker.getJobInfo(max(ids)).status == "RUNNING":
            assert time.monotonic() < before + 60
        jobs.started = len(ids) - 1
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.parametrize(
    ("groupings", "groups", "means"),
    [("native", 7, FromTables), ("native", 10**9, FromRows), ("lfta", 7, HashTables)],
)
def test_building_partials_starts_no_spark_job(spark: Any, groupings: str, groups: int, means: type) -> None:
    table = spark.sql(
        f"SELECT timestamp_millis(id) AS ts, id % {groups} AS a, id * 3 % {groups} AS b, id % 100 AS v FROM range(3000)"
    )
    window = "window(ts, '2 seconds', '1 second')"
    queries = [
        f"SELECT {key}, window.start AS w, count(*) AS n FROM stream WHERE {where} GROUP BY {key}, {window}"
        for key in ("a", "b")
        for where in ("v < 50", "v > 20", "a % 2 = 1")
    ]
    name = f"{groupings} {groups}"
    with counted(spark.sparkContext, f"planning {name}") as jobs:
        job = weave(table, queries, groupings=groupings)
    assert jobs.started == 1, "a bounded table is looked at once, for the signatures of all groupings"
    with counted(spark.sparkContext, f"collecting {name}") as jobs:
        statistics = job.collector.collect(table, job.physical)
    assert jobs.started == 1, "groups; signatures are known"
    bucket_map = BucketMap(2)
    with counted(spark.sparkContext, f"building {name}") as jobs:
        plan = job.planner.refine(job.physical, statistics)
        assert isinstance(plan.partials.means, means)
        partials = sub_aggregate(table, plan, bucket_map)
        of_a_table, rows = aggregate_bounded(table, plan, bucket_map)
    assert jobs.started == 0
    assert {"bucket", "slice"} <= {*partials.columns, *of_a_table.columns}
    assert bool(rows) == (means is FromRows)
    if means is FromRows:
        assert isinstance(plan.partials.means, FromRows)
        assert plan.partials.means.exchanged == {feed.layout.number for feed in plan.feeds}
