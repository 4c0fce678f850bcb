"""The shape that every technique has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.kernels.techniques.combine import Column

Tables = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Technique:
    """Tables are built once a column; every query over the column is answered from them.

    `build(values, longest)` serves ranges of up to `longest` partials. `answer(tables, lo, hi, out)` writes the
    aggregate of partials `lo[i]:hi[i]`, older to newer, to `out[i]`.
    """

    build: Callable[[Column, int], Tables]
    answer: Callable[[Any, NDArray[np.int64], NDArray[np.int64], Column], None]
