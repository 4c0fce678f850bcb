"""Aggregates whose partials have no fixed size: they keep the values of a slice, or a sketch of them.

    exact          the values that came and how often: count(DISTINCT), percentile, percentile_disc, median,
                   mode, collect_set;
                   or what a measure adds up to for each: top_k_sum
    approximate    Theta for approx_count_distinct, KLL for percentile_approx and histogram_numeric, frequent items for
                   approx_top_k

A sketch is as large as Spark's own promise asks for: `approx_count_distinct(x, rsd)` has a relative standard deviation
of at most rsd, and a rank of `percentile_approx(x, p, accuracy)` is off by more than 1 / accuracy of the rows in less
than 1 of 100. How many rows lie below a place between two bins of `histogram_numeric(x, bins)` is off by more than a
tenth of a mean bin in less than 1 of 100.
"""

from __future__ import annotations

import re
from functools import cache

from weft.aggregates.component import Component
from weft.aggregates.registry import AGGREGATES, Aggregate, Types, guarded
from weft.model import Call

TOP = 5
TRACKED = 10_000
DEVIATION = 0.05
ACCURACY = 10_000
"""What Spark takes where a call does not say."""

NUMBERS_FROM: dict[str, int] = {
    "percentile": 1,
    "percentile_disc": 1,
    "percentile_approx": 1,
    "approx_count_distinct": 1,
    "approx_top_k": 1,
    "histogram_numeric": 1,
    "top_k_sum": 2,
}
"""Where the arguments begin that must be numbers, written out."""

SUMMED = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string"})
"""Types of what `top_k_sum` adds up: texts are read as numbers, as `sum` reads them."""

WIDEST_DECIMAL = 18
"""Digits that always fit into 64 bits."""

FINER_THAN_BINS = 10
"""How many ranks of a histogram's sketch can be told apart within a bin of mean height."""

LARGEST_KLL, SMALLEST_KLL = 65_535, 8
SMALLEST_THETA, LARGEST_THETA = 4, 26


def numbers_of(text: str) -> tuple[float, ...] | None:
    """The numbers of a literal, or of an array of literals; None: it is something else.

    >>> numbers_of("0.5"), numbers_of("array(0.1, 9e-1D)"), numbers_of("p")
    ((0.5,), (0.1, 0.9), None)
    """
    array = re.fullmatch(r"(?i)array\s*\((.*)\)", text.strip())
    found = [re.fullmatch(r"(?i)([\d.]+(?:e[+-]?\d+)?)(?:bd|[lsydf])?", part.strip()) for part in
             (array.group(1) if array else text).split(",")]  # fmt: skip
    try:
        return tuple(float(each.group(1)) for each in found if each) if all(found) else None
    except ValueError:
        return None


def _number(call: Call, place: int, default: float) -> float:
    found = numbers_of(call.arguments[place]) if len(call.arguments) > place else None
    return found[0] if found else default


def _fractions(call: Call) -> tuple[float, ...]:
    return numbers_of(call.arguments[1]) or ()


def _value(call: Call, types: Types) -> str:
    """Texts are read as numbers, as Spark reads them for percentiles."""
    argument = guarded(call, call.arguments[0])
    return f"CAST({argument} AS DOUBLE)" if types.get(call.arguments[0]) == "string" else argument


def _percentile(call: Call, types: Types) -> tuple[Component, ...]:
    return (Component("frequencies", (_value(call, types),)),)


def _frequencies(call: Call, types: Types) -> tuple[Component, ...]:
    return (Component("frequencies", (guarded(call, call.arguments[0]),)),)


def _distinct(call: Call, types: Types) -> tuple[Component, ...]:
    return (Component("distinct", (guarded(call, call.arguments[0]),)),)


def _approx_distinct(call: Call, types: Types) -> tuple[Component, ...]:
    value = guarded(call, call.arguments[0])
    hashed = f"(CASE WHEN ({value}) IS NOT NULL THEN xxhash64({value}) END)"
    return (Component("theta", (hashed,), theta_size(_number(call, 1, DEVIATION))),)


def _ranked(call: Call, types: Types, accuracy: float) -> tuple[Component, ...]:
    kind, value = sketched(call, types)
    if kind == "string":  # nothing that a sketch could hold: all values are kept
        return _frequencies(call, types)
    return (Component(f"kll_{kind}", (value,), kll_size(accuracy)),)


def _approx_percentile(call: Call, types: Types) -> tuple[Component, ...]:
    return _ranked(call, types, _number(call, 2, ACCURACY))


def _histogram(call: Call, types: Types) -> tuple[Component, ...]:
    return _ranked(call, types, FINER_THAN_BINS * _number(call, 1, 1))


def _top_k(call: Call, types: Types) -> tuple[Component, ...]:
    kind, value = sketched(call, types)
    return (Component(f"heavy_{kind}", (value,), int(_number(call, 2, TRACKED))),)


def _top_sums(call: Call, types: Types) -> tuple[Component, ...]:
    """Pairs of an item and what a row adds to its sum, where neither is NULL."""
    item, measure = call.arguments[:2]
    kind = types.get(measure, "double")
    if kind in ("tinyint", "smallint", "int", "bigint"):
        added = f"CAST(({measure}) AS BIGINT)"
    elif kind.startswith("decimal"):
        added = f"CAST(({measure}) * 1{'0' * _digits(kind)[1]}BD AS BIGINT)"
    else:
        added = f"CAST(({measure}) AS DOUBLE)"
    counts = f"({item}) IS NOT NULL AND ({measure}) IS NOT NULL"
    pair = f"(CASE WHEN {counts} THEN named_struct('item', {item}, 'added', {added}) END)"
    return (Component("sums", (guarded(call, pair),)),)


def _digits(kind: str) -> tuple[int, int]:
    """Of a decimal: how many in all, and after the point."""
    precision, scale = re.findall(r"\d+", kind)
    return int(precision), int(scale)


def sketched(call: Call, types: Types) -> tuple[str, str]:
    """What a sketch holds of the argument: doubles, integers or texts, and the expression that makes them."""
    value, kind = guarded(call, call.arguments[0]), types.get(call.arguments[0], "double")
    if call.function == "percentile_approx" and kind == "string":
        kind = "double"
    if kind in ("float", "double"):
        return "double", f"CAST({value} AS DOUBLE)"
    if kind in ("boolean", "tinyint", "smallint", "int", "bigint"):
        return "bigint", f"CAST({value} AS BIGINT)"
    if kind in ("date", "timestamp"):
        return "bigint", f"CAST({'unix_date' if kind == 'date' else 'unix_micros'}({value}) AS BIGINT)"
    return "string", f"CAST({value} AS STRING)"


@cache
def theta_size(deviation: float) -> int:
    """The logarithm of how many hashes keep the relative standard deviation of a count below this.

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


def unserved(call: Call, types: Types) -> str | None:
    """Why weft cannot serve this call, by the types of its arguments."""
    kind = types.get(call.arguments[0], "") if call.arguments else ""
    if call.function == "avg" and kind.startswith("interval"):
        return f"weft does not average values of type {kind}"
    if call.function not in HOLISTIC:
        return None
    ordered = call.function in ("percentile", "percentile_disc", "median", "percentile_approx", "histogram_numeric")
    unordered = ("array", "map", "struct", "variant", "string collate", "interval year", "interval month")
    if kind.startswith(unordered) or (ordered and kind.startswith("interval")):
        return f"weft does not keep values of type {kind} for {call.function}"
    if call.function == "top_k_sum":
        measure = types.get(call.arguments[1], "double")
        if measure.split("(")[0] not in SUMMED:
            return f"top_k_sum adds up numbers, not {measure}"
        if measure.startswith("decimal") and _digits(measure)[0] > WIDEST_DECIMAL:
            return f"weft adds up decimals of {WIDEST_DECIMAL} digits at most for top_k_sum, not {measure}"
    if call.function == "histogram_numeric" and kind == "timestamp_ntz":
        return "weft does not keep values of type timestamp_ntz for histogram_numeric"
    if call.function == "approx_top_k" and kind == "binary":
        return "weft does not keep values of type binary for approx_top_k"
    return None


HOLISTIC: dict[str, Aggregate] = {
    "count_distinct": Aggregate(_distinct, "different"),
    "collect_set": Aggregate(_distinct, "members"),
    "percentile": Aggregate(_percentile, "percentile", (2, 2), _fractions),
    "percentile_disc": Aggregate(_percentile, "percentile_approx", (2, 2), _fractions),
    "median": Aggregate(_percentile, "percentile", (1, 1), lambda call: (0.5,)),
    "mode": Aggregate(_frequencies, "mode"),
    "approx_count_distinct": Aggregate(_approx_distinct, "different", (1, 2)),
    "percentile_approx": Aggregate(_approx_percentile, "percentile_approx", (2, 3), _fractions),
    "approx_top_k": Aggregate(_top_k, "top_k", (1, 3), lambda call: (_number(call, 1, TOP),)),
    "histogram_numeric": Aggregate(_histogram, "bins", (2, 2), lambda call: (_number(call, 1, 1),)),
    "top_k_sum": Aggregate(_top_sums, "top_sums", (2, 3), lambda call: (_number(call, 2, TOP),)),
}
"""`count_distinct` is what `count(DISTINCT x)` is called; `top_k_sum` is weft's own, Spark has none."""

AGGREGATES.update(HOLISTIC)
