"""Partials by bounded tables inside Spark's tasks (LFTA): rows go through them once, and Spark merges what leaves.

What leaves a feed's table has the columns of native partials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from weft.engine.partial.hash_tables import HashTableSpec, Slot, TaskHashTables
from weft.spark.physical.columns import LATEST, PhysicalColumns
from weft.spark.physical.expressions import Texts
from weft.spark.physical.hash_tables import DECIMAL, SUMS
from weft.spark.physical.plan import HashTables
from weft.spark.worker import freeze_what_stays

BATCH_ROWS = 16_384
"""Partials that a task sends to Spark together."""

SUM_DIGITS = 10
"""Digits that Spark adds to the type of a sum of decimals."""


def through_tables(
    timed: DataFrame, chosen: HashTables, columns: PhysicalColumns, words: int, last: Texts
) -> DataFrame:
    """timed     (columns..., event time in microseconds)
    partials  (feed, slice, words..., keys..., latest, components...), possibly several per group
    """
    read = {**chosen.inputs, LATEST: last.get(LATEST, "CAST(NULL AS BIGINT)")}
    rows = timed.selectExpr(*(f"{text} AS {name}" for name, text in read.items()))
    types = dict(rows.dtypes)
    tables = [table for root in chosen.roots for table in root.walk()]
    slots = {column: slot for table in tables for out in table.outputs for column, slot in out.slots.items()}
    sent = {"feed": "int", "slice": "bigint", **{f"w{i}": "bigint" for i in range(words)}, **columns.key_types}
    sent |= {column: _type(slot, types) for column, slot in slots.items() if column != LATEST or last}
    ddl = ", ".join(f"`{name}` {spark_type}" for name, spark_type in sent.items())
    schema = to_arrow_schema(StructType.fromDDL(ddl), timezone="UTC")
    return rows.mapInArrow(HashTableTask(chosen.roots, schema, chosen.dictionary_bytes).run, ddl)


def _type(slot: Slot, types: Mapping[str, str]) -> str:
    """The type of Spark's own aggregate; a sum of integers or of booleans is a bigint."""
    if slot.argument is None:
        return "bigint"
    argument = types[slot.argument]
    if slot.operation not in SUMS:
        return argument
    if (digits := DECIMAL.fullmatch(argument)) is not None:
        return f"decimal({int(digits[1]) + SUM_DIGITS},{digits[2]})"
    return "double" if slot.real else "bigint"


@dataclass(frozen=True, slots=True)
class HashTableTask:
    """The tables of a task, emptied at its end."""

    roots: tuple[HashTableSpec, ...]
    schema: pa.Schema
    dictionary_bytes: int

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = TaskHashTables(self.roots, self.schema, self.dictionary_bytes)
        yield from _in_large_batches(self._evicted(tables, batches))
        freeze_what_stays()

    @staticmethod
    def _evicted(tables: TaskHashTables, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from tables.take(batch)
        yield from tables.empty()


def _in_large_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fewer and larger batches: Spark sends each in a message of its own."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= BATCH_ROWS:
            yield pa.concat_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_batches(waiting)
