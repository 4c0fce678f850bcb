"""Feeds with almost as many groups as rows: they are sent as rows, and aggregated where they arrive."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from weft.spark.physical.plan import NativeFeed, PhysicalPlan
from weft.spark.sql_types import column_types

GATHERED = 0.5
"""Partials per row, above which rows are sent instead: partials are sent twice, by group and by bucket."""

PLAIN = re.compile(r"boolean|tinyint|smallint|int|bigint|date|timestamp|timestamp_ntz|string|binary|decimal\(\d+,\d+\)")
"""Types of keys that are equal if their bytes are: not floats (0.0 and -0.0, NaN), nor strings with a collation."""

COMPARED = re.compile(rf"{PLAIN.pattern}|float|double")
"""Types of partials that buckets combine as Spark does."""


def single_row_feeds(sendable: Sequence[NativeFeed], partials: Mapping[int, float]) -> frozenset[int]:
    """The numbers of feeds that are sent as a partial per row; `partials` has the partials per row of each feed."""
    return frozenset(feed.layout.number for feed in sendable if partials[feed.layout.number] > GATHERED)


def exchanged_feeds(sendable: Sequence[NativeFeed], partials: Mapping[int, float], buckets: int) -> frozenset[int]:
    """The numbers of feeds in the row exchange: their rows are sent, once per bucket, and grouped there.

    Feeds share the copies of a row. Groups are hashed to buckets, so all but a share `alone` of the next feed's rows
    are in the right bucket already, and the feed is worth adding even if it has few groups. Without other feeds every
    row is sent for it alone, and the rule is that of `single_row_feeds`.
    """
    chosen: set[int] = set()
    alone = 1.0
    for number in sorted((feed.layout.number for feed in sendable), key=lambda n: (-partials[n], n)):
        if partials[number] <= GATHERED * alone:
            break
        chosen.add(number)
        alone *= 1 - 1 / buckets
    return frozenset(chosen)


def exchangeable(feeds: Sequence[NativeFeed], plan: PhysicalPlan, types: Mapping[str, str]) -> list[NativeFeed]:
    """The feeds whose partials buckets can make; `types` has the types of their partial columns.

    Without ANSI mode sums wrap around as Spark defines it, so Spark makes the partials.
    """
    if not plan.layout.ansi:
        return []

    def plain(feed: NativeFeed) -> bool:
        keys = (plan.columns.key_types[name] for name in feed.keys)
        kept = (types[name] for names in feed.layout.columns for name in names)
        return all(map(PLAIN.fullmatch, keys)) and all(map(COMPARED.fullmatch, kept))

    return [feed for feed in feeds if plain(feed) and feed.layout.number not in plan.pinned_buckets]


def partial_types(with_time: DataFrame, feeds: Sequence[NativeFeed]) -> dict[str, str]:
    """The type of each partial column of these feeds: what Spark's aggregate of the arguments has."""
    lifts = {
        name: lift.format(*(f"({argument})" for argument in component.arguments))
        for feed in feeds
        for component, names in zip(feed.layout.components, feed.layout.columns, strict=True)
        for name, lift in zip(names, component.lifts, strict=True)
    }
    return column_types(with_time.selectExpr(*(f"{lift} AS {name}" for name, lift in lifts.items()))) if lifts else {}
