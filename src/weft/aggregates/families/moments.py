"""Variance, skewness, kurtosis, covariance, correlation and linear regression.

Partials are central moments, not sums of powers: the squares of values far from zero would swallow their differences.
Planning does not need numpy, so the functions that run in buckets import it themselves.
"""

from __future__ import annotations

from typing import Any

from weft.aggregates.aggregate import Aggregate, Components, Spelling, Types, guarded
from weft.aggregates.combining import Vector
from weft.aggregates.component import Component
from weft.aggregates.kind import Kind
from weft.aggregates.lowering import Formula
from weft.model import Call

Answer = tuple[Any, Any]
"""Values, and where they are NULL."""

_MEAN = "if(var_pop({0}) = 0, max({0}), avg(({0}) / 1048576D) * 1048576D)"
"""If all values are equal, the mean is exactly this value, as in Spark. The computed mean of three times 0.1 is another
number, and equal slices would seem to differ. Spark's own mean moves from row to row; the sum behind `avg` would
overflow for values around 1e308, so it is taken 2**20 times smaller: scaling by a power of two loses nothing."""

_VARIANCE = ("count({0})", _MEAN, "var_pop({0})")
_LEFT, _RIGHT = "CASE WHEN {1} IS NOT NULL THEN {0} END", "CASE WHEN {0} IS NOT NULL THEN {1} END"
"""The values of pairs in which neither is NULL."""


def central_moments(n: Any, mean: Any, variance: Any, *standardized: Any) -> list[Any]:
    """(n, mean, m2, m3, m4) from count, mean, variance, skewness and kurtosis.

    Spark's aggregates are NULL or undefined if there are too few values; the moments are then 0. So they are if powers
    of m2 overflow: what Spark divides by infinity is 0, and 0 times infinity would be NaN.
    """
    import numpy as np

    m2 = variance * n
    moments = [n, mean, m2]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if standardized:
            moments.append(
                np.where((m2 == 0) | (standardized[0] == 0), 0.0, standardized[0] * np.sqrt(m2 * m2 * m2 / n))
            )
        if len(standardized) > 1:
            moments.append(np.where((m2 == 0) | (standardized[1] == -3), 0.0, (standardized[1] + 3.0) * m2 * m2 / n))
    return moments


def comoments(n: Any, left: Any, right: Any, *covariances: Any) -> list[Any]:
    """(n, mean_x, mean_y, c_xy, m2_x, m2_y) from count, means, covariance and variances."""
    return [n, left, right, *(covariance * n for covariance in covariances)]


KINDS = (
    Kind("moments_2", _VARIANCE, Vector("moments_2", central_moments)),
    Kind("moments_3", (*_VARIANCE, "skewness({0})"), Vector("moments_3", central_moments)),
    Kind("moments_4", (*_VARIANCE, "skewness({0})", "kurtosis({0})"), Vector("moments_4", central_moments)),
    Kind(
        "comoments",
        (
            "count({0}, {1})",
            _MEAN.replace("{0}", _LEFT),
            _MEAN.replace("{0}", _RIGHT),
            "covar_pop({0}, {1})",
            f"var_pop({_LEFT})",
            f"var_pop({_RIGHT})",
        ),
        Vector("comoments", comoments),
    ),
)


def var_pop(n: Any, mean: Any, m2: Any) -> Answer:
    return m2 / n, n == 0


def var_samp(n: Any, mean: Any, m2: Any) -> Answer:
    return m2 / (n - 1), n <= 1


def stddev_pop(n: Any, mean: Any, m2: Any) -> Answer:
    return _sqrt(m2 / n), n == 0


def stddev_samp(n: Any, mean: Any, m2: Any) -> Answer:
    return _sqrt(m2 / (n - 1)), n <= 1


def skewness(n: Any, mean: Any, m2: Any, m3: Any) -> Answer:
    return _sqrt(n) * m3 / _sqrt(m2 * m2 * m2), (n == 0) | (m2 == 0)


def kurtosis(n: Any, mean: Any, m2: Any, m3: Any, m4: Any) -> Answer:
    return n * m4 / (m2 * m2) - 3.0, (n == 0) | (m2 == 0)


def covar_pop(n: Any, x: Any, y: Any, xy: Any, xx: Any, yy: Any) -> Answer:
    return xy / n, n == 0


def covar_samp(n: Any, x: Any, y: Any, xy: Any, xx: Any, yy: Any) -> Answer:
    return xy / (n - 1), n <= 1


def corr(n: Any, x: Any, y: Any, xy: Any, xx: Any, yy: Any) -> Answer:
    """Constant values have no correlation, not even with NaN: 0 times NaN is not 0, so each factor is checked."""
    return xy / _sqrt(xx * yy), (n <= 1) | (xx == 0) | (yy == 0) | (xx * yy == 0)


# Regressions have the dependent variable first: regr_slope(y, x).


def regr_avgx(n: Any, y: Any, x: Any, xy: Any, yy: Any, xx: Any) -> Answer:
    return _average(n, x), n == 0


def regr_avgy(n: Any, y: Any, x: Any, xy: Any, yy: Any, xx: Any) -> Answer:
    return _average(n, y), n == 0


def regr_sxx(n: Any, y: Any, x: Any, xy: Any, yy: Any, xx: Any) -> Answer:
    return xx, n == 0


def regr_syy(n: Any, y: Any, x: Any, xy: Any, yy: Any, xx: Any) -> Answer:
    return yy, n == 0


def regr_sxy(n: Any, y: Any, x: Any, xy: Any, yy: Any, xx: Any) -> Answer:
    return xy, n == 0


def regr_slope(n: Any, y: Any, x: Any, xy: Any, yy: Any, xx: Any) -> Answer:
    return xy / xx, xx == 0


def regr_intercept(n: Any, y: Any, x: Any, xy: Any, yy: Any, xx: Any) -> Answer:
    return y - xy / xx * x, xx == 0


def regr_r2(n: Any, y: Any, x: Any, xy: Any, yy: Any, xx: Any) -> Answer:
    import numpy as np

    return np.where(yy == 0, 1.0, (xy / np.sqrt(xx * yy)) ** 2), xx == 0


def _average(n: Any, mean: Any) -> Any:
    """The mean, or infinity where the sum that Spark divides overflows."""
    import numpy as np

    return np.where(np.isinf(mean * n), mean * n, mean)


def _sqrt(values: Any) -> Any:
    import numpy as np

    return np.sqrt(values)


def _moments(order: int) -> Components:
    return lambda call, types: (
        Component(f"moments_{order}", (f"CAST({guarded(call, call.arguments[0])} AS DOUBLE)",)),
    )


def _comoments(call: Call, types: Types) -> tuple[Component, ...]:
    return (Component("comoments", tuple(f"CAST({guarded(call, a)} AS DOUBLE)" for a in call.arguments)),)


AGGREGATES = {
    "var_pop": Aggregate(_moments(2), Formula(var_pop)),
    "var_samp": Aggregate(_moments(2), Formula(var_samp), spelling=Spelling(aliases=("variance",))),
    "stddev_pop": Aggregate(_moments(2), Formula(stddev_pop)),
    "stddev_samp": Aggregate(_moments(2), Formula(stddev_samp), spelling=Spelling(aliases=("std", "stddev"))),
    "skewness": Aggregate(_moments(3), Formula(skewness)),
    "kurtosis": Aggregate(_moments(4), Formula(kurtosis)),
    **{
        formula.__name__: Aggregate(_comoments, Formula(formula), (2, 2))
        for formula in (
            covar_pop,
            covar_samp,
            corr,
            regr_avgx,
            regr_avgy,
            regr_sxx,
            regr_syy,
            regr_sxy,
            regr_slope,
            regr_intercept,
            regr_r2,
        )
    },
}
