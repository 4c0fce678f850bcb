"""Key values as numbers that kernels compare, and back: the values themselves if they fit 64 bits, else codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from weft.engine.state.groups import GroupIndex

NULL_BEYOND = 1 << 40
"""The code of NULL for values of at most 32 bits."""

ENTRY = 160
"""Bytes per dictionary entry in addition to the value itself."""


def numbers(column: pa.Array, dtype: Any) -> NDArray[Any]:
    """The column as numbers, 0 for NULL: times and dates as their integers, decimals of 64 bits as unscaled values."""
    if pa.types.is_decimal(column.type):
        halves = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)
        low = halves[column.offset : column.offset + len(column), 0]
        return np.where(column.is_valid().to_numpy(zero_copy_only=False), low, 0)
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if column.null_count:
        column = pc.fill_null(column, 0)
    array: NDArray[Any] = column.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
    return array


def typed(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The inverse of `numbers`."""
    if pa.types.is_decimal(type_):
        low = array.fill_null(0).to_numpy()
        halves = np.ascontiguousarray(np.column_stack([low, low >> 63]))
        valid = array.is_valid() if array.null_count else None
        mask = None if valid is None else valid.buffers()[1]
        return pa.Array.from_buffers(type_, len(array), [mask, pa.py_buffer(halves)])
    if pa.types.is_temporal(type_):
        return array.cast(pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)
    return array.cast(type_)


class Code(ABC):
    """Encodes an attribute as `width` numbers, and decodes it."""

    width = 1
    nbytes = 0

    @abstractmethod
    def encode(self, column: pa.Array) -> NDArray[np.int64]: ...

    @abstractmethod
    def decode(self, codes: NDArray[np.int64]) -> pa.Array: ...

    def forget(self) -> None:  # noqa: B027
        """Drop the dictionary: no code is in use any more."""


class _Narrow(Code):
    """Values of at most 32 bits: the code of NULL is a larger number."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_

    def encode(self, column: pa.Array) -> NDArray[np.int64]:
        codes = numbers(column, np.int64)
        if column.null_count:
            codes = np.where(column.is_null().to_numpy(zero_copy_only=False), NULL_BEYOND, codes)
        return codes.reshape(-1, 1)

    def decode(self, codes: NDArray[np.int64]) -> pa.Array:
        null = codes[:, 0] == NULL_BEYOND
        return typed(pa.array(np.where(null, 0, codes[:, 0]), mask=null if null.any() else None), self._type)


class _Wide(Code):
    """Values of 64 bits: a second number says whether the value is NULL."""

    width = 2

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_

    def encode(self, column: pa.Array) -> NDArray[np.int64]:
        if pa.types.is_floating(column.type):
            values = numbers(column, np.float64).view(np.int64)
        else:
            values = numbers(column, np.int64)
        return np.column_stack([values, column.is_null().to_numpy(zero_copy_only=False)])

    def decode(self, codes: NDArray[np.int64]) -> pa.Array:
        null = codes[:, 1] != 0
        values: Any = np.ascontiguousarray(codes[:, 0])
        if pa.types.is_floating(self._type):
            values = values.view(np.float64)
        return typed(pa.array(values, mask=null if null.any() else None), self._type)


class _Interned(Code):
    """Values of any type, numbered in the order of first occurrence."""

    def __init__(self, field: pa.Field) -> None:
        self._field = field
        self.forget()

    def forget(self) -> None:
        self._index = GroupIndex((self._field,))
        self.nbytes = 0

    def encode(self, column: pa.Array) -> NDArray[np.int64]:
        before = len(self._index)
        codes = self._index.number([column], len(column)).astype(np.int64).reshape(-1, 1)
        self.nbytes += (len(self._index) - before) * (ENTRY + column.nbytes // max(1, len(column)))
        return codes

    def decode(self, codes: NDArray[np.int64]) -> pa.Array:
        return self._index.columns[0].take(pa.array(np.ascontiguousarray(codes[:, 0])))


def code_for(field: pa.Field) -> Code:
    """How a column of this type is encoded."""
    type_ = field.type
    exact = pa.types.is_integer(type_) or pa.types.is_temporal(type_) or pa.types.is_boolean(type_)
    if exact and not pa.types.is_interval(type_):
        return _Narrow(type_) if pa.types.is_boolean(type_) or type_.bit_width <= 32 else _Wide(type_)
    return _Wide(type_) if pa.types.is_floating(type_) else _Interned(field)
