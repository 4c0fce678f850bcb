"""What rows are aggregated to: a table for each feed, or one that several feeds are rolled up from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pyspark.sql import DataFrame

from weft.aggregates import Component
from weft.engine import FeedLayout
from weft.model import Edges
from weft.spark.physical.columns import PhysicalColumns
from weft.spark.physical.signature import Signature
from weft.spark.physical.slicing import feed_slicing, slice_of

Texts = dict[str, str]
"""An expression for each column."""


@dataclass(frozen=True, slots=True)
class NativeFeed:
    """What Spark computes for a feed: the expression of each physical column, and the filters of its queries."""

    layout: FeedLayout
    keys: Mapping[str, str]
    arguments: Mapping[str, str]
    signature: Signature

    @property
    def scatters(self) -> bool:
        """Whether a row of it can be sent as a partial."""
        return all(c.own for c in self.layout.components)

    @property
    def rolls(self) -> bool:
        """Whether its partials can be made from finer ones by Spark."""
        return all(c.merges for c in self.layout.components)


@dataclass(frozen=True, slots=True)
class NativeTable:
    """The keys, edges, filters and components of its feeds, all together."""

    feeds: tuple[NativeFeed, ...]
    edges: Edges
    signature: Signature
    keys: Mapping[str, str]
    arguments: Mapping[str, str]
    columns: Mapping[Component, tuple[str, ...]]

    @classmethod
    def of(cls, feeds: Sequence[NativeFeed], bound: PhysicalColumns, columns: PhysicalColumns) -> NativeTable:
        """`bound` says what types the feeds' own columns have; the table gets its columns from `columns`."""
        key_types = {e: bound.key_types[c] for feed in feeds for c, e in feed.keys.items()}
        argument_types = {e: bound.argument_types[c] for feed in feeds for c, e in feed.arguments.items()}
        arguments = columns.arguments(argument_types)
        kept = dict.fromkeys(c for feed in feeds for c in feed.layout.components)
        return cls(
            tuple(feeds),
            union_edges([feed.layout.edges for feed in feeds]),
            Signature.union(feed.signature for feed in feeds),
            {column: e for e, column in columns.keys(key_types).items()},
            {column: e for e, column in arguments.items()},
            {c: columns.component(c, arguments) for c in kept},
        )


def union_edges(edges: Sequence[Edges]) -> Edges:
    """All edges: the feeds' own, or a granule where they are many and lie dense."""
    if all(e == edges[0] for e in edges):
        return edges[0]
    together = Edges.of_classes(c for e in edges for c in e.classes)
    return feed_slicing(together, sum((Fraction(1_000_000, slide) for slide, _ in together.classes), Fraction(0)))


def signed(rows: DataFrame, tables: Sequence[NativeFeed | NativeTable]) -> DataFrame:
    """Rows with the words of the tables' signatures: each is computed once, whatever asks for it."""
    words = {n: t for table in tables for n, t in zip(table.signature.names, table.signature.words, strict=True)}
    missing = {name: text for name, text in words.items() if name not in rows.columns}
    return rows.selectExpr("*", *(f"{text} AS {name}" for name, text in missing.items())) if missing else rows


def from_rows(number: int, table: NativeFeed | NativeTable, columns: PhysicalColumns, words: int) -> Texts:
    """The text of each column for one table, over signed rows; those that only others use are NULL.

    A row that none of the queries wants moves the watermark and nothing else: it has no slice and no group.
    """
    edges = table.layout.edges if isinstance(table, NativeFeed) else table.edges
    signature = table.signature
    texts = {"feed": str(number), "slice": _where(signature.passes, slice_of(edges))}
    texts |= _words(signature.names, words)
    for name, spark_type in columns.key_types.items():
        key = table.keys.get(name)
        texts[name] = f"CAST(NULL AS {spark_type})" if key is None else _where(signature.passes, key)
    for name, spark_type in columns.argument_types.items():
        argument = table.arguments.get(name)
        texts[name] = f"CAST(NULL AS {spark_type})" if argument is None else f"({argument})"
    return texts


def as_partials(feed: NativeFeed, columns: PhysicalColumns, words: int, slots: Texts) -> Texts:
    """The same for a feed whose rows are sent as partials of their own; `slots` are the types of partial columns."""
    rows = from_rows(feed.layout.number, feed, columns, words)
    texts = {name: text for name, text in rows.items() if name not in columns.argument_types}
    found = {
        name: f"CAST({own} AS {slots[name]})"
        for component, names in zip(feed.layout.components, feed.layout.columns, strict=True)
        for name, own in zip(names, component.own, strict=True)
    }
    return texts | {name: found.get(name, f"CAST(NULL AS {spark_type})") for name, spark_type in slots.items()}


def from_table(feed: NativeFeed, table: NativeTable, columns: PhysicalColumns, words: int, slots: Texts) -> Texts:
    """The same for a feed that is rolled up, over the columns of its table; `slots` are their types."""
    passes = feed.signature.passes_of(table.signature)
    texts = {"feed": str(feed.layout.number), "slice": _where(passes, slice_of(feed.layout.edges, "slice"))}
    texts |= _words(feed.signature.words_of(table.signature), words)
    own = {expression: column for column, expression in table.keys.items()}
    for name, spark_type in columns.key_types.items():
        key = feed.keys.get(name)
        texts[name] = f"CAST(NULL AS {spark_type})" if key is None else _where(passes, own[key])
    found = {
        name: column
        for component, names in zip(feed.layout.components, feed.layout.columns, strict=True)
        for name, column in zip(names, table.columns[component], strict=True)
    }
    return texts | {name: found.get(name, f"CAST(NULL AS {spark_type})") for name, spark_type in slots.items()}


def _words(texts: Sequence[str], words: int) -> Texts:
    return {f"w{i}": f"({texts[i]})" if i < len(texts) else "0L" for i in range(words)}


def _where(passes: str | None, text: str) -> str:
    return text if passes is None else f"(CASE WHEN {passes} THEN {text} END)"
