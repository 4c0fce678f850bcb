"""Compiled loops: arrays in, arrays out.

Each function is compiled once for contiguous, writable int64, int32 (groups) and float64 arrays, and kept on disk. For
a read-only array, such as a view of Arrow memory, it would be compiled again: pass `plain(array, dtype)`.

    order = sort_order(groups, slices, group_count)
    offsets = group_offsets(groups[order], group_count)
    counts = count_windows(slices[order], offsets, length, slide, offset, k_low, k_high)
    fill_windows(..., starts, group_out, k_out, lo_out, hi_out)
    tables = BLOCKS["float_sum"].build(values[order], longest)
    BLOCKS["float_sum"].answer(tables, lo_out, hi_out, out)

`technique(name, operator)` returns any other technique with the same interface. The techniques of the papers also take
one partial at a time: see `Technique` and `Steps`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from weft.kernels import (
    numba_symbols,  # noqa: F401 - it does its work when it is imported
    sketches,
    sliding_summaries,
    sliding_values,
)
from weft.kernels.order import float_keys, floor_edges, group_offsets, key_floats, merge_order, sort_order
from weft.kernels.techniques.blocks import BLOCKS
from weft.kernels.techniques.combine import NO_VALUE, OPERATORS, Operator
from weft.kernels.techniques.panes import PANES
from weft.kernels.techniques.prefix import prefix_answers, prefix_sums
from weft.kernels.techniques.registry import OWN, TECHNIQUES, ImpossiblePair, Recipe, accepts, fallback, technique
from weft.kernels.techniques.technique import State, Steps, Tables, Technique, compiled
from weft.kernels.windows import count_windows, fill_windows, locate_windows

__all__ = [
    "BLOCKS",
    "NO_VALUE",
    "OPERATORS",
    "OWN",
    "PANES",
    "TECHNIQUES",
    "ImpossiblePair",
    "Operator",
    "Recipe",
    "State",
    "Steps",
    "Tables",
    "Technique",
    "accepts",
    "compiled",
    "count_windows",
    "fallback",
    "fill_windows",
    "float_keys",
    "floor_edges",
    "group_offsets",
    "key_floats",
    "locate_windows",
    "merge_order",
    "plain",
    "prefix_answers",
    "prefix_sums",
    "sketches",
    "sliding_summaries",
    "sliding_values",
    "sort_order",
    "technique",
]


def plain(array: Any, dtype: DTypeLike) -> NDArray[Any]:
    """The array as kernels take it: contiguous, writable, of this type; copied only if it is not so already."""
    return np.require(array, dtype, ["C", "W"])
