"""Blocks: constant time per answer for any associative operator, without subtraction.

Partials are in blocks of 16. For every partial, `suffix` holds the aggregate up to the end of its block, and `prefix`
that from the begin of its block. A range over several blocks is suffix, whole blocks, prefix. The aggregate of whole
blocks i..j comes from `levels`, a disjoint sparse table over block totals:

    level h < top   spans of 2**h blocks: from i to the end of its span if bit h of i is 0, else from its begin to i
    level top       spans of 2**top blocks: from i to the end of its span
    level top + 1   spans of 2**top blocks: from the begin of its span to i

If the highest bit in which i and j differ is h < top, they are left and right of the middle of a span of 2**(h + 1):
two reads. If they differ in a higher bit, at most one border of spans of 2**top is between them, because top depends on
the longest range: again two reads. Each aggregate that is read lies within the range, so a NaN, an infinity or 1e16
that has left the window has no effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from weft.kernels.techniques.combine import OPERATORS, Column, Operator
from weft.kernels.techniques.technique import Tables, Technique, labelled

BITS = 4
BLOCK = 1 << BITS


@intrinsic
def highest_bit(typing_context: Any, value: Any) -> Any:
    """The number of the highest bit of a positive int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zeros = builder.ctlz(arguments[0], cgutils.true_bit)  # true: the count for 0 is undefined
        return builder.sub(context.get_constant(types.int64, 63), zeros)

    return types.int64(types.int64), generate


@njit(cache=True, nogil=True)
def top_level(longest: int) -> int:
    """The smallest top whose spans are no shorter than the whole blocks inside any range of `longest` partials."""
    whole_blocks = (longest - 2) >> BITS  # at least one partial is in the first block, and one in the last
    return 0 if whole_blocks < 2 else highest_bit(whole_blocks - 1) + 1


def blocks(operator: Operator, label: str) -> Technique:
    """Blocks for one operator, kept on disk under the label."""
    lift, combine, lower = operator.lift, operator.combine, operator.lower
    load, store, edition = operator.load, operator.store, operator.edition

    def build_blocks(values: Column, longest: int) -> Tables:
        """The tables (values, prefix, suffix, levels).

        requires  no later range is longer than `longest`
        cost      2 + log2(longest) / 16 combinations per partial
        space     2 + log2(longest) / 16 columns
        """
        _ = edition
        n = len(values)
        count = (n + BLOCK - 1) >> BITS
        top = top_level(longest)
        prefix = np.empty_like(values)
        suffix = np.empty_like(values)
        levels = np.empty(((top + 2) * count, *values.shape[1:]), values.dtype)
        for block in range(count):
            first, last = block << BITS, min((block + 1) << BITS, n) - 1
            element = lift(values, first)
            store(prefix, first, element)
            for p in range(first + 1, last + 1):
                element = combine(values, element, lift(values, p))
                store(prefix, p, element)
            element = lift(values, last)
            store(suffix, last, element)
            for p in range(last - 1, first - 1, -1):
                element = combine(values, lift(values, p), element)
                store(suffix, p, element)
        for level in range(top + 2):
            span = 1 << min(level, top)
            row = level * count
            for begin in range(0, count, span):
                end = min(begin + span, count)
                if level > top or (level < top and begin & span):
                    element = load(suffix, begin << BITS)
                    store(levels, row + begin, element)
                    for block in range(begin + 1, end):
                        element = combine(values, element, load(suffix, block << BITS))
                        store(levels, row + block, element)
                else:
                    element = load(suffix, (end - 1) << BITS)
                    store(levels, row + end - 1, element)
                    for block in range(end - 2, begin - 1, -1):
                        element = combine(values, load(suffix, block << BITS), element)
                        store(levels, row + block, element)
        return values, prefix, suffix, levels

    def answer_blocks(tables: Any, lo: NDArray[np.int64], hi: NDArray[np.int64], out: Column) -> None:
        """Write the aggregate of partials `lo[i]:hi[i]`, older to newer, to `out[i]`.

        requires  lo < hi <= lo + longest, within the partials
        cost      at most 3 combinations per answer, at most 15 for a range inside a block
        space     none
        """
        _ = edition
        values, prefix, suffix, levels = tables
        count = (len(values) + BLOCK - 1) >> BITS
        top = len(levels) // max(count, 1) - 2
        for q in range(len(lo)):
            first, last = lo[q], hi[q] - 1
            i, j = (first >> BITS) + 1, (last >> BITS) - 1  # the whole blocks between
            if i > j + 1:
                element = lift(values, first)
                for p in range(first + 1, last + 1):
                    element = combine(values, element, lift(values, p))
            else:
                older, newer = load(suffix, first), load(prefix, last)
                if i == j:
                    older = combine(values, older, load(levels, i))
                elif i < j:
                    level = min(highest_bit(i ^ j), top)
                    right = level + 1 if level == top else level
                    older = combine(values, older, load(levels, level * count + i))
                    newer = combine(values, load(levels, right * count + j), newer)
                element = combine(values, older, newer)
            store(out, q, lower(values, element))

    kernel = njit(cache=True, nogil=True)
    return Technique(kernel(labelled(build_blocks, label)), kernel(labelled(answer_blocks, label)))


BLOCKS = {name: blocks(operator, name) for name, operator in OPERATORS.items()}
