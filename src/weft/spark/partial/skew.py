"""The load of each slot, estimated by the partials of the first rows."""

from __future__ import annotations

from pyspark.sql import DataFrame

from weft.spark.checkpoint.bucket_map import BucketMap, slot
from weft.spark.partial.aggregate import feed_hash, spread_rows, timed
from weft.spark.physical.plan import PhysicalPlan

SAMPLE = 50_000
"""Rows that are sampled: quick, and enough to find the groups that occur in every slice."""


def weigh(rows: DataFrame, physical: PhysicalPlan, buckets: int) -> BucketMap:
    """A bucket map by the first of these rows; without keys, or with one bucket, groups are hashed to buckets.

    rows      (columns...)
    partials  (feed, slice, keys...), each once: a hot group has one per slice, as every other group
    weights   (slot, partials)
    """
    keyed = [str(feed.layout.number) for feed in physical.feeds if feed.keys]
    if buckets == 1 or not keyed:
        return BucketMap(buckets)
    first = spread_rows(timed(rows.limit(SAMPLE), physical), physical)
    partials = first.select("feed", "slice", *physical.columns.key_types).distinct()
    partials = partials.where(f"slice IS NOT NULL AND feed IN ({', '.join(keyed)})")
    counts = partials.selectExpr(f"{slot(feed_hash(physical))} AS slot").groupBy("slot").count().collect()
    return BucketMap.weighed(buckets, {row["slot"]: float(row["count"]) for row in counts})
