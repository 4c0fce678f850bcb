"""Spark's functions by kind: aggregates with and without partial results, nondeterministic ones, generators, others."""

from __future__ import annotations

from weft.aggregates.aggregate import AGGREGATES, ALIASES


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def aggregate_named(name: str) -> str | None:
    """The aggregate of weft with this name or alias; None: weft has none."""
    name = ALIASES.get(name, name)
    return name if name in AGGREGATES else None


KEEPS_ROWS = _words("collect_list array_agg listagg string_agg")

OTHER_AGGREGATES = KEEPS_ROWS | _words(
    """approx_top_k_accumulate approx_top_k_combine bitmap_and_agg bitmap_construct_agg bitmap_or_agg collect_union
    count_min_sketch grouping grouping_id
    hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float measure
    product theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer
    tuple_union_agg_double tuple_union_agg_integer"""
)

NONDETERMINISTIC = _words(
    """rand random randn uniform randstr uuid shuffle monotonically_increasing_id spark_partition_id input_file_name
    input_file_block_length input_file_block_start current_timestamp now current_date curdate current_time
    localtimestamp localtime current_user session_user user current_catalog current_database current_schema
    current_path java_method reflect try_reflect"""
)

BARE_NONDETERMINISTIC = frozenset(
    {"current_timestamp", "current_date", "current_time", "current_user", "localtimestamp"}
)
"""Functions that need no parentheses. `user` is not among them: it is far more often a column."""

GENERATORS = _words("explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple")

RANKINGS = _words("row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value counter_diff")

SCALARS: dict[str, tuple[str, int, int]] = {
    "if": ("if", 3, 3),
    "coalesce": ("coalesce", 1, 99),
    "nvl": ("coalesce", 2, 2),
    "ifnull": ("coalesce", 2, 2),
    "nullif": ("nullif", 2, 2),
    "greatest": ("greatest", 2, 99),
    "least": ("least", 2, 99),
    "abs": ("abs", 1, 1),
    "round": ("round", 1, 2),
    "floor": ("floor", 1, 1),
    "ceil": ("ceil", 1, 1),
    "ceiling": ("ceil", 1, 1),
    "sqrt": ("sqrt", 1, 1),
    "exp": ("exp", 1, 1),
    "ln": ("ln", 1, 1),
    "log": ("ln", 1, 1),
    "log10": ("log10", 1, 1),
    "log2": ("log2", 1, 1),
    "power": ("power", 2, 2),
    "pow": ("power", 2, 2),
    "sign": ("sign", 1, 1),
    "signum": ("sign", 1, 1),
    "mod": ("mod", 2, 2),
    "negative": ("neg", 1, 1),
    "isnull": ("is_null", 1, 1),
    "isnotnull": ("is_not_null", 1, 1),
    "not": ("not", 1, 1),
}
"""Functions of aggregates that weft computes: the operation, and the least and the greatest number of arguments."""

CASTS = _words("boolean tinyint smallint int bigint float double decimal date timestamp binary string")
"""Types whose name is also a function that casts to them."""
