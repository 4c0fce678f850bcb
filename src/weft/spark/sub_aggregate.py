"""Rows to partials: slicing, signatures and sub-aggregation in one native pass."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.aggregates import EVENT_TIME
from weft.spark.bind import Binding, NativeFeed
from weft.spark.slice import signature_words, slice_of

LATEST = "latest"
"""The greatest event time among a partial's rows: the watermark comes from it."""


def sub_aggregate(rows: DataFrame, binding: Binding, buckets: int, ahead: int | None = None) -> DataFrame:
    """rows      (columns...)
    timed     (columns..., event time in microseconds), rows without one dropped as Spark's window() drops them
    sliced    (feed, slice, words..., keys..., arguments..., event time), a row for each feed
    partials  (bucket, feed, slice, words..., keys..., latest, components...)

    The bucket follows from the keys, so it is computed for partials, not for rows. Rows after `ahead` say nothing about
    what is latest.
    """
    timed = rows.selectExpr("*", f"{binding.event_micros} AS {EVENT_TIME}").where(f"{EVENT_TIME} IS NOT NULL")
    words = max(len(feed.layout.words) for feed in binding.feeds)
    columns = [_columns(feed, binding, words) for feed in binding.feeds]
    if len(columns) == 1:
        sliced = timed.selectExpr(EVENT_TIME, *(f"{text} AS {name}" for name, text in columns[0].items()))
    else:
        structs = ", ".join(
            "named_struct(" + ", ".join(f"'{name}', {text}" for name, text in feed.items()) + ")" for feed in columns
        )
        sliced = timed.selectExpr(EVENT_TIME, f"inline(array({structs}))")
    by = ["feed", "slice", *(f"w{i}" for i in range(words)), *binding.key_types]
    aggregates = [F.expr(text).alias(name) for name, text in binding.slots.items()]
    # A literal in GROUP BY is no work for Spark: it drops it from the key and puts it back.
    trusted = EVENT_TIME if ahead is None else f"CASE WHEN {EVENT_TIME} <= {ahead}L THEN {EVENT_TIME} END"
    partials = sliced.groupBy(*by).agg(F.max(F.expr(trusted)).alias(LATEST), *aggregates)
    return partials.selectExpr("*", f"CAST(pmod({_spread(binding)}, {buckets}) AS INT) AS bucket")


def _spread(binding: Binding) -> str:
    """A hash of the group's keys. One group without keys is all in one bucket, whatever feed it comes through."""
    branches = " ".join(
        f"WHEN {feed.layout.number} THEN " + (f"hash({', '.join(feed.keys)})" if feed.keys else "0")
        for feed in binding.feeds
    )
    return f"CASE feed {branches} END"


def _columns(feed: NativeFeed, binding: Binding, words: int) -> dict[str, str]:
    """The text of each physical column for one feed; those that only other feeds use are NULL.

    A row that none of the feed's queries wants moves the watermark and nothing else: it has no slice and no group.
    """
    layout = feed.layout

    def wanted(text: str) -> str:
        return text if feed.passes is None else f"(CASE WHEN {feed.passes} THEN {text} END)"

    signature = signature_words(feed.filters)
    columns = {"feed": str(layout.number), "slice": wanted(slice_of(layout.edges))}
    for i in range(words):
        columns[f"w{i}"] = f"({signature[i]})" if i < len(signature) else "0L"
    for name, spark_type in binding.key_types.items():
        key = feed.keys.get(name)
        columns[name] = f"CAST(NULL AS {spark_type})" if key is None else wanted(key)
    for name, spark_type in binding.argument_types.items():
        argument = feed.arguments.get(name)
        columns[name] = f"CAST(NULL AS {spark_type})" if argument is None else f"({argument})"
    return columns
