"""Functions of doubles: NaN where there is no real answer, but NULL for the logarithm of what is not positive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from weft.engine.project.casts import cast
from weft.engine.project.decimals import both, valid_mask
from weft.engine.project.expression import Typed
from weft.engine.project.numbers import Floats, floats, from_numpy
from weft.engine.project.types import TypeKind, kind


def real(node: Typed, args: list[pa.Array], ansi: bool) -> pa.Array:
    if any(kind(arg.type) is TypeKind.NULL for arg in args):
        return pa.nulls(len(args[0]), node.type)
    columns = [floats(cast(arg, pa.float64(), ansi=ansi, sql=node.sql)) for arg in args]
    valid = valid_mask(args[0])
    if node.op in ("ln", "log10", "log2"):
        unlogged = columns[0] <= 0
        valid = both(valid, None if not unlogged.any() else ~unlogged)
    if len(args) == 2:
        valid = both(valid, valid_mask(args[1]))
    with np.errstate(all="ignore"):
        return from_numpy(_FUNCTIONS[node.op](*columns), valid, node.type)


def _power(base: Floats, exponent: Floats) -> Floats:
    """C says that 1 to any power is 1; Java says NaN where the power is NaN or infinite."""
    return np.where((np.abs(base) == 1) & ~np.isfinite(exponent), np.nan, np.power(base, exponent))


def _sign(x: Floats) -> Floats:
    return np.where(x == 0, x, np.sign(x))  # keeps -0.0


_FUNCTIONS: dict[str, Callable[..., Floats]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "ln": np.log,
    "log10": np.log10,
    "log2": np.log2,
    "sign": _sign,
    "power": _power,
}
