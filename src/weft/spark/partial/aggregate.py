"""Rows to partials: slicing, signatures and sub-aggregation, native from end to end.

Where a phantom feeds several groupings, rows are aggregated to it once, and each grouping from its partials.
Where a grouping has almost as many groups as rows, rows are sent to their buckets and aggregated there: to aggregate
them first would only send them twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.aggregates import EVENT_TIME
from weft.engine.partial.from_rows import RowFeed
from weft.spark.checkpoint.bucket_map import BucketMap, group_hash
from weft.spark.partial.hash_tables import through_tables
from weft.spark.partial.row_exchange import send_rows
from weft.spark.physical.columns import LATEST, PhysicalColumns
from weft.spark.physical.expressions import Texts, as_partials, from_rows, from_table, signed
from weft.spark.physical.plan import FromRows, FromTables, HashTables, NativeFeed, NativeTable, PhysicalPlan
from weft.spark.sql_types import column_types


def sub_aggregate(
    rows: DataFrame, physical: PhysicalPlan, bucket_map: BucketMap, ahead: int | None = None
) -> DataFrame:
    """rows      (columns...)
    with_time (columns..., event time in microseconds, words...), those without a time dropped as window() drops them
    finer     (feed, slice, words..., keys..., latest, components...) of phantoms, where they pay
    partials  (bucket, feed, slice, words..., keys..., latest, components...), a partition for each bucket

    The plan has every decision, so no Spark job is started here. The bucket depends on the keys alone, so it is
    computed per partial, not per row. Rows with an event time after `ahead` do not count for `latest`.
    """
    with_time = signed(timed(rows, physical), physical.feeds)
    trusted = EVENT_TIME if ahead is None else f"CASE WHEN {EVENT_TIME} <= {ahead}L THEN {EVENT_TIME} END"
    last = {LATEST: trusted}
    means = physical.partials.means
    if not isinstance(means, FromRows):
        return _from_shared_tables(with_time, means, physical, bucket_map, last)
    single_row_feeds = [feed for feed in physical.feeds if feed.layout.number in means.single_rows]
    partials = _from_rows(with_time, physical.feeds, single_row_feeds, physical, last)
    return _to_buckets(partials, single_row_feeds, physical, bucket_map)


def aggregate_bounded(
    rows: DataFrame, physical: PhysicalPlan, bucket_map: BucketMap
) -> tuple[DataFrame, tuple[RowFeed, ...]]:
    """The same for a bounded table. It needs no watermark, so its partials have no `latest`. Feeds in the row exchange
    are sent as rows:

    sent      (bucket, partials..., masks..., columns of the rows...), either partials or rows
    """
    with_time = signed(timed(rows, physical), physical.feeds)
    means = physical.partials.means
    if not isinstance(means, FromRows):
        return _from_shared_tables(with_time, means, physical, bucket_map, {}), ()
    exchanged = [feed for feed in physical.feeds if feed.layout.number in means.exchanged]
    others = [feed for feed in physical.feeds if feed.layout.number not in means.exchanged]
    single_row_feeds = [feed for feed in others if feed.layout.number in means.single_rows]
    if not exchanged:
        partials = _from_rows(with_time, others, single_row_feeds, physical, {})
        return _to_buckets(partials, single_row_feeds, physical, bucket_map), ()
    sent, row_feeds = send_rows(with_time, exchanged, physical, bucket_map, means.column_types)
    if others:
        partials = _from_rows(with_time, others, single_row_feeds, physical, {})
        place = _merge if single_row_feeds else _with_buckets
        sent = sent.unionByName(place(partials, physical, bucket_map), allowMissingColumns=True)
    return partition_by_bucket(sent, bucket_map.buckets), row_feeds


def _to_buckets(
    partials: DataFrame, single_row_feeds: Sequence[NativeFeed], physical: PhysicalPlan, bucket_map: BucketMap
) -> DataFrame:
    """Partials in their buckets; single rows are merged there to one partial per group."""
    if single_row_feeds:
        return _merge(partials, physical, bucket_map)
    return partition_by_bucket(_with_buckets(partials, physical, bucket_map), bucket_map.buckets)


def _from_shared_tables(
    with_time: DataFrame, means: FromTables | HashTables, physical: PhysicalPlan, bucket_map: BucketMap, last: Texts
) -> DataFrame:
    """From tables that several feeds are made from."""
    if isinstance(means, HashTables):
        return _merge(_through_tables(with_time, means, physical, last), physical, bucket_map)
    finer = _aggregate(_spread(with_time, means.tables, means.columns, last), means.columns)
    return _merge(_roll_up(finer, means.tables, physical), physical, bucket_map)


def spread(rows: DataFrame, arms: Sequence[Mapping[str, str]], kept: Mapping[str, str]) -> DataFrame:
    """One row to several, natively: UNPIVOT becomes Spark's Expand operator, which copies what is computed once.

    rows    (columns...)
    spread  (kept..., columns of the arms), a row for each arm

    Arms have the same columns, each an expression over `rows`; an expression of several arms is computed once. The
    `kept` columns are the same for all arms.
    """
    names = list(arms[0])
    if len(arms) == 1:
        return rows.selectExpr(*(f"{text} AS {name}" for name, text in {**kept, **arms[0]}.items()))
    texts = {text: f"x{i}" for i, text in enumerate(dict.fromkeys(text for arm in arms for text in arm.values()))}
    computed = rows.selectExpr(
        *(f"{text} AS {name}" for name, text in kept.items()), *(f"{text} AS {name}" for text, name in texts.items())
    )
    choices = ", ".join(
        f"({', '.join(texts[arm[name]] for name in names)}) AS `{number}`" for number, arm in enumerate(arms)
    )
    values = f"({', '.join(names)}) FOR arm IN ({choices})"
    unpivoted = rows.sparkSession.sql(f"SELECT * FROM {{computed}} UNPIVOT INCLUDE NULLS ({values})", computed=computed)
    return unpivoted.select(*kept, *names)


def partition_by_bucket(partials: DataFrame, buckets: int) -> DataFrame:
    """A partition for each bucket, in their order."""
    return partials.repartitionById(buckets, partials["bucket"])


def timed(rows: DataFrame, physical: PhysicalPlan) -> DataFrame:
    """Rows with their event time in microseconds, without those that have none."""
    return rows.selectExpr("*", f"{physical.event_micros} AS {EVENT_TIME}").where(f"{EVENT_TIME} IS NOT NULL")


def spread_rows(with_time: DataFrame, physical: PhysicalPlan) -> DataFrame:
    """Each row to each feed."""
    return _spread(with_time, physical.feeds, physical.columns, {})


def _with_buckets(partials: DataFrame, physical: PhysicalPlan, bucket_map: BucketMap) -> DataFrame:
    """A feed with pinned trees sends its partials to every bucket that one of them is pinned to."""
    bucket = bucket_map.bucket(feed_hash(physical))
    if physical.pinned_buckets:
        pinned = {number: ", ".join(map(str, buckets)) for number, buckets in physical.pinned_buckets.items()}
        branches = " ".join(f"WHEN {number} THEN array({buckets})" for number, buckets in pinned.items())
        bucket = f"explode(CASE feed {branches} ELSE array({bucket}) END)"
    return partials.selectExpr("*", f"{bucket} AS bucket")


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


def _through_tables(with_time: DataFrame, tables: HashTables, physical: PhysicalPlan, last: Texts) -> DataFrame:
    """The partials of the feeds that have hash tables, and those of the other feeds, which Spark makes from rows."""
    words = _words(physical.feeds)
    partials = through_tables(with_time, tables, physical.columns, words, last)
    taken = {feed.layout.number for feed in tables.feeds}
    others = [feed for feed in physical.feeds if feed.layout.number not in taken]
    if not others:
        return partials
    made = _aggregate(_spread(with_time, others, physical.columns, last, words), physical.columns)
    return partials.unionByName(_used(made, others, physical.columns), allowMissingColumns=True)


def _from_rows(
    with_time: DataFrame,
    feeds: Sequence[NativeFeed],
    single_row_feeds: Sequence[NativeFeed],
    physical: PhysicalPlan,
    last: Texts,
) -> DataFrame:
    """The partials of feeds that are made from rows; those of `single_row_feeds` are one per row, several per group."""
    columns, words = physical.columns, _words(feeds)
    gathered = [feed for feed in feeds if feed not in single_row_feeds]
    made = _aggregate(_spread(with_time, gathered, columns, last, words), columns) if gathered else None
    if not single_row_feeds:
        assert made is not None
        return _used(made, gathered, columns)
    assert isinstance(physical.partials.means, FromRows)
    types = physical.partials.means.column_types
    slots = {name: types[name] for feed in single_row_feeds for names in feed.layout.columns for name in names}
    sent = spread(with_time, [as_partials(feed, columns, words, slots) for feed in single_row_feeds], last)
    return sent if made is None else sent.unionByName(_used(made, gathered, columns), allowMissingColumns=True)


def _used(made: DataFrame, feeds: Sequence[NativeFeed], columns: PhysicalColumns) -> DataFrame:
    """Without the columns that only other feeds use."""
    used = {name for feed in feeds for names in feed.layout.columns for name in names}
    return made.drop(*(set(columns.slots) - used))


def _roll_up(finer: DataFrame, tables: Sequence[NativeTable], physical: PhysicalPlan) -> DataFrame:
    """The partials of tables as partials of their feeds, still several per group.

    A feed with a table of its own is unchanged: it has one partial per group already.
    """
    types = column_types(finer)
    columns, words = physical.columns, _words(physical.feeds)
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


def _merge(partials: DataFrame, physical: PhysicalPlan, bucket_map: BucketMap) -> DataFrame:
    """One partial per group, in its bucket. Partials are few here: they are merged where they arrive, not before."""
    types, columns = column_types(partials), physical.columns
    aggregates = {
        # A sum of sums of decimals would be wider than the sum that it is.
        name: f"CAST({columns.merges.get(name, f'first({name})')} AS {types[name]})"
        for name in columns.slots
        if name in types
    }
    by = [name for name in types if name != LATEST and name not in columns.slots]
    placed = partition_by_bucket(_with_buckets(partials, physical, bucket_map), bucket_map.buckets)
    return _group(placed, ["bucket", *by], aggregates)


def _group(rows: DataFrame, by: Sequence[str], aggregates: Mapping[str, str]) -> DataFrame:
    last = {LATEST: f"max({LATEST})"} if LATEST in rows.columns else {}
    return rows.groupBy(*by).agg(*(F.expr(text).alias(name) for name, text in {**last, **aggregates}.items()))


def feed_hash(physical: PhysicalPlan) -> str:
    """The hash of a partial's group, by the keys of its feed."""
    branches = " ".join(f"WHEN {feed.layout.number} THEN {group_hash(list(feed.keys))}" for feed in physical.feeds)
    return f"CASE feed {branches} END"
