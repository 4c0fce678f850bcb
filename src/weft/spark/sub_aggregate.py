"""Rows to partials: slicing, signatures and sub-aggregation, native from end to end.

Where a phantom feeds several groupings, rows are aggregated to it once, and its partials, not rows, to each of them.
Where next to every row has groups of its own, rows are sent to their buckets and aggregated there: aggregating them
first would only send them twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.aggregates import EVENT_TIME
from weft.spark.bind import Binding
from weft.spark.columns import PhysicalColumns
from weft.spark.places import Places, group_hash
from weft.spark.spread import spread
from weft.spark.tables import NativeFeed, NativeTable, from_rows, from_table

LATEST = "latest"
"""The greatest event time among a partial's rows: the watermark comes from it."""


def sub_aggregate(rows: DataFrame, binding: Binding, places: Places, ahead: int | None = None) -> DataFrame:
    """rows      (columns...)
    timed     (columns..., event time in microseconds), rows without one dropped as Spark's window() drops them
    finer     (feed, slice, words..., keys..., latest, components...) of phantoms, where they pay
    partials  (bucket, feed, slice, words..., keys..., latest, components...), a partition for each bucket

    The bucket follows from the keys, so it is computed for partials, not for rows, where rows gather. Rows after
    `ahead` say nothing about what is latest.
    """
    with_time = timed(rows, binding)
    shared = binding.phantoms.share(with_time, binding.feeds, binding.columns)
    trusted = EVENT_TIME if ahead is None else f"CASE WHEN {EVENT_TIME} <= {ahead}L THEN {EVENT_TIME} END"
    bucket = f"{places.bucket(feed_hash(binding))} AS bucket"
    if shared is not None:
        finer = _aggregate(_spread(with_time, shared.tables, shared.columns), shared.columns, trusted)
        return place(_roll_up(finer, shared.tables, binding).selectExpr("*", bucket), places.buckets)
    by_feed = spread_rows(with_time, binding)
    if binding.phantoms.gather:
        return place(_aggregate(by_feed, binding.columns, trusted).selectExpr("*", bucket), places.buckets)
    return _aggregate(place(by_feed.selectExpr("*", bucket), places.buckets), binding.columns, trusted)


def place(partials: DataFrame, buckets: int) -> DataFrame:
    """A partition for each bucket, in their order."""
    return partials.repartitionById(buckets, partials["bucket"])


def timed(rows: DataFrame, binding: Binding) -> DataFrame:
    """Rows with their event time in microseconds, without those that have none."""
    return rows.selectExpr("*", f"{binding.event_micros} AS {EVENT_TIME}").where(f"{EVENT_TIME} IS NOT NULL")


def spread_rows(with_time: DataFrame, binding: Binding) -> DataFrame:
    """Each row to each feed."""
    return _spread(with_time, binding.feeds, binding.columns)


def _spread(rows: DataFrame, tables: Sequence[NativeFeed | NativeTable], columns: PhysicalColumns) -> DataFrame:
    """Each row to each of the tables."""
    words = max(len(table.signature.columns) for table in tables)
    arms = [from_rows(number, table, columns, words) for number, table in enumerate(tables)]
    return spread(rows, arms, [EVENT_TIME])


def _aggregate(rows: DataFrame, columns: PhysicalColumns, trusted: str) -> DataFrame:
    """Spread rows to partials."""
    by = [name for name in rows.columns if name != EVENT_TIME and name not in columns.argument_types]
    aggregates = [F.expr(text).alias(name) for name, text in columns.slots.items()]
    # A literal in GROUP BY is no work for Spark: it drops it from the key and puts it back.
    return rows.groupBy(*by).agg(F.expr(f"max({trusted})").alias(LATEST), *aggregates)


def _roll_up(finer: DataFrame, tables: Sequence[NativeTable], binding: Binding) -> DataFrame:
    """The partials of tables to those of the feeds that each has.

    A feed that has a table for itself comes through unchanged: its partials are one a group already.
    """
    types = dict(finer.dtypes)
    columns, words = binding.columns, max(len(feed.signature.columns) for feed in binding.feeds)
    slots = {
        name: types[column]
        for table in tables
        for feed in table.feeds
        for component, names in zip(feed.layout.components, feed.layout.columns, strict=True)
        for name, column in zip(names, table.columns[component], strict=True)
    }
    arms = [
        {"source": str(number)} | from_table(feed, table, columns, words, slots)
        for number, table in enumerate(tables)
        for feed in table.feeds
    ]
    fed = spread(finer.withColumnRenamed("feed", "fed_by"), arms, [LATEST, "fed_by"]).where("source = fed_by")
    by = ["feed", "slice", *(f"w{i}" for i in range(words)), *columns.key_types]
    aggregates = [
        # A sum of sums of decimals would be wider than the sum that it is.
        F.expr(f"CAST({columns.merges.get(name, f'first({name})')} AS {spark_type})").alias(name)
        for name, spark_type in slots.items()
    ]
    return fed.groupBy(*by).agg(F.max(LATEST).alias(LATEST), *aggregates)


def feed_hash(binding: Binding) -> str:
    """The hash of a partial's group, by the keys of its feed."""
    branches = " ".join(f"WHEN {feed.layout.number} THEN {group_hash(list(feed.keys))}" for feed in binding.feeds)
    return f"CASE feed {branches} END"
