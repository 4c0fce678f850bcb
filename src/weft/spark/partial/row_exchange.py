"""Rows are sent to the buckets as they are, for feeds with almost as many groups as rows.

A row is sent once to each bucket that has a group of it, however many feeds have one there, with a bit per feed.
Buckets make the partials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from weft.aggregates.combining import RowCount
from weft.engine.partial.from_rows import RowFeed
from weft.spark.checkpoint.bucket_map import BucketMap, group_hash
from weft.spark.physical.expressions import Texts, as_partials
from weft.spark.physical.plan import NativeFeed, PhysicalPlan

BITS = 62
"""Feeds per word of the mask."""


def send_rows(
    with_time: DataFrame,
    feeds: Sequence[NativeFeed],
    physical: PhysicalPlan,
    bucket_map: BucketMap,
    types: Mapping[str, str],
) -> tuple[DataFrame, tuple[RowFeed, ...]]:
    """with_time  (columns..., event time in microseconds, words...)
    numbered   (columns of the feeds..., the bucket of its group in each feed)
    sent       (bucket, masks..., columns of the feeds...), a row for each bucket
    """
    texts = [_texts(feed, physical, types) for feed in feeds]
    names = {text: f"x{i}" for i, text in enumerate(dict.fromkeys(t for of in texts for t in of.values()))}
    columns = [{name: names[text] for name, text in of.items()} for of in texts]
    rows = with_time.selectExpr(*(f"{text} AS {name}" for text, name in names.items()))
    buckets = [
        # A row that none of the feed's queries wants has no slice.
        f"CASE WHEN {of['slice']} IS NOT NULL THEN {bucket_map.bucket(group_hash([of[key] for key in feed.keys]))} END"
        for feed, of in zip(feeds, columns, strict=True)
    ]
    numbered = rows.selectExpr("*", *(f"{bucket} AS b{i}" for i, bucket in enumerate(buckets)))
    all_buckets = ", ".join(f"b{i}" for i in range(len(feeds)))
    sent = numbered.selectExpr("*", f"explode(array_distinct(array_compact(array({all_buckets})))) AS bucket")
    masks = [
        " | ".join(f"CASE WHEN b{i} = bucket THEN {1 << (i - begin)}L ELSE 0L END" for i in range(begin, end))
        for begin in range(0, len(feeds), BITS)
        for end in [min(len(feeds), begin + BITS)]
    ]
    marked = sent.selectExpr("bucket", *(f"{mask} AS m{i}" for i, mask in enumerate(masks)), *names.values())
    row_feeds = (
        RowFeed(feed.layout.number, f"m{i // BITS}", i % BITS, of)
        for i, (feed, of) in enumerate(zip(feeds, columns, strict=True))
    )
    return marked, tuple(row_feeds)


def _texts(feed: NativeFeed, physical: PhysicalPlan, types: Mapping[str, str]) -> Texts:
    """The text of each column of the feed's partials; a count of rows needs none."""
    slots = {name: types[name] for names in feed.layout.columns for name in names}
    texts = as_partials(feed, physical.columns, len(feed.layout.words), slots)
    kept = zip(feed.layout.components, feed.layout.columns, strict=True)
    own = {name for c, names in kept if not isinstance(c.definition.combine, RowCount) for name in names}
    wanted = {"slice", *feed.layout.words, *feed.keys, *own}
    return {name: text for name, text in texts.items() if name in wanted}
