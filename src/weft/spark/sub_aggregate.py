"""Rows to partials: slicing, signatures and sub-aggregation, native from end to end.

Where a phantom feeds several groupings, rows are aggregated to it once, and its partials, not rows, to each of them.
Where next to every row has a group of its own, rows are sent to their buckets and aggregated there: aggregating them
first would only send them twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.aggregates import EVENT_TIME
from weft.spark.bind import Binding
from weft.spark.columns import PhysicalColumns
from weft.spark.lfta import Lfta, through_tables
from weft.spark.places import Places, group_hash
from weft.spark.spread import spread
from weft.spark.tables import NativeFeed, NativeTable, Texts, as_partials, from_rows, from_table, signed

LATEST = "latest"
"""The greatest event time among a partial's rows: the watermark comes from it."""


def sub_aggregate(
    rows: DataFrame, binding: Binding, places: Places, ahead: int | None = None, latest: bool = True
) -> DataFrame:
    """rows      (columns...)
    with_time (columns..., event time in microseconds, words...), those without a time dropped as window() drops them
    finer     (feed, slice, words..., keys..., latest, components...) of phantoms, where they pay
    partials  (bucket, feed, slice, words..., keys..., latest, components...), a partition for each bucket

    The bucket follows from the keys, so it is computed for partials, not for rows, where rows gather. Rows after
    `ahead` say nothing about what is latest; where nobody asks for it, that column is not there.
    """
    with_time = signed(timed(rows, binding), binding.feeds)
    shared = binding.phantoms.share(with_time, binding.feeds, binding.columns)
    trusted = EVENT_TIME if ahead is None else f"CASE WHEN {EVENT_TIME} <= {ahead}L THEN {EVENT_TIME} END"
    last = {LATEST: trusted} if latest else {}
    if isinstance(shared, Lfta):
        return _merge(_through_tables(with_time, shared, binding, last), binding, places)
    if shared is not None:
        finer = _aggregate(_spread(with_time, shared.tables, shared.columns, last), shared.columns)
        return _merge(_roll_up(finer, shared.tables, binding), binding, places)
    made = _aggregate(_spread(with_time, binding.feeds, binding.columns, last), binding.columns)
    scattered = binding.phantoms.scattered(binding.feeds)
    if scattered:
        return _merge(_scatter(with_time, scattered, binding, last, dict(made.dtypes)), binding, places)
    return _in_buckets(made, binding, places)


def place(partials: DataFrame, buckets: int) -> DataFrame:
    """A partition for each bucket, in their order."""
    return partials.repartitionById(buckets, partials["bucket"])


def timed(rows: DataFrame, binding: Binding) -> DataFrame:
    """Rows with their event time in microseconds, without those that have none."""
    return rows.selectExpr("*", f"{binding.event_micros} AS {EVENT_TIME}").where(f"{EVENT_TIME} IS NOT NULL")


def spread_rows(with_time: DataFrame, binding: Binding) -> DataFrame:
    """Each row to each feed."""
    return _spread(with_time, binding.feeds, binding.columns, {})


def _in_buckets(partials: DataFrame, binding: Binding, places: Places) -> DataFrame:
    """A tree that has a home gets its feed's partials there: a feed whose trees have several sends them to each."""
    bucket = places.bucket(feed_hash(binding))
    if binding.homes:
        branches = " ".join(f"WHEN {n} THEN array({', '.join(map(str, h))})" for n, h in binding.homes.items())
        bucket = f"explode(CASE feed {branches} ELSE array({bucket}) END)"
    return place(partials.selectExpr("*", f"{bucket} AS bucket"), places.buckets)


def _words(tables: Sequence[NativeFeed | NativeTable]) -> int:
    return max(len(table.signature.columns) for table in tables)


def _spread(
    with_time: DataFrame,
    tables: Sequence[NativeFeed | NativeTable],
    columns: PhysicalColumns,
    last: Texts,
    words: int | None = None,
) -> DataFrame:
    """Each row to each of the tables."""
    words = _words(tables) if words is None else words
    arms = [
        from_rows(table.layout.number if isinstance(table, NativeFeed) else number, table, columns, words)
        for number, table in enumerate(tables)
    ]
    return spread(signed(with_time, tables), arms, last)


def _aggregate(rows: DataFrame, columns: PhysicalColumns) -> DataFrame:
    """Spread rows to partials."""
    by = [name for name in rows.columns if name != LATEST and name not in columns.argument_types]
    # A literal in GROUP BY is no work for Spark: it drops it from the key and puts it back.
    return _group(rows, by, columns.slots)


def _through_tables(with_time: DataFrame, lfta: Lfta, binding: Binding, last: Texts) -> DataFrame:
    """The partials of the feeds that have tables, and those of the others, which Spark makes from rows."""
    words = _words(binding.feeds)
    partials = through_tables(with_time, lfta, binding.columns, words, last)
    taken = {feed.layout.number for feed in lfta.feeds}
    others = [feed for feed in binding.feeds if feed.layout.number not in taken]
    if not others:
        return partials
    slots = dict.fromkeys(name for feed in others for names in feed.layout.columns for name in names)
    made = _aggregate(_spread(with_time, others, binding.columns, last, words), binding.columns)
    unused = set(binding.columns.slots) - set(slots)
    return partials.unionByName(made.drop(*unused), allowMissingColumns=True)


def _scatter(
    with_time: DataFrame, scattered: Sequence[NativeFeed], binding: Binding, last: Texts, types: Mapping[str, str]
) -> DataFrame:
    """Rows of feeds that hardly gather as partials of their own, and the partials of the others."""
    words = _words(binding.feeds)
    slots = {name: types[name] for name in binding.columns.slots}
    sent = spread(with_time, [as_partials(feed, binding.columns, words, slots) for feed in scattered], last)
    others = [feed for feed in binding.feeds if feed not in scattered]
    if not others:
        return sent
    return sent.unionByName(_aggregate(_spread(with_time, others, binding.columns, last, words), binding.columns))


def _roll_up(finer: DataFrame, tables: Sequence[NativeTable], binding: Binding) -> DataFrame:
    """The partials of tables as partials of the feeds that each has, still several of a group.

    A feed that has a table for itself comes through unchanged: its partials are one a group already.
    """
    types = dict(finer.dtypes)
    columns, words = binding.columns, _words(binding.feeds)
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
    kept = {name: name for name in (LATEST,) if name in types} | {"fed_by": "fed_by"}
    fed = spread(finer.withColumnRenamed("feed", "fed_by"), arms, kept).where("source = fed_by")
    return fed.drop("source", "fed_by")


def _merge(partials: DataFrame, binding: Binding, places: Places) -> DataFrame:
    """One of each group, in its bucket. There are few here: they are sent as they are, and merged where they arrive."""
    types, columns = dict(partials.dtypes), binding.columns
    aggregates = {
        # A sum of sums of decimals would be wider than the sum that it is.
        name: f"CAST({columns.merges.get(name, f'first({name})')} AS {types[name]})"
        for name in columns.slots
        if name in types
    }
    by = [name for name in types if name != LATEST and name not in columns.slots]
    return _group(_in_buckets(partials, binding, places), ["bucket", *by], aggregates)


def _group(rows: DataFrame, by: Sequence[str], aggregates: Mapping[str, str]) -> DataFrame:
    last = {LATEST: f"max({LATEST})"} if LATEST in rows.columns else {}
    return rows.groupBy(*by).agg(*(F.expr(text).alias(name) for name, text in {**last, **aggregates}.items()))


def feed_hash(binding: Binding) -> str:
    """The hash of a partial's group, by the keys of its feed."""
    branches = " ".join(f"WHEN {feed.layout.number} THEN {group_hash(list(feed.keys))}" for feed in binding.feeds)
    return f"CASE feed {branches} END"
