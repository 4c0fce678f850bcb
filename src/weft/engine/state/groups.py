"""Groups of a bucket as dense numbers: partials hold the number, and the keys are stored once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ids = npt.NDArray[np.int32]


class GroupIndex:
    """Numbers groups in the order of first occurrence; append-only, so that older states stay valid.

    Equality is Spark's: NULL equals NULL and NaN equals NaN (Spark itself has already made -0.0 into 0.0).
    """

    def __init__(self, fields: tuple[pa.Field, ...]) -> None:
        self.fields = fields
        self._chunks: list[list[pa.Array]] = [[] for _ in fields]
        self._columns: list[pa.Array] | None = None
        self._ids: dict[Any, int] | None = None
        """By key, from the second call of `number` on: a bounded table has only one call, and needs no lookup."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def number(self, columns: list[pa.Array], rows: int) -> Ids:
        """The group number of each row; new groups get the next numbers."""
        if rows == 0:
            return np.empty(0, np.int32)
        codes, first = _combine([_codes(c) for c in columns], rows)
        distinct = [_decoded(c.take(pa.array(first))) for c in columns]
        if not self._count:
            self._add(distinct, len(first))
            return codes.astype(np.int32)
        if self._ids is None:
            self._ids = {key: i for i, key in enumerate(_keys(self.columns))}
        numbers = np.empty(len(first), np.int32)
        fresh: list[int] = []
        for i, key in enumerate(_keys(distinct)):
            number = self._ids.get(key)
            if number is None:
                number = self._ids[key] = len(self._ids)
                fresh.append(i)
            numbers[i] = number
        if fresh:
            self._add([column.take(pa.array(fresh)) for column in distinct], len(fresh))
        return numbers[codes]

    def _add(self, columns: list[pa.Array], groups: int) -> None:
        for chunks, column in zip(self._chunks, columns, strict=True):
            chunks.append(column)
        self._columns = None
        self._count += groups

    @property
    def columns(self) -> list[pa.Array]:
        """The key columns, one row per group."""
        if self._columns is None:
            self._columns = [
                pa.concat_arrays(chunks) if chunks else pa.array([], field.type)
                for chunks, field in zip(self._chunks, self.fields, strict=True)
            ]
            self._chunks = [[column] for column in self._columns]
        return self._columns

    def keys_of(self, groups: Ids) -> list[pa.Array]:
        """The key columns of these groups, as dictionaries if that saves copying."""
        if len(groups) < 2 * len(self):
            order = pa.array(groups)
            return [column.take(order) for column in self.columns]
        return [_dictionary(groups, column) for column in self.columns]


def _dictionary(groups: Ids, column: pa.Array) -> pa.Array:
    if pa.types.is_nested(column.type):
        return column.take(pa.array(groups))
    if not column.null_count:
        return pa.DictionaryArray.from_arrays(pa.array(groups), column)
    # A NULL key must be a NULL index: Parquet cannot write a NULL inside a dictionary.
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    positions = (np.cumsum(valid) - 1).astype(np.int32)  # among the valid keys
    return pa.DictionaryArray.from_arrays(pa.array(positions[groups], mask=~valid[groups]), column.drop_null())


def _codes(column: pa.Array) -> tuple[npt.NDArray[np.int64], int]:
    """A number for each row, equal for equal values, and how many distinct values there are."""
    if pa.types.is_dictionary(column.type):
        codes, count = _codes(pa.concat_arrays([column.dictionary, pa.nulls(1, column.type.value_type)]))
        indices = column.indices.fill_null(len(column.dictionary)).to_numpy(zero_copy_only=False)
        return codes[indices], count
    if pa.types.is_nested(column.type):
        code_of: dict[Any, int] = {}
        codes = np.fromiter((code_of.setdefault(v, len(code_of)) for v in _hashable(column)), np.int64, len(column))
        return codes, len(code_of)
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _combine(parts: list[tuple[npt.NDArray[np.int64], int]], rows: int) -> tuple[npt.NDArray[np.int64], Any]:
    """One code per row from the codes of its columns, and the first row that has each code."""
    codes = np.zeros(rows, np.int64)
    count = 1
    for column, distinct in parts:
        # Dense again after each column: the product of two counts of at most `rows` never exceeds 2**63.
        mixed = pa.array(codes * distinct + column).dictionary_encode()
        codes = mixed.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        count = len(mixed.dictionary)
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(rows - 1, -1, -1)
    return codes, first


def _keys(columns: list[pa.Array]) -> list[Any]:
    """One hashable value per group; without keys there is one group."""
    return list(zip(*map(_hashable, columns), strict=True)) if columns else [()]


def _hashable(column: pa.Array) -> list[Any]:
    """Values that Python can hash, NaN equal to NaN."""
    if pa.types.is_temporal(column.type) and not pa.types.is_interval(column.type):
        width = pa.int32() if column.type.bit_width == 32 else pa.int64()
        return column.view(width).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_floating(column.type):
        nan = pc.is_nan(column).fill_null(False).to_pylist()
        return ["nan" if n else v for n, v in zip(nan, column.to_pylist(), strict=True)]
    values = column.to_pylist()
    return [_freeze(v) for v in values] if pa.types.is_nested(column.type) else values


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((k, _freeze(v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return tuple(_freeze(v) for v in value)
    return "nan" if isinstance(value, float) and value != value else value
