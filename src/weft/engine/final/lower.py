"""From combined components to the answer of an aggregate, as Spark would give it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.aggregates import USERS
from weft.engine.project.decimals import divide_decimal

Floats = npt.NDArray[np.float64]
Parts = Sequence[Sequence[pa.Array]]
"""The columns of each component of the aggregate, combined over a window."""
Lower = Callable[[Parts, pa.DataType], pa.Array]
Formula = Callable[..., tuple[Floats, npt.NDArray[np.bool_]]]


def _floats(array: pa.Array) -> Floats:
    return array.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)  # type: ignore[no-any-return]


def _nullable(values: Floats, null: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=null if null.any() else None)


def value(parts: Parts, type_: pa.DataType) -> pa.Array:
    """The component is the answer."""
    return parts[0][0]


def chosen(parts: Parts, type_: pa.DataType) -> pa.Array:
    """The value that came with the chosen ordering."""
    return parts[0][1]


def mean(parts: Parts, type_: pa.DataType) -> pa.Array:
    (total,), (count,) = parts
    counts = count.to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(type_):
        return divide_decimal(total, counts, type_)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _nullable(_floats(total) / counts, counts == 0)


def _from_moments(formula: Formula) -> Lower:
    """`formula` gets the count and what follows it, and says where the answer is NULL."""

    def answer(parts: Parts, type_: pa.DataType) -> pa.Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return _nullable(*formula(*(_floats(column) for column in parts[0])))

    return answer


def lower(name: str, parts: Parts, type_: pa.DataType) -> pa.Array:
    """The answer of the aggregate that is read by this name."""
    return _user(name, parts) if name in USERS else LOWER[name](parts, type_)


def _user(name: str, parts: Parts) -> pa.Array:
    """A user's NaN is NULL, for there is nothing else to say it with."""
    with np.errstate(all="ignore"):
        answers = np.asarray(USERS[name].lower(*map(_floats, parts[0])), np.float64)
    return _nullable(answers, np.isnan(answers))


LOWER: Mapping[str, Lower] = {
    "value": value,
    "chosen": chosen,
    "mean": mean,
    "var_pop": _from_moments(lambda n, avg, m2: (m2 / n, n == 0)),
    "var_samp": _from_moments(lambda n, avg, m2: (m2 / (n - 1), n <= 1)),
    "stddev_pop": _from_moments(lambda n, avg, m2: (np.sqrt(m2 / n), n == 0)),
    "stddev_samp": _from_moments(lambda n, avg, m2: (np.sqrt(m2 / (n - 1)), n <= 1)),
    "skewness": _from_moments(lambda n, avg, m2, m3: (np.sqrt(n) * m3 / np.sqrt(m2 * m2 * m2), (n == 0) | (m2 == 0))),
    "kurtosis": _from_moments(lambda n, avg, m2, m3, m4: (n * m4 / (m2 * m2) - 3.0, (n == 0) | (m2 == 0))),
    "covar_pop": _from_moments(lambda n, ax, ay, ck, mx, my: (ck / n, n == 0)),
    "covar_samp": _from_moments(lambda n, ax, ay, ck, mx, my: (ck / (n - 1), n <= 1)),
    # One value for all has no correlation, not even with NaN, which times 0 is no 0.
    "corr": _from_moments(
        lambda n, ax, ay, ck, mx, my: (ck / np.sqrt(mx * my), (n <= 1) | (mx == 0) | (my == 0) | (mx * my == 0))
    ),
    # Regressions have what is explained first: regr_slope(y, x).
    "regr_avgx": _from_moments(lambda n, ay, ax, ck, my, mx: (ax, n == 0)),
    "regr_avgy": _from_moments(lambda n, ay, ax, ck, my, mx: (ay, n == 0)),
    "regr_sxx": _from_moments(lambda n, ay, ax, ck, my, mx: (mx, n == 0)),
    "regr_syy": _from_moments(lambda n, ay, ax, ck, my, mx: (my, n == 0)),
    "regr_sxy": _from_moments(lambda n, ay, ax, ck, my, mx: (ck, n == 0)),
    "regr_slope": _from_moments(lambda n, ay, ax, ck, my, mx: (ck / mx, mx == 0)),
    "regr_intercept": _from_moments(lambda n, ay, ax, ck, my, mx: (ay - ck / mx * ax, mx == 0)),
    "regr_r2": _from_moments(
        lambda n, ay, ax, ck, my, mx: (np.where(my == 0, 1.0, (ck / np.sqrt(mx * my)) ** 2), mx == 0)
    ),
}
