"""What the partials of a batch say of its rows."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from weft.spark.execution.batch_input import BatchInput, summarize
from weft.spark.partial.aggregate import partition_by_bucket
from weft.spark.session import batch_settings


def test_buckets_are_looked_at_where_they_are_in_one_stage(spark: Any) -> None:
    numbers = spark.range(60).selectExpr(
        "CAST(id % 3 AS INT) AS bucket", "CAST(id % 2 AS INT) AS feed", "IF(id < 45, id, NULL) AS slice",
        "100 + id AS latest", "2L AS counted",
    )  # fmt: skip
    context = spark.sparkContext
    with batch_settings(spark, 3):
        partials = partition_by_bucket(numbers, 3).persist()
        try:
            assert partials.count() == 60
            context.setJobGroup("looking", "a test")
            seen = summarize(partials, F.col("counted"))
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
            partials.unpersist()
    assert seen == BatchInput(max_event_time=159, first_slice=0, rows=60, partials=60, selectivity=0.75)
    tracker = context.statusTracker()
    (job,) = tracker.getJobIdsForGroup("looking")
    stages = [tracker.getStageInfo(stage) for stage in tracker.getJobInfo(job).stageIds]
    assert [stage.numCompletedTasks for stage in stages if stage is not None and stage.numCompletedTasks] == [3]


def test_a_batch_without_rows_says_nothing(spark: Any) -> None:
    nothing = partition_by_bucket(
        spark.range(0).selectExpr("0 AS bucket", "0 AS feed", "id AS slice", "id AS latest"), 2
    )
    assert summarize(nothing, F.lit(1)) == BatchInput(None, None, 0, 0, 1.0)
