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
from weft.engine.partial.from_rows import RowFeed
from weft.spark.checkpoint.bucket_map import BucketMap, group_hash
from weft.spark.partial.hash_tables import through_tables
from weft.spark.partial.row_exchange import send_rows
from weft.spark.physical.columns import LATEST, PhysicalColumns
from weft.spark.physical.expressions import Texts, as_partials, from_rows, from_table, signed
from weft.spark.physical.plan import FromRows, FromTables, HashTables, NativeFeed, NativeTable, PhysicalPlan


def sub_aggregate(rows: DataFrame, physical: PhysicalPlan, places: BucketMap, ahead: int | None = None) -> DataFrame:
    """rows      (columns...)
    with_time (columns..., event time in microseconds, words...), those without a time dropped as window() drops them
    finer     (feed, slice, words..., keys..., latest, components...) of phantoms, where they pay
    partials  (bucket, feed, slice, words..., keys..., latest, components...), a partition for each bucket

    The plan says all: no Spark job is started here. The bucket follows from the keys, so it is computed for partials,
    not for rows, where rows gather. Rows after `ahead` say nothing about what is latest.
    """
    with_time = signed(timed(rows, physical), physical.feeds)
    trusted = EVENT_TIME if ahead is None else f"CASE WHEN {EVENT_TIME} <= {ahead}L THEN {EVENT_TIME} END"
    last = {LATEST: trusted}
    means = physical.partials.means
    if not isinstance(means, FromRows):
        return _shared(with_time, means, physical, places, last)
    alone = [feed for feed in physical.feeds if feed.layout.number in means.single_rows]
    return _in_place(_from_rows(with_time, physical.feeds, alone, physical, last), alone, physical, places)


def sub_aggregate_whole(
    rows: DataFrame, physical: PhysicalPlan, places: BucketMap
) -> tuple[DataFrame, tuple[RowFeed, ...]]:
    """The same of a bounded table. Its partials say nothing of what is latest, for it needs no watermark; and feeds
    that are exchanged are sent as rows:

    sent      (bucket, partials..., masks..., columns of the rows...), either partials or rows
    """
    with_time = signed(timed(rows, physical), physical.feeds)
    means = physical.partials.means
    if not isinstance(means, FromRows):
        return _shared(with_time, means, physical, places, {}), ()
    exchanged = [feed for feed in physical.feeds if feed.layout.number in means.exchanged]
    others = [feed for feed in physical.feeds if feed.layout.number not in means.exchanged]
    alone = [feed for feed in others if feed.layout.number in means.single_rows]
    if not exchanged:
        return _in_place(_from_rows(with_time, others, alone, physical, {}), alone, physical, places), ()
    sent, scattered = send_rows(with_time, exchanged, physical, places, means.column_types)
    if others:
        partials = _from_rows(with_time, others, alone, physical, {})
        there = _merge(partials, physical, places) if alone else _with_buckets(partials, physical, places)
        sent = sent.unionByName(there, allowMissingColumns=True)
    return place(sent, places.buckets), scattered


def _in_place(partials: DataFrame, alone: Sequence[NativeFeed], physical: PhysicalPlan, places: BucketMap) -> DataFrame:
    """Each in its bucket; where some are still rows they are made one of each group."""
    if alone:
        return _merge(partials, physical, places)
    return place(_with_buckets(partials, physical, places), places.buckets)


def _shared(
    with_time: DataFrame, means: FromTables | HashTables, physical: PhysicalPlan, places: BucketMap, last: Texts
) -> DataFrame:
    """By tables that several feeds are made from."""
    if isinstance(means, HashTables):
        return _merge(_through_tables(with_time, means, physical, last), physical, places)
    finer = _aggregate(_spread(with_time, means.tables, means.columns, last), means.columns)
    return _merge(_roll_up(finer, means.tables, physical), physical, places)


def spread(rows: DataFrame, arms: Sequence[Mapping[str, str]], kept: Mapping[str, str]) -> DataFrame:
    """One row to several, natively: UNPIVOT becomes Spark's Expand operator, which copies what is computed once.

    rows    (columns...)
    spread  (kept..., columns of the arms), a row for each arm

    Arms have the same columns, each an expression over `rows`; an expression that several have is computed once. What
    is kept is the same for all of them.
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


def place(partials: DataFrame, buckets: int) -> DataFrame:
    """A partition for each bucket, in their order."""
    return partials.repartitionById(buckets, partials["bucket"])


def timed(rows: DataFrame, physical: PhysicalPlan) -> DataFrame:
    """Rows with their event time in microseconds, without those that have none."""
    return rows.selectExpr("*", f"{physical.event_micros} AS {EVENT_TIME}").where(f"{EVENT_TIME} IS NOT NULL")


def spread_rows(with_time: DataFrame, physical: PhysicalPlan) -> DataFrame:
    """Each row to each feed."""
    return _spread(with_time, physical.feeds, physical.columns, {})


def _with_buckets(partials: DataFrame, physical: PhysicalPlan, places: BucketMap) -> DataFrame:
    """A tree that has a home gets its feed's partials there: a feed whose trees have several sends them to each."""
    bucket = places.bucket(feed_hash(physical))
    if physical.homes:
        branches = " ".join(f"WHEN {n} THEN array({', '.join(map(str, h))})" for n, h in physical.homes.items())
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
    """The partials of the feeds that have tables, and those of the others, which Spark makes from rows."""
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
    alone: Sequence[NativeFeed],
    physical: PhysicalPlan,
    last: Texts,
) -> DataFrame:
    """The partials of feeds that are made from rows; those of the feeds `alone` are a row each, several of a group."""
    columns, words = physical.columns, _words(feeds)
    gathered = [feed for feed in feeds if feed not in alone]
    made = _aggregate(_spread(with_time, gathered, columns, last, words), columns) if gathered else None
    if not alone:
        assert made is not None
        return _used(made, gathered, columns)
    assert isinstance(physical.partials.means, FromRows)
    types = physical.partials.means.column_types
    slots = {name: types[name] for feed in alone for names in feed.layout.columns for name in names}
    sent = spread(with_time, [as_partials(feed, columns, words, slots) for feed in alone], last)
    return sent if made is None else sent.unionByName(_used(made, gathered, columns), allowMissingColumns=True)


def _used(made: DataFrame, feeds: Sequence[NativeFeed], columns: PhysicalColumns) -> DataFrame:
    """Without the columns that only other feeds fill."""
    used = {name for feed in feeds for names in feed.layout.columns for name in names}
    return made.drop(*(set(columns.slots) - used))


def _roll_up(finer: DataFrame, tables: Sequence[NativeTable], physical: PhysicalPlan) -> DataFrame:
    """The partials of tables as partials of the feeds that each has, still several of a group.

    A feed that has a table for itself comes through unchanged: its partials are one a group already.
    """
    types = dict(finer.dtypes)
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


def _merge(partials: DataFrame, physical: PhysicalPlan, places: BucketMap) -> DataFrame:
    """One of each group, in its bucket. There are few here: they are sent as they are, and merged where they arrive."""
    types, columns = dict(partials.dtypes), physical.columns
    aggregates = {
        # A sum of sums of decimals would be wider than the sum that it is.
        name: f"CAST({columns.merges.get(name, f'first({name})')} AS {types[name]})"
        for name in columns.slots
        if name in types
    }
    by = [name for name in types if name != LATEST and name not in columns.slots]
    placed = place(_with_buckets(partials, physical, places), places.buckets)
    return _group(placed, ["bucket", *by], aggregates)


def _group(rows: DataFrame, by: Sequence[str], aggregates: Mapping[str, str]) -> DataFrame:
    last = {LATEST: f"max({LATEST})"} if LATEST in rows.columns else {}
    return rows.groupBy(*by).agg(*(F.expr(text).alias(name) for name, text in {**last, **aggregates}.items()))


def feed_hash(physical: PhysicalPlan) -> str:
    """The hash of a partial's group, by the keys of its feed."""
    branches = " ".join(f"WHEN {feed.layout.number} THEN {group_hash(list(feed.keys))}" for feed in physical.feeds)
    return f"CASE feed {branches} END"
