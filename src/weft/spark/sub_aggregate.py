"""Rows to partials: slicing, signatures and sub-aggregation, native from end to end.

Where a phantom feeds several groupings, rows are aggregated to it once, and its partials, not rows, to each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.aggregates import EVENT_TIME
from weft.spark.bind import Binding
from weft.spark.columns import PhysicalColumns
from weft.spark.spread import spread
from weft.spark.tables import NativeFeed, NativeTable, from_rows, from_table

LATEST = "latest"
"""The greatest event time among a partial's rows: the watermark comes from it."""


def sub_aggregate(rows: DataFrame, binding: Binding, buckets: int, ahead: int | None = None) -> DataFrame:
    """rows      (columns...)
    timed     (columns..., event time in microseconds), rows without one dropped as Spark's window() drops them
    finer     (feed, slice, words..., keys..., latest, components...) of phantoms, where they pay
    partials  (bucket, feed, slice, words..., keys..., latest, components...)

    The bucket follows from the keys, so it is computed for partials, not for rows. Rows after `ahead` say nothing about
    what is latest.
    """
    timed = rows.selectExpr("*", f"{binding.event_micros} AS {EVENT_TIME}").where(f"{EVENT_TIME} IS NOT NULL")
    shared = binding.phantoms.share(timed, binding.feeds, binding.columns)
    trusted = EVENT_TIME if ahead is None else f"CASE WHEN {EVENT_TIME} <= {ahead}L THEN {EVENT_TIME} END"
    if shared is None:
        partials = _aggregate(timed, binding.feeds, binding.columns, trusted)
    else:
        partials = _roll_up(_aggregate(timed, shared.tables, shared.columns, trusted), shared.tables, binding)
    return partials.selectExpr("*", f"CAST(pmod({_bucket(binding)}, {buckets}) AS INT) AS bucket")


def _aggregate(
    timed: DataFrame, tables: Sequence[NativeFeed | NativeTable], columns: PhysicalColumns, trusted: str
) -> DataFrame:
    """A pass over rows: each is spread to the tables, and aggregated to their partials."""
    words = max(len(table.signature.columns) for table in tables)
    arms = [from_rows(number, table, columns, words) for number, table in enumerate(tables)]
    by = ["feed", "slice", *(f"w{i}" for i in range(words)), *columns.key_types]
    aggregates = [F.expr(text).alias(name) for name, text in columns.slots.items()]
    # A literal in GROUP BY is no work for Spark: it drops it from the key and puts it back.
    return spread(timed, arms, [EVENT_TIME]).groupBy(*by).agg(F.expr(f"max({trusted})").alias(LATEST), *aggregates)


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


def _bucket(binding: Binding) -> str:
    """A hash of the group's keys. One group without keys is all in one bucket, whatever feed it comes through."""
    branches = " ".join(
        f"WHEN {feed.layout.number} THEN " + (f"hash({', '.join(feed.keys)})" if feed.keys else "0")
        for feed in binding.feeds
    )
    return f"CASE feed {branches} END"
