"""The operators that combine partials, what each can do, and what each technique needs.

Only facts: `weft.kernels` has the loops, and planning does not load them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from weft.aggregates.kind import CHOICE, FOLD, Algebra

_BY_POSITION = Algebra.ASSOCIATIVE | Algebra.SELECTIVE
"""Of equal keys the position decides, so the order of the arguments matters: not commutative."""


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """The properties of an operator that plans and techniques use."""

    algebra: Algebra
    serves: str = ""
    """The aggregates that it serves, in words; empty: the aggregate of the same name."""
    priced_as: str = ""
    """The operator whose measured speeds are close to its own; empty: it is measured itself."""


OPERATOR_FACTS: Mapping[str, OperatorFacts] = {
    "int_sum": OperatorFacts(FOLD | Algebra.INVERTIBLE, "counts and sums of integers"),
    "float_sum": OperatorFacts(FOLD, "sums of floats"),
    "max": OperatorFacts(CHOICE, "max and min of numbers"),
    "min": OperatorFacts(CHOICE),
    "bit_and": OperatorFacts(FOLD, priced_as="max"),
    "bit_or": OperatorFacts(FOLD, priced_as="max"),
    "bit_xor": OperatorFacts(FOLD | Algebra.INVERTIBLE, priced_as="max"),
    "argmax_last": OperatorFacts(_BY_POSITION, "max of texts, max_by, last"),
    "argmax_first": OperatorFacts(_BY_POSITION, "min of texts, min_by, first", priced_as="argmax_last"),
    "moments_2": OperatorFacts(FOLD, "variance"),
    "moments_3": OperatorFacts(FOLD, "skewness", priced_as="moments_2"),
    "moments_4": OperatorFacts(FOLD, "kurtosis", priced_as="comoments"),
    "comoments": OperatorFacts(FOLD, "covariance"),
}

ALGEBRAS: Mapping[str, Algebra] = {name: facts.algebra for name, facts in OPERATOR_FACTS.items()}

NEEDS: Mapping[str, Algebra] = {
    "panes": Algebra.ASSOCIATIVE,
    "panes_inv": Algebra.INVERTIBLE,
    "flat_fat": Algebra.ASSOCIATIVE,
    "b_int": Algebra.ASSOCIATIVE,
    "two_stacks": Algebra.ASSOCIATIVE,
    "daba": Algebra.ASSOCIATIVE,
    "flat_fit": Algebra.ASSOCIATIVE,
    "slick_deque_inv": Algebra.INVERTIBLE,
    "slick_deque_non_inv": Algebra.SELECTIVE,
}
"""The techniques of the dissertation, and what each needs of an operator."""

OWN: Mapping[str, Collection[str]] = {"blocks": tuple(ALGEBRAS), "prefix": ("int_sum",)}
"""weft's own techniques, and the operators that each serves."""


def accepts(technique: str, operator: str) -> bool:
    """Whether the technique can serve the operator.

    >>> accepts("slick_deque_inv", "max"), accepts("blocks", "max"), accepts("prefix", "int_sum")
    (False, True, True)
    """
    return operator in OWN[technique] if technique in OWN else NEEDS[technique] in ALGEBRAS[operator]


def fallback(operator: str) -> str:
    """The technique for an operator if none was chosen, or if the chosen one cannot serve it.

    >>> fallback("int_sum"), fallback("max")
    ('prefix', 'blocks')
    """
    return "prefix" if accepts("prefix", operator) else "blocks"
