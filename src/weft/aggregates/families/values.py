"""Aggregates that keep the values of a slice and the number of each: exact, and as large as the data.

A list per slice is far cheaper to send than a row per value.
"""

from __future__ import annotations

import re

from weft.aggregates.aggregate import MANY, Aggregate, Components, Spelling, Types, guarded, one
from weft.aggregates.combining import ValueList, Values, WeightedValues
from weft.aggregates.component import Component
from weft.aggregates.kind import FOLD, Algebra, Kind
from weft.aggregates.literals import fractions, number
from weft.aggregates.lowering import DistinctCount, DistinctValues, GreatestSums, Mode, Quantiles
from weft.model import Call

TOP = 5
"""The default number of items, as in Spark's approx_top_k."""

ACCURACIES = ("10000", "1000", "100")
"""Accuracies of approximate percentiles that may replace exact ones, the finest first."""

SUMMED = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string"})
"""Types that `top_k_sum` adds up: texts are read as numbers, as in `sum`."""

WIDEST_DECIMAL = 18
"""Digits that always fit into 64 bits."""

UNORDERED = ("array", "map", "struct", "variant", "string collate", "interval year", "interval month")
"""Prefixes of the types whose values weft cannot sort."""

DISTINGUISHED = frozenset({"boolean", "float", "double", "decimal", "string", "binary", "date", "timestamp"})
DISTINGUISHED |= {"tinyint", "smallint", "int", "bigint", "timestamp_ntz"}
"""Types that several expressions of `count(DISTINCT a, b)` may have: distinct values have distinct texts."""

KINDS = (
    Kind(
        "frequencies",
        ("collect_list({0})",),
        ValueList(Values()),
        FOLD | Algebra.INVERTIBLE,
        ("flatten(collect_list({0}))",),
    ),
    Kind(
        "distinct",
        ("collect_set({0})",),
        ValueList(Values()),
        merge=("array_distinct(flatten(collect_list({0})))",),
    ),
    Kind("sums", ("collect_list({0})",), ValueList(WeightedValues()), merge=("flatten(collect_list({0}))",)),
)

frequencies: Components = one("frequencies")


def _percentile(call: Call, types: Types) -> tuple[Component, ...]:
    """Texts are read as numbers, as Spark reads them for percentiles."""
    argument = guarded(call, call.arguments[0])
    value = f"CAST({argument} AS DOUBLE)" if types.get(call.arguments[0]) == "string" else argument
    return (Component("frequencies", (value,)),)


def _distinct(call: Call, types: Types) -> tuple[Component, ...]:
    """Several expressions are one text per row, NULL if one of them is: Spark does not count such rows.

    Each value has its length before it, so that different rows have different texts.
    """
    if len(call.arguments) == 1:
        return (Component("distinct", (guarded(call, call.arguments[0]),)),)
    texts = [_as_text(argument, types.get(argument, "string")) for argument in call.arguments]
    row = ", ".join(f"length({text}), ':', {text}" for text in texts)
    return (Component("distinct", (guarded(call, f"concat({row})"),)),)


def _as_text(argument: str, type_: str) -> str:
    """Equal for values that Spark takes as equal: 0.0 and -0.0 are, whatever NaN they are all NaN are."""
    if type_ in ("float", "double"):
        return f"CAST(({argument}) + 0D AS STRING)"
    if type_ == "timestamp":  # in the session's zone an hour of a year has two instants of one text
        return f"CAST(unix_micros({argument}) AS STRING)"
    return f"hex({argument})" if type_ == "binary" else f"CAST(({argument}) AS STRING)"


def _top_sums(call: Call, types: Types) -> tuple[Component, ...]:
    """Pairs of an item and the number that a row adds to its sum, if neither is NULL."""
    item, measure = call.arguments[:2]
    type_ = types.get(measure, "double")
    if type_ in ("tinyint", "smallint", "int", "bigint"):
        added = f"CAST(({measure}) AS BIGINT)"
    elif type_.startswith("decimal"):
        added = f"CAST(({measure}) * 1{'0' * _digits(type_)[1]}BD AS BIGINT)"
    else:
        added = f"CAST(({measure}) AS DOUBLE)"
    counts = f"({item}) IS NOT NULL AND ({measure}) IS NOT NULL"
    pair = f"(CASE WHEN {counts} THEN named_struct('item', {item}, 'added', {added}) END)"
    return (Component("sums", (guarded(call, pair),)),)


def _digits(type_: str) -> tuple[int, int]:
    """Of a decimal: all digits, and those after the point."""
    precision, scale = re.findall(r"\d+", type_)
    return int(precision), int(scale)


def refuse_unordered(call: Call, types: Types) -> str | None:
    type_ = types.get(call.arguments[0], "")
    return f"weft does not keep values of type {type_} for {call.function}" if type_.startswith(UNORDERED) else None


def _refuse_undistinguished(call: Call, types: Types) -> str | None:
    if len(call.arguments) == 1:
        return refuse_unordered(call, types)
    kinds = [types.get(argument, "string") for argument in call.arguments]
    unknown = next((kind for kind in kinds if kind.split("(")[0] not in DISTINGUISHED), None)
    return unknown and f"weft does not count distinct rows of type {unknown}"


def refuse_intervals(call: Call, types: Types) -> str | None:
    """For aggregates that need values in their order."""
    type_ = types.get(call.arguments[0], "")
    if type_.startswith("interval"):
        return f"weft does not keep values of type {type_} for {call.function}"
    return refuse_unordered(call, types)


def _refuse_wide_sums(call: Call, types: Types) -> str | None:
    measure = types.get(call.arguments[1], "double")
    if reason := refuse_unordered(call, types):
        return reason
    if measure.split("(")[0] not in SUMMED:
        return f"top_k_sum adds up numbers, not {measure}"
    if measure.startswith("decimal") and _digits(measure)[0] > WIDEST_DECIMAL:
        return f"weft adds up decimals of {WIDEST_DECIMAL} digits at most for top_k_sum, not {measure}"
    return None


def _fewer_distinct(call: Call) -> tuple[Call, ...]:
    if len(call.arguments) > 1:
        return ()
    return (Call("approx_count_distinct", call.arguments[:1], call.condition),)


def _fewer_frequencies(call: Call) -> tuple[Call, ...]:
    return (Call("approx_top_k", (call.arguments[0], "1")),) if call.condition is None else ()  # it takes no FILTER


def _fewer_percentiles(call: Call) -> tuple[Call, ...]:
    """
    >>> [form.arguments for form in _fewer_percentiles(Call("median", ("price",)))]
    [('price', '0.5', '10000'), ('price', '0.5', '1000'), ('price', '0.5', '100')]
    """
    value, share = (*call.arguments, "0.5")[:2]
    return tuple(Call("percentile_approx", (value, share, a), call.condition) for a in ACCURACIES)


def _descending(name: str, *, interpolated: bool) -> Aggregate:
    """`name(share) WITHIN GROUP (ORDER BY x DESC)`: the same values, counted from the greatest."""
    spelling = Spelling(numbers_from=1, shown=f"{name}({{1}}) WITHIN GROUP (ORDER BY {{0}} DESC)")
    how = Quantiles(interpolated=interpolated, descending=True)
    return Aggregate(_percentile, how, (2, 2), fractions, refuse_intervals, spelling=spelling)


AGGREGATES = {
    "count_distinct": Aggregate(
        _distinct,
        DistinctCount(),
        (1, MANY),
        refusal=_refuse_undistinguished,
        approximations=_fewer_distinct,
        spelling=Spelling(shown="count(DISTINCT {every})"),
    ),
    "collect_set": Aggregate(one("distinct"), DistinctValues(), refusal=refuse_unordered),
    "percentile": Aggregate(
        _percentile,
        Quantiles(interpolated=True),
        (2, 2),
        fractions,
        refuse_intervals,
        _fewer_percentiles,
        Spelling(
            aliases=("percentile_cont",),
            numbers_from=1,
            within_group={"percentile_cont": "percentile_cont(0.5)"},
            needs_within_group=("percentile_cont",),
            descending="percentile_descending",
        ),
    ),
    "percentile_descending": _descending("percentile_cont", interpolated=True),
    "percentile_disc": Aggregate(
        _percentile,
        Quantiles(interpolated=False),
        (2, 2),
        fractions,
        refuse_intervals,
        _fewer_percentiles,
        Spelling(
            numbers_from=1,
            within_group={"percentile_disc": "percentile_disc(0.5)"},
            needs_within_group=("percentile_disc",),
            descending="percentile_disc_descending",
        ),
    ),
    "percentile_disc_descending": _descending("percentile_disc", interpolated=False),
    "median": Aggregate(
        _percentile,
        Quantiles(interpolated=True),
        (1, 1),
        lambda call: (0.5,),
        refuse_intervals,
        _fewer_percentiles,
    ),
    "mode": Aggregate(
        frequencies,
        Mode(),
        refusal=refuse_unordered,
        approximations=_fewer_frequencies,
        # Of equally frequent values weft gives the least: both of Spark's modes allow that.
        spelling=Spelling(needless_flag=True, within_group={"mode": "mode()"}),
    ),
    "top_k_sum": Aggregate(
        _top_sums,
        GreatestSums(),
        (2, 3),
        lambda call: (number(call, 2, TOP),),
        _refuse_wide_sums,
        spelling=Spelling(
            numbers_from=2,
            items=2,
            example="top_k_sum(item, measure, 5)",
            stand_in="array(named_struct('item', any_value({0}){filter}, 'sum', sum({1}){filter}))",
        ),
    ),
}
"""`count_distinct` is the name of `count(DISTINCT x)`; `top_k_sum` is weft's own, Spark has none."""
