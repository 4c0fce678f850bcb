"""Hash tables of bounded size inside one task (LFTA): a table sends the partials that it evicts to those that it feeds.

The low level of paper 5. Keys are numbers here: the values themselves if they fit 64 bits, else codes of a dictionary.
When the dictionaries reach their memory limit, all tables are emptied and the dictionaries start again. Emptying early
produces more partials but loses none: Spark merges them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.aggregates.kind import TableOperation
from weft.engine.partial.key_codes import Code, code_for, numbers, typed
from weft.kernels.hash_table import insert_rows

CHUNK = 8_192
"""Rows that are encoded at a time. Their memory is extra to that of the tables, and small enough for the cache."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A number that a table keeps for each group."""

    operation: TableOperation
    argument: str | None
    """The input column; None: every row counts one."""
    real: bool = False
    """Whether the number is a float."""


@dataclass(frozen=True, slots=True)
class FeedOutput:
    """A feed that gets the partials of a table: its number, the attribute of each of its columns, and its slots."""

    feed: int
    attributes: Mapping[str, str]
    slots: Mapping[str, Slot]


@dataclass(frozen=True, slots=True)
class HashTableSpec:
    """A hash table of a configuration: its groups and slots, the feeds that it serves, and the tables that it feeds."""

    attributes: tuple[str, ...]
    slots: tuple[Slot, ...]
    buckets: int
    outputs: tuple[FeedOutput, ...]
    children: tuple[HashTableSpec, ...] = ()

    def walk(self) -> Iterator[HashTableSpec]:
        yield self
        for child in self.children:
            yield from child.walk()


def bucket_bytes(attributes: int, slots: int) -> int:
    """The most bytes per bucket: two numbers per attribute, because the second may mark NULL."""
    return 16 * attributes + 9 * slots + 1


@dataclass(frozen=True, slots=True)
class Entries:
    """Partials of one table as arrays, one row per partial."""

    keys: NDArray[np.int64]
    longs: NDArray[np.int64]
    floats: NDArray[np.float64]
    valid: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.keys)

    def first(self, number: int) -> Entries:
        return Entries(self.keys[:number], self.longs[:number], self.floats[:number], self.valid[:number])


class TaskHashTables:
    """The tables of one task. `take` and `empty` return the evicted partials, in the columns of `schema`."""

    def __init__(self, roots: Sequence[HashTableSpec], schema: pa.Schema, dictionary_bytes: int) -> None:
        self._schema = schema
        self._dictionary_bytes = dictionary_bytes
        self._roots = roots
        self._codes: dict[str, Code] = {}
        self._tables: dict[int, _HashTable] = {}
        self.probes = 0
        self.evictions = 0
        self.dictionary_peak = 0

    @property
    def table_bytes(self) -> int:
        return sum(table.nbytes for table in self._tables.values())

    def take(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not self._codes:
            self._open(rows.schema)
        for start in range(0, rows.num_rows, CHUNK):
            chunk = rows.slice(start, CHUNK)
            codes = {name: code.encode(chunk.column(name)) for name, code in self._codes.items()}
            for root in self._roots:
                keys = np.column_stack([codes[name] for name in root.attributes])
                yield from self._insert(root, self._tables[id(root)].row_entries(keys, chunk))
            dictionary_bytes = sum(code.nbytes for code in self._codes.values())
            self.dictionary_peak = max(self.dictionary_peak, dictionary_bytes)
            if dictionary_bytes > self._dictionary_bytes:
                yield from self.empty()
                for code in self._codes.values():
                    code.forget()

    def empty(self) -> Iterator[pa.RecordBatch]:
        """Evict all groups, those of finer tables first: the end of an epoch."""
        for table in (t for root in self._roots for t in root.walk()):
            if id(table) in self._tables:
                yield from self._evict(table, self._tables[id(table)].clear())

    def _open(self, schema: pa.Schema) -> None:
        tables = [table for root in self._roots for table in root.walk()]
        for name in dict.fromkeys(name for table in tables for name in table.attributes):
            self._codes[name] = code_for(schema.field(name))
        widths = {name: code.width for name, code in self._codes.items()}
        self._tables = {id(table): _HashTable(table, widths) for table in tables}

    def _insert(self, table: HashTableSpec, entries: Entries) -> Iterator[pa.RecordBatch]:
        self.probes += len(entries)
        yield from self._evict(table, self._tables[id(table)].insert(entries))

    def _evict(self, table: HashTableSpec, evicted: Entries) -> Iterator[pa.RecordBatch]:
        if not len(evicted):
            return
        source = self._tables[id(table)]
        for output in table.outputs:
            self.evictions += len(evicted)
            yield self._partials(source, output, evicted)
        for child in table.children:
            yield from self._insert(child, source.for_child(self._tables[id(child)], evicted))

    def _partials(self, table: _HashTable, output: FeedOutput, evicted: Entries) -> pa.RecordBatch:
        arrays = []
        for field in self._schema:
            if field.name == "feed":
                array = pa.array(np.full(len(evicted), output.feed, np.int32))
            elif field.name in output.attributes:
                name = output.attributes[field.name]
                array = self._codes[name].decode(evicted.keys[:, table.key_columns[name]])
            elif field.name in output.slots:
                array = table.column(output.slots[field.name], evicted, field.type)
            else:
                array = pa.nulls(len(evicted), field.type)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class _HashTable:
    """The arrays of one hash table."""

    def __init__(self, spec: HashTableSpec, widths: Mapping[str, int]) -> None:
        self.key_columns: dict[str, slice] = {}
        width = 0
        for name in spec.attributes:
            self.key_columns[name] = slice(width, width + widths[name])
            width += widths[name]
        self._longs = [slot for slot in spec.slots if not slot.real]
        self._floats = [slot for slot in spec.slots if slot.real]
        self._ops = [np.array([s.operation for s in slots], np.int64) for slots in (self._longs, self._floats)]
        slot_count = len(self._longs) + len(self._floats)
        self._buckets = Entries(
            np.zeros((spec.buckets, width), np.int64),
            np.zeros((spec.buckets, len(self._longs)), np.int64),
            np.zeros((spec.buckets, len(self._floats)), np.float64),
            np.zeros((spec.buckets, slot_count), bool),
        )
        self._used = np.zeros(spec.buckets, bool)

    @property
    def nbytes(self) -> int:
        arrays = (self._buckets.keys, self._buckets.longs, self._buckets.floats, self._buckets.valid, self._used)
        return sum(array.nbytes for array in arrays)

    def row_entries(self, keys: NDArray[np.int64], rows: pa.RecordBatch) -> Entries:
        """One partial per row."""
        longs = np.zeros((rows.num_rows, len(self._longs)), np.int64)
        floats = np.zeros((rows.num_rows, len(self._floats)), np.float64)
        valid = np.ones((rows.num_rows, len(self._longs) + len(self._floats)), bool)
        for slot_index, slot in enumerate((*self._longs, *self._floats)):
            column = None if slot.argument is None else rows.column(slot.argument)
            if slot.real:
                assert column is not None
                floats[:, slot_index - len(self._longs)] = numbers(column, np.float64)
            elif column is None:
                longs[:, slot_index] = 1
            else:
                longs[:, slot_index] = numbers(column, np.int64)
            if column is not None and column.null_count:
                valid[:, slot_index] = column.is_valid().to_numpy(zero_copy_only=False)
        return Entries(np.ascontiguousarray(keys), longs, floats, valid)

    def insert(self, rows: Entries) -> Entries:
        """Put the partials into the table; returns the groups that it evicts, in the memory of `rows`."""
        buckets = self._buckets
        evicted_count = insert_rows(
            rows.keys, rows.longs, rows.floats, rows.valid, *self._ops,
            buckets.keys, buckets.longs, buckets.floats, buckets.valid, self._used,
        )  # fmt: skip
        return rows.first(evicted_count)

    def clear(self) -> Entries:
        """Empty the table; returns all its groups."""
        used = np.flatnonzero(self._used)
        self._used[:] = False
        buckets = self._buckets
        return Entries(buckets.keys[used], buckets.longs[used], buckets.floats[used], buckets.valid[used])

    def for_child(self, child: _HashTable, evicted: Entries) -> Entries:
        """The evicted partials in the columns of a child table; copies, because the child overwrites its input."""
        keys = np.column_stack([evicted.keys[:, self.key_columns[name]] for name in child.key_columns])
        longs = [self._longs.index(slot) for slot in child._longs]
        floats = [self._floats.index(slot) for slot in child._floats]
        valid = [*longs, *(len(self._longs) + f for f in floats)]
        return Entries(
            np.ascontiguousarray(keys),
            np.ascontiguousarray(evicted.longs[:, longs]),
            np.ascontiguousarray(evicted.floats[:, floats]),
            np.ascontiguousarray(evicted.valid[:, valid]),
        )

    def column(self, slot: Slot, evicted: Entries, type_: pa.DataType) -> pa.Array:
        if slot.real:
            slot_index = self._floats.index(slot)
            values: Any = np.ascontiguousarray(evicted.floats[:, slot_index])
            valid = evicted.valid[:, len(self._longs) + slot_index]
        else:
            slot_index = self._longs.index(slot)
            values, valid = np.ascontiguousarray(evicted.longs[:, slot_index]), evicted.valid[:, slot_index]
        array = pa.array(values, mask=None if valid.all() else ~valid)
        return typed(array, type_)
