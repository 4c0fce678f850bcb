"""Users' aggregates as operators: a `combine` over tuples of doubles, compiled on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from numba import njit
from numba.extending import register_jitable

from weft.aggregates import UserAggregate
from weft.kernels.techniques.blocks import blocks
from weft.kernels.techniques.combine import Column, Operator, Row, load_3, load_4, load_5, load_6, store_row
from weft.kernels.techniques.technique import Technique


@register_jitable
def load_1(table: Column, i: int) -> Row:
    return (table[i, 0],)


@register_jitable
def load_2(table: Column, i: int) -> Row:
    return table[i, 0], table[i, 1]


LOADS: dict[int, Callable[[Column, int], Row]] = {
    1: load_1, 2: load_2, 3: load_3, 4: load_4, 5: load_5, 6: load_6,
}  # fmt: skip


@cache
def user_blocks(definition: type[UserAggregate]) -> Technique:
    """Blocks for a user's aggregate; cached, because a worker gets the same class again."""
    load, merge = LOADS[len(definition.lift)], njit(definition.combine)

    @register_jitable
    def combine(values: Column, older: Row, newer: Row) -> Row:
        return merge(older, newer)  # type: ignore[no-any-return]

    return blocks(Operator(combine, lift=load, load=load, store=store_row), f"user_{definition.__name__}")
