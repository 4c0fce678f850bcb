"""Integers in the order of values that no integer holds: text, decimals, and nested types as Spark compares them.

Structs are compared field by field, arrays element by element, where the shorter one is less if it is the beginning of
the other. NULL inside a value is less than anything else, NaN greater, and -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernels import float_keys

Longs = npt.NDArray[np.int64]

ABSENT = -1
"""The rank of an element behind the end of an array: below NULL, which has rank 0."""


def ranks(column: pa.Array) -> Longs:
    """The dense rank of each value, from 1 on; 0 for NULL.

    >>> ranks(pa.array(["b", None, "a", "b"])).tolist()
    [2, 0, 1, 2]
    >>> ranks(pa.array([{"x": 1, "y": None}, {"x": 1, "y": 0}, {"x": None, "y": 5}])).tolist()
    [2, 3, 1]
    >>> ranks(pa.array([[1, 2], [1], [], [1, None]])).tolist()
    [4, 2, 1, 3]
    """
    if pa.types.is_struct(column.type):
        dense = _lexicographic(len(column), (ranks(field) for field in column.flatten()))
    elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        dense = _lexicographic(len(column), _elements(column))
    else:
        return _scalar_ranks(column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    numbered = np.zeros(len(column), np.int64)
    numbered[valid] = np.unique(dense[valid], return_inverse=True)[1] + 1
    return numbered


def _scalar_ranks(column: pa.Array) -> Longs:
    """Text and binary by their bytes, as Spark compares them."""
    if pa.types.is_floating(column.type):
        values = float_keys(pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0, False)
        column = pa.array(values, mask=column.is_null().to_numpy(zero_copy_only=False))
    dense: Longs = pc.rank(column, tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)
    if column.null_count:
        dense[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return dense


def _lexicographic(count: int, parts: Iterator[Longs]) -> Longs:
    """The dense order of rows by their first part, then the second, and so on; parts are read as long as rows tie."""
    dense = np.zeros(count, np.int64)
    for part in parts:
        order = np.lexsort((part, dense))
        steps = (np.diff(dense[order]) != 0) | (np.diff(part[order]) != 0)
        dense[order] = np.concatenate([[0], np.cumsum(steps)])[:count]
        if count and dense.max() == count - 1:
            break
    return dense


def _elements(column: pa.Array) -> Iterator[Longs]:
    """The ranks of the first elements, of the second ones, and so on, `ABSENT` behind the end of an array."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    elements = ranks(column.flatten())
    begins = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    longest = int(lengths.max()) if len(lengths) else 0
    for place in range(longest + 1):  # one more than there are: it tells an array from a longer one
        present = np.flatnonzero(lengths > place)
        part = np.full(len(column), ABSENT, np.int64)
        part[present] = elements[begins[present] + place]
        yield part
