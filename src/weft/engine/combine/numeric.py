"""Combining runs of partials: one component's columns, prepared once, answer any number of `[lo, hi)` ranges.

What comes out is a partial again, so the same code folds slices into coarser slices and slices into windows.
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

from weft.aggregates import USERS
from weft.engine.project.decimals import from_limb_sums, limbs
from weft.kernels import (
    NO_VALUE,
    Technique,
    fallback,
    float_keys,
    key_floats,
    plain,
    prefix_answers,
    prefix_sums,
    technique,
)
from weft.kernels.techniques.user import user_blocks
from weft.model import RunError

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

Serving = Mapping[str, str]
"""The technique for each operator; those that are not named have one of weft's own."""


NOTHING_CHOSEN: Serving = {}


class SumOverflow(RunError):
    """A sum that its type cannot hold."""


class Ranges(ABC):
    """`columns` are the partials of one component, in the order of group and slice."""

    def __init__(self, columns: tuple[pa.Array, ...], serving: Serving) -> None:
        self.columns = columns
        self.serving = serving

    @abstractmethod
    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        """The component over the partials `lo[i]:hi[i]`, for each i; every range holds at least one.

        Neither lo nor hi ever falls: the windows of one query do so over all groups.
        """

    def null(self, lo: Longs, hi: Longs) -> Mask | None:
        """Where none of a range's partials has a value; None where that cannot be."""
        if self._valid_prefix is None:
            return None
        empty: Mask = _sums(self._valid_prefix, lo, hi) == 0
        return empty

    def tabled(self, operator: str, values: Any) -> Tabled:
        return Tabled(technique(self.serving.get(operator) or fallback(operator), operator), values)

    @cached_property
    def _valid_prefix(self) -> Longs | None:
        column = self.columns[0]
        return prefix_sums(_numpy(column.is_valid()).astype(np.int64)) if column.null_count else None


class Tabled:
    """A column with the tables that a technique made of it, once for all queries."""

    def __init__(self, technique: Technique, values: Any) -> None:
        self._technique = technique
        self._values = values

    @cached_property
    def _tables(self) -> Any:
        return self._technique.build(self._values, len(self._values))

    def answer(self, lo: Longs, hi: Longs, out: Any) -> Any:
        self._technique.answer(self._tables, lo, hi, out)
        return out


class Sums(Ranges):
    """Integers, and durations as integers: removing is exact."""

    @cached_property
    def _values(self) -> Longs:
        return _numpy(_plain(self.columns[0])).astype(np.int64, copy=False)  # type: ignore[no-any-return]

    @cached_property
    def _table(self) -> Tabled:
        return self.tabled("int_sum", self._values)

    @cached_property
    def _may_overflow(self) -> bool:
        return float(np.abs(self._values.astype(np.float64)).sum()) >= 2.0**62

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        total = self._table.answer(lo, hi, np.empty(len(lo), np.int64))
        if self._may_overflow:
            floats = FloatSums((pa.array(self._values.astype(np.float64)),), NOTHING_CHOSEN).combine(lo, hi)[0]
            if (np.abs(_numpy(floats) - total) > 2.0**60).any():
                raise SumOverflow(
                    "a sum of integers leaves the range of its type; "
                    "sum a DOUBLE or a DECIMAL instead: sum(CAST(x AS DECIMAL(38,0)))"
                )
        return (pa.array(total, mask=self.null(lo, hi)).view(self.columns[0].type),)


class FloatSums(Ranges):
    """Floats are never subtracted: what has left the window leaves no trace."""

    @cached_property
    def _table(self) -> Tabled:
        return self.tabled("float_sum", _numpy(_plain(self.columns[0])))

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        out = self._table.answer(lo, hi, np.empty(len(lo), np.float64))
        return (pa.array(out, mask=self.null(lo, hi)),)


class DecimalSums(Ranges):
    """A decimal is four limbs of 32 bits; the sums of limbs are exact integers, whatever the technique."""

    @cached_property
    def _prefixes(self) -> list[Longs]:
        return [prefix_sums(limb) for limb in limbs(self.columns[0])]

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        null = self.null(lo, hi)
        sums = [_sums(prefix, lo, hi) for prefix in self._prefixes]
        total, too_wide = from_limb_sums(sums, None if null is None else ~null, self.columns[0].type)
        if too_wide.any():
            raise SumOverflow(
                f"a sum of decimals leaves the range of {self.columns[0].type}; "
                "sum a wider type: sum(CAST(x AS DECIMAL(38,s)))"
            )
        return (total,)


class Extremes(Ranges):
    """The greatest or least of numbers and times: an integer each, and back again."""

    def __init__(self, columns: tuple[pa.Array, ...], serving: Serving, *, greatest: bool) -> None:
        super().__init__(columns, serving)
        self._turned = not greatest

    @cached_property
    def _table(self) -> Tabled:
        column = self.columns[0]
        values = _numpy(_plain(column))
        if pa.types.is_floating(column.type):
            keys = float_keys(values.astype(np.float64, copy=False), self._turned)
        else:
            keys = ~values.astype(np.int64) if self._turned else values.astype(np.int64, copy=False)
        if column.null_count:
            keys = np.where(_numpy(column.is_null()), NO_VALUE, keys)  # below all: loses, or ties with its equal
        return self.tabled("max", keys)

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        type_ = self.columns[0].type
        keys = self._table.answer(lo, hi, np.empty(len(lo), np.int64))
        if pa.types.is_floating(type_):
            return (pa.array(key_floats(keys, self._turned), mask=self.null(lo, hi)).cast(type_),)
        values = ~keys if self._turned else keys
        null = self.null(lo, hi)
        if null is not None:
            values = np.where(null, 0, values)  # what stands where nothing is need not fit the type
        whole = pa.array(values, mask=null)
        if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
            return (whole.cast(type_),)
        return (whole.cast(_integers_behind(type_)).view(type_),)


class Choices(Ranges):
    """The selective family: the ordering decides, and every column follows the winner's place."""

    def __init__(self, columns: tuple[pa.Array, ...], serving: Serving, *, greatest: bool) -> None:
        super().__init__(columns, serving)
        self._greatest = greatest

    @cached_property
    def _table(self) -> Tabled:
        # Ties go to the earlier partial for `min_by` and to the later for `max_by`: first and last in time.
        keys = order_keys(self.columns[0], greatest=self._greatest)
        return self.tabled("argmax_last" if self._greatest else "argmax_first", keys)

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        winners = self._table.answer(lo, hi, np.empty(len(lo), np.int64))
        indices = pa.array(winners, mask=winners < 0 if self.columns[0].null_count else None)
        return tuple(column.take(indices) for column in self.columns)


class Bits(Ranges):
    def __init__(self, columns: tuple[pa.Array, ...], serving: Serving, kind: str) -> None:
        super().__init__(columns, serving)
        self._kind = kind

    @cached_property
    def _table(self) -> Tabled:
        identity = -1 if self._kind == "bit_and" else 0
        values = _numpy(pc.fill_null(self.columns[0].cast(pa.int64()), identity))
        return self.tabled(self._kind, values)

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        out = self._table.answer(lo, hi, np.empty(len(lo), np.int64))
        return (pa.array(out, mask=self.null(lo, hi)).cast(self.columns[0].type),)


class Rows(Ranges):
    """Several numbers that combine together, never NULL: moments and comoments, and what users define."""

    def __init__(self, columns: tuple[pa.Array, ...], serving: Serving, kind: str) -> None:
        super().__init__(columns, serving)
        self._kind = kind

    @cached_property
    def _table(self) -> Tabled:
        rows = np.ascontiguousarray(np.column_stack([_numpy(c) for c in self.columns]))
        if self._kind in USERS:
            return Tabled(user_blocks(USERS[self._kind]), rows)
        return self.tabled(self._kind, rows)

    def combine(self, lo: Longs, hi: Longs) -> tuple[pa.Array, ...]:
        out = self._table.answer(lo, hi, np.empty((len(lo), len(self.columns)), np.float64))
        return tuple(pa.array(np.ascontiguousarray(column)) for column in out.T)


def absorb_numbers(kind: str, columns: tuple[pa.Array, ...]) -> tuple[pa.Array, ...]:
    """What Spark's native aggregates say of a slice, as a partial that combines.

    Variance, skewness and kurtosis are NULL or undefined where there is too little to see; the moments are then 0.
    What a user's aggregate lifts to NULL is its identity.
    """
    if kind in USERS:
        filled = zip(columns, USERS[kind].identity, strict=True)
        return tuple(pc.fill_null(c.cast(pa.float64(), safe=False), float(identity)) for c, identity in filled)
    if not (kind.startswith("moments") or kind == "comoments"):
        return columns
    raw = [_numpy(pc.fill_null(c.cast(pa.float64()), 0.0)) for c in columns]
    n = raw[0]
    if kind == "comoments":
        moments = [n, raw[1], raw[2], raw[3] * n, raw[4] * n, raw[5] * n]
    else:
        m2 = raw[2] * n
        moments = [n, raw[1], m2]
        with np.errstate(divide="ignore", invalid="ignore"):
            if len(raw) > 3:
                moments.append(np.where(m2 == 0, 0.0, raw[3] * np.sqrt(m2 * m2 * m2 / n)))
            if len(raw) > 4:
                moments.append(np.where(m2 == 0, 0.0, (raw[4] + 3.0) * m2 * m2 / n))
    return tuple(pa.array(m) for m in moments)


def order_keys(column: pa.Array, *, greatest: bool) -> Longs:
    """Integers in the order of the values, turned round for the least; NULL is NO_VALUE, below every other."""
    keys = _ascending(column)
    if len(keys) and (keys.min() <= NO_VALUE + 1 or keys.max() >= -NO_VALUE - 2):
        keys = _ranks(column)  # the values reach the ends of int64, where NO_VALUE must stand alone
    if not greatest:
        keys = ~keys
    if column.null_count:
        keys = np.where(_numpy(column.is_null()), NO_VALUE, keys)
    return np.ascontiguousarray(keys)


def _ascending(column: pa.Array) -> Longs:
    type_ = column.type
    if pa.types.is_floating(type_):
        # Adding 0.0 makes -0.0 into 0.0; the bits of a float ascend with it once the negative ones are turned round.
        values = _numpy(_plain(column)).astype(np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        bits = values.view(np.int64)
        ascending: Longs = np.where(bits >= 0, bits, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF))
        return ascending
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_temporal(type_):
        return _numpy(_plain(column)).astype(np.int64)  # type: ignore[no-any-return]
    return _ranks(column)


def _ranks(column: pa.Array) -> Longs:
    """Places in the sorted order; strings and binaries by their bytes, as Spark compares them."""
    return _numpy(pc.rank(column, tiebreaker="dense")).astype(np.int64)  # type: ignore[no-any-return]


def is_number(type_: pa.DataType) -> bool:
    """Numbers and times that an int64 holds in their order."""
    exact = pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_temporal(type_)
    return bool(pa.types.is_floating(type_) or exact)


def _integers_behind(type_: pa.DataType) -> pa.DataType:
    return pa.int32() if type_.bit_width == 32 else pa.int64()


def _plain(column: pa.Array) -> pa.Array:
    """Numbers without NULLs, temporal values as the integers behind them."""
    if pa.types.is_temporal(column.type):
        column = column.view(_integers_behind(column.type))
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return pc.fill_null(column, 0) if column.null_count else column


def _numpy(column: Any) -> Any:
    """As kernels take it: a view of Arrow's memory is read-only, and each kernel would be compiled once more for it."""
    array = column.to_numpy(zero_copy_only=False)
    return plain(array, array.dtype)


def _sums(prefix: Longs, lo: Longs, hi: Longs) -> Longs:
    out = np.empty(len(lo), np.int64)
    prefix_answers(prefix, lo, hi, out)
    return out
