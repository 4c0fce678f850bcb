"""Operators: how techniques read, combine and write the partials of an aggregate.

The functions are plain Python that numba also compiles. A technique closes over them and over the operator's edition.
Names and edition are the same in every process, so each process finds the code that an earlier one compiled to disk.

An element is a scalar, or a tuple that is one row of a two-dimensional table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from weft.aggregates.kind import FOLD, Algebra
from weft.aggregates.operators import ALGEBRAS

Column = NDArray[Any]
Row = tuple[float, ...]

NO_VALUE: int = int(np.iinfo(np.int64).min)
"""The key of a partial without a value."""


# With unsigned positions numba does not check for negative indices: this saves a quarter of the time of an answer.


@register_jitable
def load(table: Column, i: int) -> Any:
    return table[np.uint64(i)]


@register_jitable
def store(table: Column, i: int, element: Any) -> None:
    table[np.uint64(i)] = element


@register_jitable
def keep(values: Column, element: Any) -> Any:
    return element


@register_jitable
def add(values: Column, older: float, newer: float) -> float:
    return older + newer


@register_jitable
def take_away(values: Column, whole: int, oldest: int) -> int:
    return whole - oldest


@register_jitable
def greater(values: Column, older: int, newer: int) -> int:
    return max(older, newer)


@register_jitable
def lesser(values: Column, older: int, newer: int) -> int:
    return min(older, newer)


@register_jitable
def both_bits(values: Column, older: int, newer: int) -> int:
    return older & newer


@register_jitable
def any_bits(values: Column, older: int, newer: int) -> int:
    return older | newer


@register_jitable
def odd_bits(values: Column, older: int, newer: int) -> int:
    return older ^ newer


@register_jitable
def position(keys: Column, i: int) -> int:
    return i


@register_jitable
def later_greatest(keys: Column, older: int, newer: int) -> int:
    return newer if keys[np.uint64(newer)] >= keys[np.uint64(older)] else older


@register_jitable
def earlier_greatest(keys: Column, older: int, newer: int) -> int:
    return newer if keys[np.uint64(newer)] > keys[np.uint64(older)] else older


@register_jitable
def chosen(keys: Column, winner: int) -> int:
    return -1 if keys[winner] == NO_VALUE else winner


@register_jitable
def store_row(table: Column, i: int, element: Row) -> None:
    for c in range(len(element)):
        table[i, c] = element[c]


@register_jitable
def load_3(table: Column, i: int) -> Row:
    return table[i, 0], table[i, 1], table[i, 2]


@register_jitable
def load_4(table: Column, i: int) -> Row:
    return table[i, 0], table[i, 1], table[i, 2], table[i, 3]


@register_jitable
def load_5(table: Column, i: int) -> Row:
    return table[i, 0], table[i, 1], table[i, 2], table[i, 3], table[i, 4]


@register_jitable
def load_6(table: Column, i: int) -> Row:
    return table[i, 0], table[i, 1], table[i, 2], table[i, 3], table[i, 4], table[i, 5]


@register_jitable
def merge_moments_2(values: Column, older: Row, newer: Row) -> Row:
    """(n, mean, m2), Chan, Golub and LeVeque 1979."""
    n_a, mean_a, m2_a = older
    n_b, mean_b, m2_b = newer
    if n_a == 0.0:
        return newer
    if n_b == 0.0:
        return older
    n = n_a + n_b
    delta = mean_b - mean_a
    step = delta / n
    return n, mean_a + step * n_b, m2_a + m2_b + delta * step * n_a * n_b


@register_jitable
def merge_moments_3(values: Column, older: Row, newer: Row) -> Row:
    """(n, mean, m2, m3), Pébay 2008."""
    n_a, mean_a, m2_a, m3_a = older
    n_b, mean_b, m2_b, m3_b = newer
    if n_a == 0.0:
        return newer
    if n_b == 0.0:
        return older
    n = n_a + n_b
    delta = mean_b - mean_a
    step = delta / n
    spread = delta * step * n_a * n_b
    m3 = m3_a + m3_b + spread * step * (n_a - n_b) + 3.0 * step * (n_a * m2_b - n_b * m2_a)
    return n, mean_a + step * n_b, m2_a + m2_b + spread, m3


@register_jitable
def merge_moments_4(values: Column, older: Row, newer: Row) -> Row:
    """(n, mean, m2, m3, m4), Pébay 2008."""
    n_a, mean_a, m2_a, m3_a, m4_a = older
    n_b, mean_b, m2_b, m3_b, m4_b = newer
    if n_a == 0.0:
        return newer
    if n_b == 0.0:
        return older
    n = n_a + n_b
    delta = mean_b - mean_a
    step = delta / n
    spread = delta * step * n_a * n_b
    m3 = m3_a + m3_b + spread * step * (n_a - n_b) + 3.0 * step * (n_a * m2_b - n_b * m2_a)
    m4 = (
        m4_a
        + m4_b
        + spread * step * step * (n_a * n_a - n_a * n_b + n_b * n_b)
        + 6.0 * step * step * (n_a * n_a * m2_b + n_b * n_b * m2_a)
        + 4.0 * step * (n_a * m3_b - n_b * m3_a)
    )
    return n, mean_a + step * n_b, m2_a + m2_b + spread, m3, m4


@register_jitable
def merge_comoments(values: Column, older: Row, newer: Row) -> Row:
    """(n, mean_x, mean_y, c_xy, m2_x, m2_y), Pébay 2008."""
    n_a, x_a, y_a, c_a, xx_a, yy_a = older
    n_b, x_b, y_b, c_b, xx_b, yy_b = newer
    if n_a == 0.0:
        return newer
    if n_b == 0.0:
        return older
    n = n_a + n_b
    dx, dy = x_b - x_a, y_b - y_a
    step_x, step_y = dx / n, dy / n
    weight = n_a * n_b
    return (
        n,
        x_a + step_x * n_b,
        y_a + step_y * n_b,
        c_a + c_b + dx * step_y * weight,
        xx_a + xx_b + dx * step_x * weight,
        yy_a + yy_b + dy * step_y * weight,
    )


@dataclass(frozen=True, slots=True)
class Operator:
    """An associative `combine(values, older, newer)`, and how its elements are read from tables and written to them.

    `lift(values, i)` makes an element from partial i, `lower(values, element)` an answer from an element. Invertible
    operators have an exact `remove(values, whole, oldest)`: `remove(combine(a, b), a) == b`.
    """

    combine: Callable[[Column, Any, Any], Any]
    lift: Callable[[Column, int], Any] = load
    load: Callable[[Column, int], Any] = load
    store: Callable[[Column, int, Any], None] = store
    lower: Callable[[Column, Any], Any] = keep
    algebra: Algebra = FOLD
    remove: Callable[[Column, Any, Any], Any] | None = None

    @property
    def edition(self) -> int:
        """A number that changes if a function is edited: by name alone, numba would load the old compiled code."""
        functions: tuple[Any, ...] = (self.combine, self.lift, self.load, self.store, self.lower, self.remove)
        return crc32(
            repr([(f.__code__.co_code, f.__code__.co_consts, f.__code__.co_names) for f in functions if f]).encode()
        )


def _rows(combine: Callable[[Column, Any, Any], Any], load_row: Callable[[Column, int], Row]) -> Operator:
    return Operator(combine, lift=load_row, load=load_row, store=store_row)


def _choice(combine: Callable[[Column, Any, Any], Any]) -> Operator:
    return Operator(combine, lift=position, lower=chosen)


_FUNCTIONS: Mapping[str, Operator] = {
    "int_sum": Operator(add, remove=take_away),
    "float_sum": Operator(add),
    "max": Operator(greater),
    "min": Operator(lesser),
    "bit_and": Operator(both_bits),
    "bit_or": Operator(any_bits),
    "bit_xor": Operator(odd_bits, remove=odd_bits),
    "argmax_last": _choice(later_greatest),
    "argmax_first": _choice(earlier_greatest),
    "moments_2": _rows(merge_moments_2, load_3),
    "moments_3": _rows(merge_moments_3, load_4),
    "moments_4": _rows(merge_moments_4, load_5),
    "comoments": _rows(merge_comoments, load_6),
}

OPERATORS: Mapping[str, Operator] = {
    name: replace(_FUNCTIONS[name], algebra=algebra) for name, algebra in ALGEBRAS.items()
}
"""Columns are int64, or float64 for float_sum; rows of moments and comoments are float64, n = 0 is the identity.

Sums of integers are modulo 2**64, so that removing is exact. `max` and `min` take keys that ascend with the values."""
