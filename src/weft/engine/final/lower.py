"""From combined components to the answer of an aggregate, as Spark returns it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.aggregates.lowering import AnswerLowering, ChosenValue, Formula, Mean, NanFormula, Value
from weft.engine.project.decimals import divide_decimal

Floats = npt.NDArray[np.float64]
Parts = Sequence[Sequence[pa.Array]]
"""The columns of each component of the aggregate, combined over a window."""


def lower(how: AnswerLowering, parts: Parts, type_: pa.DataType, *, ansi: bool = True) -> pa.Array:
    match how:
        case Value():
            return parts[0][0]
        case ChosenValue():
            return parts[0][1]
        case Mean():
            return _mean(parts, type_, ansi)
        case Formula(function=function):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                return _nullable(*function(*_columns(parts)))
        case NanFormula(function=function):
            with np.errstate(all="ignore"):
                answers = np.asarray(function(*_columns(parts)), np.float64)
            return _nullable(answers, np.isnan(answers))
    raise AssertionError(f"nothing reads {how}")


def _mean(parts: Parts, type_: pa.DataType, ansi: bool) -> pa.Array:
    (total, *_), (count,) = parts
    counts = count.to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(type_):
        return divide_decimal(total, counts, type_, ansi=ansi)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _nullable(_floats(total) / counts, counts == 0)


def _columns(parts: Parts) -> list[Floats]:
    return [_floats(column) for part in parts for column in part]


def _floats(array: pa.Array) -> Floats:
    return array.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)  # type: ignore[no-any-return]


def _nullable(values: Floats, null: Any) -> pa.Array:
    return pa.array(values, mask=null if null.any() else None)
