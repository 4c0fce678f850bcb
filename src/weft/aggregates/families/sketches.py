"""Approximate aggregates, which keep a sketch of a slice's values.

    Theta            approx_count_distinct
    KLL              percentile_approx, histogram_numeric
    frequent items   approx_top_k

A sketch is as large as needed for Spark's guarantees: `approx_count_distinct(x, rsd)` has a relative standard deviation
of at most rsd, and the error of a rank of `percentile_approx(x, p, accuracy)` exceeds 1 / accuracy of the rows in less
than 1 of 100 cases. The error of the number of rows below a point between two bins of `histogram_numeric(x, bins)`
exceeds a tenth of a mean bin in less than 1 of 100 cases.
"""

from __future__ import annotations

from functools import cache

from weft.aggregates.aggregate import Aggregate, Spelling, Types, guarded
from weft.aggregates.combining import FrequentItems, KllSketch, ThetaSketch, ValueList
from weft.aggregates.component import Component
from weft.aggregates.families.values import TOP, frequencies, refuse_intervals, refuse_unordered
from weft.aggregates.kind import Kind
from weft.aggregates.literals import fractions, number
from weft.aggregates.lowering import DistinctCount, Histogram, MostFrequent, Quantiles
from weft.model import Call

TRACKED = 10_000
DEVIATION = 0.05
ACCURACY = 10_000
"""Spark's defaults."""

FINER_THAN_BINS = 10
"""How many ranks a histogram's sketch distinguishes within a bin of mean height."""

LARGEST_KLL, SMALLEST_KLL = 65_535, 8
SMALLEST_THETA, LARGEST_THETA = 4, 26


def _kll_points(setting: int) -> int:
    return 3 * setting


def _heavy(name: str, item: type[float] | type[int] | type[str]) -> Kind:
    lift = ("approx_top_k_accumulate({0}, {setting}).sketch",)
    return Kind(name, lift, ValueList(FrequentItems(item), lambda setting: 2 * setting))


KINDS = (
    Kind(
        "theta",
        ("theta_sketch_agg({0}, {setting})",),
        ValueList(ThetaSketch(), lambda setting: 15 * (1 << setting) // 8),
        merge=("theta_union_agg({0}, {setting})",),
    ),
    Kind(
        "kll_bigint",
        ("kll_sketch_agg_bigint({0}, {setting})",),
        ValueList(KllSketch(real=False), _kll_points),
        merge=("kll_merge_agg_bigint({0}, {setting})",),
    ),
    # A sketch of doubles leaves NaN out, and Spark's percentiles do not.
    Kind(
        "kll_double",
        ("kll_sketch_agg_double({0}, {setting})", "count_if(isnan({0}))"),
        ValueList(KllSketch(real=True), _kll_points),
        merge=("kll_merge_agg_double({0}, {setting})", "sum({1})"),
    ),
    _heavy("heavy_double", float),
    _heavy("heavy_bigint", int),
    _heavy("heavy_string", str),
)


def _approx_distinct(call: Call, types: Types) -> tuple[Component, ...]:
    value = guarded(call, call.arguments[0])
    hashed = f"(CASE WHEN ({value}) IS NOT NULL THEN xxhash64({value}) END)"
    return (Component("theta", (hashed,), theta_size(number(call, 1, DEVIATION))),)


def _ranked(call: Call, types: Types, accuracy: float, texts_as_numbers: bool) -> tuple[Component, ...]:
    item, value = sketched(call, types, texts_as_numbers)
    if item == "string":  # a KLL sketch holds no texts: all values are kept
        return frequencies(call, types)
    return (Component(f"kll_{item}", (value,), kll_size(accuracy)),)


def _approx_percentile(call: Call, types: Types) -> tuple[Component, ...]:
    return _ranked(call, types, number(call, 2, ACCURACY), texts_as_numbers=True)


def _histogram(call: Call, types: Types) -> tuple[Component, ...]:
    return _ranked(call, types, FINER_THAN_BINS * number(call, 1, 1), texts_as_numbers=False)


def _top_k(call: Call, types: Types) -> tuple[Component, ...]:
    item, value = sketched(call, types)
    return (Component(f"heavy_{item}", (value,), int(number(call, 2, TRACKED))),)


def sketched(call: Call, types: Types, texts_as_numbers: bool = False) -> tuple[str, str]:
    """The item type of a sketch of the argument (double, bigint or string), and the expression of its items."""
    value, type_ = guarded(call, call.arguments[0]), types.get(call.arguments[0], "double")
    if type_ in ("float", "double") or (type_ == "string" and texts_as_numbers):
        return "double", f"CAST({value} AS DOUBLE)"
    if type_ in ("boolean", "tinyint", "smallint", "int", "bigint"):
        return "bigint", f"CAST({value} AS BIGINT)"
    if type_ in ("date", "timestamp"):
        return "bigint", f"CAST({'unix_date' if type_ == 'date' else 'unix_micros'}({value}) AS BIGINT)"
    return "string", f"CAST({value} AS STRING)"


@cache
def theta_size(deviation: float) -> int:
    """The binary logarithm of the number of hashes that keeps the relative standard deviation of a count within this.

    >>> theta_size(0.05), theta_size(0.01)
    (9, 14)
    """
    sizes = range(SMALLEST_THETA, LARGEST_THETA)
    return next((size for size in sizes if (2**size - 1) ** -0.5 <= deviation), LARGEST_THETA)


@cache
def kll_size(accuracy: float) -> int:
    """The least k that keeps the error of a rank below 1 / accuracy of the rows, with 99 % confidence.

    >>> kll_size(100), kll_size(10_000)
    (269, 30565)
    """
    from datasketches import kll_doubles_sketch  # type: ignore[import-untyped]

    low, high = SMALLEST_KLL, LARGEST_KLL
    while low < high:
        middle = (low + high) // 2
        if kll_doubles_sketch.get_normalized_rank_error(middle, False) * accuracy <= 1:
            high = middle
        else:
            low = middle + 1
    return low


def _refuse_local_times(call: Call, types: Types) -> str | None:
    if types.get(call.arguments[0]) == "timestamp_ntz":
        return f"weft does not keep values of type timestamp_ntz for {call.function}"
    return refuse_intervals(call, types)


def _refuse_binaries(call: Call, types: Types) -> str | None:
    if types.get(call.arguments[0]) == "binary":
        return f"weft does not keep values of type binary for {call.function}"
    return refuse_unordered(call, types)


AGGREGATES = {
    "approx_count_distinct": Aggregate(
        _approx_distinct, DistinctCount(), (1, 2), refusal=refuse_unordered, spelling=Spelling(numbers_from=1)
    ),
    "percentile_approx": Aggregate(
        _approx_percentile,
        Quantiles(interpolated=False),
        (2, 3),
        fractions,
        refuse_intervals,
        spelling=Spelling(aliases=("approx_percentile",), numbers_from=1),
    ),
    "approx_top_k": Aggregate(
        _top_k,
        MostFrequent(),
        (1, 3),
        lambda call: (number(call, 1, TOP),),
        _refuse_binaries,
        spelling=Spelling(
            numbers_from=1,
            filter_problem="also counts NULL, and FILTER could not tell it from rows that are left out",
        ),
    ),
    "histogram_numeric": Aggregate(
        _histogram,
        Histogram(),
        (2, 2),
        lambda call: (number(call, 1, 1),),
        _refuse_local_times,
        spelling=Spelling(numbers_from=1),
    ),
}
