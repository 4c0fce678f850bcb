"""A summary of the rows of a batch, read from its partials before a window is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.spark.physical.columns import LATEST
from weft.spark.physical.plan import PhysicalPlan


@dataclass(frozen=True, slots=True)
class BatchInput:
    max_event_time: int | None = None
    """Of the rows that may move the watermark."""
    first_slice: int | None = None
    """The first slice that has rows."""
    rows: int = 0
    partials: int = 0
    selectivity: float = 1.0
    """The share of the rows that some query wants, on average over the passes."""

    @classmethod
    def of(cls, buckets: Sequence[Any]) -> BatchInput:
        """
        >>> one = {"latest": 7, "earliest": 2, "rows": 3, "read": 6, "wanted": 3, "partials": 2}
        >>> BatchInput.of([one, {**one, "latest": None, "earliest": 1, "rows": None, "read": 2, "wanted": None}])
        BatchInput(max_event_time=7, first_slice=1, rows=3, partials=4, selectivity=0.375)
        """

        def values(name: str) -> list[int]:
            return [bucket[name] for bucket in buckets if bucket[name] is not None]

        rows, read, wanted, partials = (sum(values(name)) for name in ("rows", "read", "wanted", "partials"))
        newest, first = max(values("latest"), default=None), min(values("earliest"), default=None)
        return cls(newest, first, rows, partials, wanted / read if read else 1.0)


def summarize(partials: DataFrame, rows: Column) -> BatchInput:
    """partials  (bucket, feed, slice, words..., keys..., latest, components...), a partition for each bucket
    summary   (latest, earliest, rows, read, wanted, partials), one for each bucket that has some

    Buckets are partitions already, so no stage brings them together: the driver adds up the summaries. `rows` is the
    number of rows of a partial.
    """
    summary = partials.groupBy("bucket").agg(
        F.max(LATEST).alias("latest"),
        F.min("slice").alias("earliest"),
        F.sum(F.when(F.col("feed") == 0, rows)).alias("rows"),
        F.sum(rows).alias("read"),
        # A row that no query of a feed wants has no slice.
        F.sum(F.when(F.col("slice").isNotNull(), rows)).alias("wanted"),
        F.count(F.lit(1)).alias("partials"),
    )
    return BatchInput.of(summary.drop("bucket").collect())


def row_count(physical: PhysicalPlan) -> Column:
    """The number of rows of a partial. A feed that several buckets receive is counted in the first of them."""
    slots = {feed.number: feed.columns[0][0] for feed in physical.layout.feeds}
    pinned = physical.pinned_buckets.items()
    again = " ".join(f"WHEN feed = {n} AND bucket <> {buckets[0]} THEN 0" for n, buckets in pinned)
    counted = " ".join(f"WHEN feed = {n} THEN {slot}" for n, slot in slots.items())
    return F.expr(f"CASE {again} {counted} END")
