"""Combining runs of partials: a component's columns, prepared once, answer any number of `[lo, hi)` ranges.

The result is a partial again, so the same code folds slices into coarser slices and slices into windows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernels import Technique, fallback, plain, prefix_answers, prefix_sums, technique
from weft.model import RunError

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

Serving = Mapping[str, str]
"""The technique for each operator; operators that are missing use `fallback`."""


NOTHING_CHOSEN: Serving = {}


class SumOverflow(RunError):
    """A sum that its type cannot hold."""


class Combiner(ABC):
    """`columns` are the partials of one component, in the order of group and slice."""

    def __init__(self, columns: tuple[pa.Array, ...], serving: Serving) -> None:
        self.columns = columns
        self.serving = serving

    @abstractmethod
    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        """The component over the partials `lo[i]:hi[i]`, for each i; every range holds at least one.

        Neither lo nor hi ever decreases, as for the windows of one query over all groups.
        """

    def null(self, lo: Longs, hi: Longs) -> Mask | None:
        """Which ranges have no value in any partial; None: every partial has a value."""
        if self._valid_prefix is None:
            return None
        empty: Mask = range_sums(self._valid_prefix, lo, hi) == 0
        return empty

    def prepared(self, operator: str, values: Any) -> PreparedColumn:
        return PreparedColumn(technique(self.serving.get(operator) or fallback(operator), operator), values)

    @cached_property
    def _valid_prefix(self) -> Longs | None:
        column = self.columns[0]
        return prefix_sums(to_numpy_array(column.is_valid()).astype(np.int64)) if column.null_count else None


class PreparedColumn:
    """A column with the tables that a technique builds from it, once for all queries."""

    def __init__(self, technique: Technique, values: Any) -> None:
        self._technique = technique
        self._values = values

    @cached_property
    def _tables(self) -> Any:
        return self._technique.build(self._values, len(self._values))

    def answer(self, lo: Longs, hi: Longs, out: Any) -> Any:
        self._technique.answer(self._tables, lo, hi, out)
        return out


def integers_behind(type_: pa.DataType) -> pa.DataType:
    return pa.int32() if type_.bit_width == 32 else pa.int64()


def without_nulls(column: pa.Array) -> pa.Array:
    """The numbers with 0 for NULL; temporal values as their integers."""
    if pa.types.is_temporal(column.type):
        column = column.view(integers_behind(column.type))
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return pc.fill_null(column, 0) if column.null_count else column


def to_numpy_array(column: Any) -> Any:
    """A writable array for kernels: for a read-only view of Arrow memory, each kernel would be compiled once more."""
    array = column.to_numpy(zero_copy_only=False)
    return plain(array, array.dtype)


def range_sums(prefix: Longs, lo: Longs, hi: Longs) -> Longs:
    out = np.empty(len(lo), np.int64)
    prefix_answers(prefix, lo, hi, out)
    return out
