"""Partials that were made from rows read again from the source, for a query that joined: a batch takes them in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.engine import FeedLayout, Layout
from weft.spark.checkpoint.bucket_map import BucketMap, group_hash
from weft.spark.physical.columns import LATEST


@dataclass(frozen=True, slots=True)
class BackfilledPartials:
    """Partials of the past that join a batch: where they lie, and what they are."""

    folder: str
    feed: FeedLayout

    def read(self, spark: SparkSession, bucket_map: BucketMap, layout: Layout) -> DataFrame:
        """(bucket, feed, slice, latest, and the other columns under names that no other feed has)

        The job may have other buckets than when they were written.
        """
        pinned_bucket = self._pinned_bucket(layout)
        partials = spark.read.parquet(self.folder)
        common = ("bucket", "slice", LATEST)
        own = {c: backfill_column(self.feed.number, c) for c in partials.columns if c not in common}
        if pinned_bucket is None:
            bucket = F.expr(bucket_map.bucket(group_hash(self.feed.key_columns)))
        else:
            bucket = F.lit(pinned_bucket)
        named = partials.withColumnsRenamed(own).drop(own["feed"])
        return named.withColumn("feed", F.lit(self.feed.number)).withColumn("bucket", bucket)

    def into(self, layout: Layout) -> Layout:
        """The layout of the batch that takes them in."""
        numbers = {tree.number for tree in self.feed.trees}
        older = tuple(tree for tree in layout.older if tree.number not in numbers)
        trees = tuple(replace(tree, pinned_bucket=self._pinned_bucket(layout)) for tree in self.feed.trees)
        return replace(layout, feeds=(*layout.feeds, replace(self.feed, trees=trees)), older=older)

    def _pinned_bucket(self, layout: Layout) -> int | None:
        """The bucket of the query that waits for them; None: each group has a bucket."""
        (pool,) = self.feed.trees
        waiting = (tree for tree in layout.current if any(pool.number in query.older for query in tree.queries))
        return next((tree.pinned_bucket for tree in waiting), None)


def backfill_column(feed: int, column: str) -> str:
    """The name that a feed's own column has beside those of other feeds."""
    return f"r{feed}_{column}"
