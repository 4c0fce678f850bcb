"""The text of each column of partials, as native Spark expressions over rows or over the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from weft.spark.physical.columns import PhysicalColumns
from weft.spark.physical.guards import where
from weft.spark.physical.plan import NativeFeed, NativeTable
from weft.spark.physical.slicing import slice_of

Texts = dict[str, str]
"""An expression for each column."""


def signed(rows: DataFrame, tables: Sequence[NativeFeed | NativeTable]) -> DataFrame:
    """Rows with the words of the tables' signatures: each word is computed once, however many tables use it."""
    words = {n: t for table in tables for n, t in zip(table.signature.names, table.signature.words, strict=True)}
    missing = {name: text for name, text in words.items() if name not in rows.columns}
    return rows.selectExpr("*", *(f"{text} AS {name}" for name, text in missing.items())) if missing else rows


def from_rows(number: int, table: NativeFeed | NativeTable, columns: PhysicalColumns, words: int) -> Texts:
    """The text of each column for one table, over signed rows; columns that only other tables use are NULL.

    A row that no query of the table wants only advances the watermark: it has no slice and no group.
    """
    edges = table.layout.edges if isinstance(table, NativeFeed) else table.edges
    signature = table.signature
    texts = {"feed": str(number), "slice": where(signature.passes, slice_of(edges))}
    texts |= _words(signature.names, words)
    for name, spark_type in columns.key_types.items():
        key = table.keys.get(name)
        texts[name] = f"CAST(NULL AS {spark_type})" if key is None else where(table.key_guard(key), key)
    for name, spark_type in columns.argument_types.items():
        argument = table.arguments.get(name)
        guard = table.guards.get(argument or "")
        texts[name] = f"CAST(NULL AS {spark_type})" if argument is None else where(guard, f"({argument})")
    return texts


def guarded_arguments(feed: NativeFeed) -> Texts:
    """Each argument as it is evaluated."""
    return {argument: where(condition, f"({argument})") for argument, condition in feed.argument_guards}


def as_partials(feed: NativeFeed, columns: PhysicalColumns, words: int, slots: Texts) -> Texts:
    """The same for a feed whose rows are sent as partials of their own; `slots` are the types of partial columns."""
    rows = from_rows(feed.layout.number, feed, columns, words)
    texts = {name: text for name, text in rows.items() if name not in columns.argument_types}
    own_columns = {
        name: f"CAST({own} AS {slots[name]})"
        for component, names in zip(feed.layout.components, feed.layout.columns, strict=True)
        for name, own in zip(names, component.row_of(guarded_arguments(feed)), strict=True)
    }
    return texts | {name: own_columns.get(name, f"CAST(NULL AS {spark_type})") for name, spark_type in slots.items()}


def from_table(feed: NativeFeed, table: NativeTable, columns: PhysicalColumns, words: int, slots: Texts) -> Texts:
    """The same for a feed that is rolled up, over the columns of its table; `slots` are their types."""
    passes = feed.signature.passes_of(table.signature)
    texts = {"feed": str(feed.layout.number), "slice": where(passes, slice_of(feed.layout.edges, "slice"))}
    texts |= _words(feed.signature.words_of(table.signature), words)
    key_columns = {expression: column for column, expression in table.keys.items()}
    for name, spark_type in columns.key_types.items():
        key = feed.keys.get(name)
        texts[name] = f"CAST(NULL AS {spark_type})" if key is None else where(passes, key_columns[key])
    own_columns = {
        name: column
        for component, names in zip(feed.layout.components, feed.layout.columns, strict=True)
        for name, column in zip(names, table.columns[component], strict=True)
    }
    return texts | {name: own_columns.get(name, f"CAST(NULL AS {spark_type})") for name, spark_type in slots.items()}


def _words(texts: Sequence[str], words: int) -> Texts:
    return {f"w{i}": f"({texts[i]})" if i < len(texts) else "0L" for i in range(words)}
