"""Sums of integers, floats and decimals."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.engine.combine.base import (
    NOTHING_CHOSEN,
    Combiner,
    Longs,
    Mask,
    PreparedColumn,
    Serving,
    SumOverflow,
    range_sums,
    to_numpy_array,
    without_nulls,
)
from weft.engine.project.decimals import from_limb_sums, limbs
from weft.kernels import prefix_sums


class Sums(Combiner):
    """Integers, and durations as integers: removing is exact.

    Sums are modulo 2**64, whatever the technique: that is what Spark gives without ANSI mode. In ANSI mode a sum that
    leaves 64 bits raises.
    """

    def __init__(self, columns: tuple[pa.Array, ...], serving: Serving, *, ansi: bool = True) -> None:
        super().__init__(columns, serving)
        self._ansi = ansi

    @cached_property
    def _values(self) -> Longs:
        return to_numpy_array(without_nulls(self.columns[0])).astype(np.int64, copy=False)  # type: ignore[no-any-return]

    @cached_property
    def _prepared(self) -> PreparedColumn:
        return self.prepared("int_sum", self._values)

    @cached_property
    def _may_overflow(self) -> bool:
        return float(np.abs(self._values.astype(np.float64)).sum()) >= 2.0**62

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        total = self._prepared.answer(lo, hi, np.empty(len(lo), np.int64))
        if self._ansi and self._may_overflow:
            floats = FloatSums((pa.array(self._values.astype(np.float64)),), NOTHING_CHOSEN).combine(lo, hi)[0]
            if (np.abs(to_numpy_array(floats) - total) > 2.0**60).any():
                raise SumOverflow(
                    "a sum of integers leaves the range of its type; "
                    "sum a DOUBLE or a DECIMAL instead: sum(CAST(x AS DECIMAL(38,0)))"
                )
        return (pa.array(total, mask=self.null(lo, hi)).view(self.columns[0].type),)


class FloatSums(Combiner):
    """Floats are never subtracted, so a partial that has left the window does not change the result."""

    @cached_property
    def _prepared(self) -> PreparedColumn:
        return self.prepared("float_sum", to_numpy_array(without_nulls(self.columns[0])))

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        out = self._prepared.answer(lo, hi, np.empty(len(lo), np.float64))
        return (pa.array(out, mask=self.null(lo, hi)),)


class DecimalSums(Combiner):
    """A decimal is four limbs of 32 bits; sums of limbs are exact integers, so prefix sums serve every range."""

    @cached_property
    def _prefixes(self) -> list[Longs]:
        return [prefix_sums(limb) for limb in limbs(self.columns[0])]

    def totals(self, lo: Longs, hi: Longs) -> tuple[pa.Array, Mask]:
        """The sums, and which of them their type cannot hold; those are NULL."""
        null = self.null(lo, hi)
        sums = [range_sums(prefix, lo, hi) for prefix in self._prefixes]
        return from_limb_sums(sums, None if null is None else ~null, self.columns[0].type)

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        total, too_wide = self.totals(lo, hi)
        if too_wide.any():
            raise SumOverflow(
                f"a sum of decimals leaves the range of {self.columns[0].type}; sum a DOUBLE: sum(CAST(x AS DOUBLE))"
            )
        return (total,)


class SumsOrNull(DecimalSums):
    """Decimals without ANSI mode. The second column says which sums have overflowed: all sums over them are NULL.

    Without it the NULL of a slice that overflowed would look like the NULL of a slice without values.
    """

    @cached_property
    def _overflowed(self) -> Longs:
        flags: Longs = prefix_sums(to_numpy_array(self.columns[1]).astype(np.int64))
        return flags

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        total, too_wide = self.totals(lo, hi)
        overflowed = pa.array(too_wide | (range_sums(self._overflowed, lo, hi) > 0))
        return pc.if_else(overflowed, pa.scalar(None, total.type), total), overflowed
