"""Rows through the tables of a configuration, in bounded memory: what leaves a table goes to those that it feeds.

The low level of paper 5 (LFTA). Keys are numbers here: as they are where 64 bits hold them, else by a dictionary. When
the dictionaries have grown to their share of the memory, all tables are emptied and numbers begin anew. What is emptied
early costs partials more, and none is lost: the high level merges them.
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
from weft.kernels.hash_table import throw_in

CHUNK = 8_192
"""Rows that are encoded at a time: what they take comes on top of the tables, and stays in the cache."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A number that is kept of each group."""

    operation: TableOperation
    argument: str | None
    """The input column; None: every row counts one."""
    real: bool = False


@dataclass(frozen=True, slots=True)
class Out:
    """A feed that partials leave for: its number, the attribute of each of its columns, and its slots."""

    feed: int
    attributes: Mapping[str, str]
    slots: Mapping[str, Slot]


@dataclass(frozen=True, slots=True)
class CascadeTable:
    """A table of a configuration, with what it feeds."""

    attributes: tuple[str, ...]
    slots: tuple[Slot, ...]
    buckets: int
    outs: tuple[Out, ...]
    children: tuple[CascadeTable, ...] = ()

    def walk(self) -> Iterator[CascadeTable]:
        yield self
        for child in self.children:
            yield from child.walk()


def bucket_bytes(attributes: int, slots: int) -> int:
    """What a bucket takes at most: two numbers an attribute, for one of them may say NULL."""
    return 16 * attributes + 9 * slots + 1


@dataclass(frozen=True, slots=True)
class Entries:
    """Partials of one table as arrays, a row each."""

    keys: NDArray[np.int64]
    longs: NDArray[np.int64]
    floats: NDArray[np.float64]
    valid: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.keys)

    def first(self, number: int) -> Entries:
        return Entries(self.keys[:number], self.longs[:number], self.floats[:number], self.valid[:number])


class Cascade:
    """The tables of one task. `take` and `empty` give the partials that leave, in the columns of `schema`."""

    def __init__(self, roots: Sequence[CascadeTable], schema: pa.Schema, dictionary_bytes: int) -> None:
        self._schema = schema
        self._dictionary_bytes = dictionary_bytes
        self._roots = roots
        self._codes: dict[str, Code] = {}
        self._tables: dict[int, _Table] = {}
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
                yield from self._throw(root, self._tables[id(root)].lifted(keys, chunk))
            held = sum(code.nbytes for code in self._codes.values())
            self.dictionary_peak = max(self.dictionary_peak, held)
            if held > self._dictionary_bytes:
                yield from self.empty()
                for code in self._codes.values():
                    code.forget()

    def empty(self) -> Iterator[pa.RecordBatch]:
        """All that is in the tables leaves, the finer ones first; an epoch ends."""
        for table in (t for root in self._roots for t in root.walk()):
            if id(table) in self._tables:
                yield from self._leave(table, self._tables[id(table)].emptied())

    def _open(self, schema: pa.Schema) -> None:
        tables = [table for root in self._roots for table in root.walk()]
        for name in dict.fromkeys(name for table in tables for name in table.attributes):
            self._codes[name] = code_for(schema.field(name))
        widths = {name: code.width for name, code in self._codes.items()}
        self._tables = {id(table): _Table(table, widths) for table in tables}

    def _throw(self, table: CascadeTable, entries: Entries) -> Iterator[pa.RecordBatch]:
        self.probes += len(entries)
        yield from self._leave(table, self._tables[id(table)].throw(entries))

    def _leave(self, table: CascadeTable, left: Entries) -> Iterator[pa.RecordBatch]:
        if not len(left):
            return
        mine = self._tables[id(table)]
        for out in table.outs:
            self.evictions += len(left)
            yield self._sent(mine, out, left)
        for child in table.children:
            yield from self._throw(child, mine.for_child(self._tables[id(child)], left))

    def _sent(self, table: _Table, out: Out, left: Entries) -> pa.RecordBatch:
        arrays = []
        for field in self._schema:
            if field.name == "feed":
                array = pa.array(np.full(len(left), out.feed, np.int32))
            elif field.name in out.attributes:
                name = out.attributes[field.name]
                array = self._codes[name].decode(left.keys[:, table.places[name]])
            elif field.name in out.slots:
                array = table.column(out.slots[field.name], left, field.type)
            else:
                array = pa.nulls(len(left), field.type)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class _Table:
    """The arrays of one table."""

    def __init__(self, spec: CascadeTable, widths: Mapping[str, int]) -> None:
        self.places: dict[str, slice] = {}
        width = 0
        for name in spec.attributes:
            self.places[name] = slice(width, width + widths[name])
            width += widths[name]
        self._longs = [slot for slot in spec.slots if not slot.real]
        self._floats = [slot for slot in spec.slots if slot.real]
        self._ops = [np.array([s.operation for s in some], np.int64) for some in (self._longs, self._floats)]
        slots = len(self._longs) + len(self._floats)
        self._held = Entries(
            np.zeros((spec.buckets, width), np.int64),
            np.zeros((spec.buckets, len(self._longs)), np.int64),
            np.zeros((spec.buckets, len(self._floats)), np.float64),
            np.zeros((spec.buckets, slots), bool),
        )
        self._used = np.zeros(spec.buckets, bool)

    @property
    def nbytes(self) -> int:
        held = self._held
        return held.keys.nbytes + held.longs.nbytes + held.floats.nbytes + held.valid.nbytes + self._used.nbytes

    def lifted(self, keys: NDArray[np.int64], rows: pa.RecordBatch) -> Entries:
        """Each row as a partial of its own."""
        longs = np.zeros((rows.num_rows, len(self._longs)), np.int64)
        floats = np.zeros((rows.num_rows, len(self._floats)), np.float64)
        valid = np.ones((rows.num_rows, len(self._longs) + len(self._floats)), bool)
        for place, slot in enumerate((*self._longs, *self._floats)):
            column = None if slot.argument is None else rows.column(slot.argument)
            if slot.real:
                assert column is not None
                floats[:, place - len(self._longs)] = numbers(column, np.float64)
            elif column is None:
                longs[:, place] = 1
            else:
                longs[:, place] = numbers(column, np.int64)
            if column is not None and column.null_count:
                valid[:, place] = column.is_valid().to_numpy(zero_copy_only=False)
        return Entries(np.ascontiguousarray(keys), longs, floats, valid)

    def throw(self, rows: Entries) -> Entries:
        held = self._held
        left = throw_in(
            rows.keys, rows.longs, rows.floats, rows.valid, *self._ops,
            held.keys, held.longs, held.floats, held.valid, self._used,
        )  # fmt: skip
        return rows.first(left)

    def emptied(self) -> Entries:
        there = np.flatnonzero(self._used)
        self._used[:] = False
        held = self._held
        return Entries(held.keys[there], held.longs[there], held.floats[there], held.valid[there])

    def for_child(self, child: _Table, left: Entries) -> Entries:
        """The child's columns of what leaves; copies, for each child writes over its own."""
        keys = np.column_stack([left.keys[:, self.places[name]] for name in child.places])
        longs = [self._longs.index(slot) for slot in child._longs]
        floats = [self._floats.index(slot) for slot in child._floats]
        valid = [*longs, *(len(self._longs) + f for f in floats)]
        return Entries(
            np.ascontiguousarray(keys),
            np.ascontiguousarray(left.longs[:, longs]),
            np.ascontiguousarray(left.floats[:, floats]),
            np.ascontiguousarray(left.valid[:, valid]),
        )

    def column(self, slot: Slot, left: Entries, type_: pa.DataType) -> pa.Array:
        if slot.real:
            place = self._floats.index(slot)
            values: Any = np.ascontiguousarray(left.floats[:, place])
            valid = left.valid[:, len(self._longs) + place]
        else:
            place = self._longs.index(slot)
            values, valid = np.ascontiguousarray(left.longs[:, place]), left.valid[:, place]
        array = pa.array(values, mask=None if valid.all() else ~valid)
        return typed(array, type_)
