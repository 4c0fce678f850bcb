"""Components: the parts of a partial, each combined by itself and shared by every aggregate that needs it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto


class Algebra(Flag):
    """What `combine` can do; a technique asks for some of it."""

    ASSOCIATIVE = auto()
    COMMUTATIVE = auto()
    INVERTIBLE = auto()
    """Can forget the oldest exactly: `remove(combine(a, b), a) == b`. Integers can, floats cannot."""
    SELECTIVE = auto()
    """`combine(a, b)` is a or b."""


FOLD = Algebra.ASSOCIATIVE | Algebra.COMMUTATIVE
CHOICE = FOLD | Algebra.SELECTIVE


@dataclass(frozen=True, slots=True)
class Kind:
    """How Spark makes a component from rows: native aggregates, a column each, over arguments `{0}`, `{1}`."""

    lifts: tuple[str, ...]
    algebra: Algebra
    merges: tuple[str, ...] = ()
    """How Spark makes one partial of several: an aggregate a column, over the columns `{0}`, `{1}`. None: it
    cannot, and the component is made from rows for each grouping."""
    synopsis: int = 0
    """Columns of a partial that has no fixed size, lists of values and how often each came; 0: it has a fixed size."""
    own: tuple[str, ...] = ()
    """What a row is as a partial of its own, a column each, over arguments, in the types of `lifts`. None: it must be
    aggregated to be one."""


_MEAN = "if(var_pop({0}) = 0, max({0}), avg({0}))"
"""Where all values are the same the mean is that very value, as where Spark sees them one by one. Three times 0.1,
added up and divided, is another number, and slices that differ in nothing would seem to differ."""

_VARIANCE = ("count({0})", _MEAN, "var_pop({0})")
_LEFT, _RIGHT = "CASE WHEN {1} IS NOT NULL THEN {0} END", "CASE WHEN {0} IS NOT NULL THEN {1} END"
"""Of pairs, where neither is NULL."""

KINDS: dict[str, Kind] = {
    "rows": Kind(("count(1)",), FOLD | Algebra.INVERTIBLE, ("sum({0})",), own=("1L",)),
    "count": Kind(
        ("count({0})",), FOLD | Algebra.INVERTIBLE, ("sum({0})",), own=("CASE WHEN {0} IS NULL THEN 0L ELSE 1L END",)
    ),
    "sum": Kind(("sum({0})",), FOLD | Algebra.INVERTIBLE, ("sum({0})",), own=("{0}",)),
    "max": Kind(("max({0})",), CHOICE, ("max({0})",), own=("{0}",)),
    "min": Kind(("min({0})",), CHOICE, ("min({0})",), own=("{0}",)),
    # The ordering stands first, so that the selective family chooses by its first column.
    "max_by": Kind(("max({1})", "max_by({0}, {1})"), CHOICE, ("max({0})", "max_by({1}, {0})")),
    "min_by": Kind(("min({1})", "min_by({0}, {1})"), CHOICE, ("min({0})", "min_by({1}, {0})")),
    "bit_and": Kind(("bit_and({0})",), FOLD, ("bit_and({0})",)),
    "bit_or": Kind(("bit_or({0})",), FOLD, ("bit_or({0})",)),
    "bit_xor": Kind(("bit_xor({0})",), FOLD, ("bit_xor({0})",)),
    # Central moments, not power sums: the squares of values far from zero would swallow their differences.
    "moments_2": Kind(_VARIANCE, FOLD),
    "moments_3": Kind((*_VARIANCE, "skewness({0})"), FOLD),
    "moments_4": Kind((*_VARIANCE, "skewness({0})", "kurtosis({0})"), FOLD),
    "comoments": Kind(
        (
            "count({0}, {1})",
            _MEAN.replace("{0}", _LEFT),
            _MEAN.replace("{0}", _RIGHT),
            "covar_pop({0}, {1})",
            f"var_pop({_LEFT})",
            f"var_pop({_RIGHT})",
        ),
        FOLD,
    ),
    # Values and how often each came: a list a slice is far cheaper to send than a row a value.
    "frequencies": Kind(("collect_list({0})",), FOLD | Algebra.INVERTIBLE, ("flatten(collect_list({0}))",), 2),
    "distinct": Kind(("collect_set({0})",), FOLD, ("array_distinct(flatten(collect_list({0})))",), 2),
    # Pairs of a value and what it adds: values and their sums.
    "sums": Kind(("collect_list({0})",), FOLD, ("flatten(collect_list({0}))",), 2),
    # Sketches are the same: samples of values with weights. `theta` also keeps below what its hashes are whole.
    "theta": Kind(("theta_sketch_agg({0}, {setting})",), FOLD, ("theta_union_agg({0}, {setting})",), 3),
    "kll_bigint": Kind(("kll_sketch_agg_bigint({0}, {setting})",), FOLD, ("kll_merge_agg_bigint({0}, {setting})",), 2),
    # A sketch of doubles leaves NaN out, and Spark's percentiles do not.
    "kll_double": Kind(
        ("kll_sketch_agg_double({0}, {setting})", "count_if(isnan({0}))"),
        FOLD,
        ("kll_merge_agg_double({0}, {setting})", "sum({1})"),
        2,
    ),
    **{
        f"heavy_{kind}": Kind(("approx_top_k_accumulate({0}, {setting}).sketch",), FOLD, (), 2)
        for kind in ("double", "bigint", "string")
    },
}


@dataclass(frozen=True, slots=True)
class Component:
    """A kind over arguments (Spark SQL): equal components are kept once, whoever asked for them."""

    kind: str
    arguments: tuple[str, ...] = ()
    setting: int = 0
    """How large a sketch may grow, in its own measure."""

    @property
    def lifts(self) -> tuple[str, ...]:
        return self._set(KINDS[self.kind].lifts)

    @property
    def merges(self) -> tuple[str, ...]:
        return self._set(KINDS[self.kind].merges)

    @property
    def own(self) -> tuple[str, ...]:
        """A row's own partial, over the texts of the arguments."""
        return tuple(text.format(*(f"({a})" for a in self.arguments)) for text in KINDS[self.kind].own)

    @property
    def synopsis(self) -> bool:
        """Whether a partial has no fixed size."""
        return KINDS[self.kind].synopsis > 0

    @property
    def width(self) -> int:
        """Columns of a partial as buckets keep it."""
        return KINDS[self.kind].synopsis or len(KINDS[self.kind].lifts)

    def _set(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text.replace("{setting}", str(self.setting)) for text in texts)

    @property
    def algebra(self) -> Algebra:
        return KINDS[self.kind].algebra
