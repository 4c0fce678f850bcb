"""Bitwise aggregates of integers, and rows of several numbers that combine together."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.aggregates.combining import Bitwise, Compiled, Vector
from weft.engine.combine.base import Combiner, Longs, PreparedColumn, Serving, to_numpy_array
from weft.kernels.techniques.user import user_blocks

Columns = tuple[pa.Array, ...]


class Bits(Combiner):
    def __init__(self, columns: Columns, serving: Serving, how: Bitwise) -> None:
        super().__init__(columns, serving)
        self._how = how

    @cached_property
    def _prepared(self) -> PreparedColumn:
        values = to_numpy_array(pc.fill_null(self.columns[0].cast(pa.int64()), self._how.identity))
        return self.prepared(self._how.operator, values)

    def combine(self, lo: Longs, hi: Longs) -> Columns:
        out = self._prepared.answer(lo, hi, np.empty(len(lo), np.int64))
        return (pa.array(out, mask=self.null(lo, hi)).cast(self.columns[0].type),)


class Vectors(Combiner):
    """Several numbers that combine together, never NULL: moments and comoments, and users' partials."""

    def __init__(self, columns: Columns, serving: Serving, how: Vector | Compiled) -> None:
        super().__init__(columns, serving)
        self._how = how

    @cached_property
    def _prepared(self) -> PreparedColumn:
        rows = np.ascontiguousarray(np.column_stack([to_numpy_array(c) for c in self.columns]))
        if isinstance(self._how, Compiled):
            return PreparedColumn(user_blocks(self._how.definition), rows)
        return self.prepared(self._how.operator, rows)

    def combine(self, lo: Longs, hi: Longs) -> Columns:
        out = self._prepared.answer(lo, hi, np.empty((len(lo), len(self.columns)), np.float64))
        return tuple(pa.array(np.ascontiguousarray(column)) for column in out.T)


def vector_from_spark(how: Vector, columns: Columns) -> Columns:
    """Spark's aggregates as a partial that combines. An aggregate of too few values is NULL, and becomes 0."""
    raw: list[Any] = [to_numpy_array(pc.fill_null(c.cast(pa.float64()), 0.0)) for c in columns]
    with np.errstate(over="ignore"):  # values around 1e308 have infinite variances, as in Spark
        return tuple(map(pa.array, how.from_spark(*raw)))


def identity_for_null(how: Compiled, columns: Columns) -> Columns:
    """A user's partial is its identity where Spark's aggregate is NULL."""
    filled = zip(columns, how.definition.identity, strict=True)
    return tuple(pc.fill_null(c.cast(pa.float64(), safe=False), float(identity)) for c, identity in filled)
