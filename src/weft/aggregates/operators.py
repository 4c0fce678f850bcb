"""The operators that combine partials, what each can do, and what each technique asks for.

Facts alone: `weft.kernels` has the loops, and whoever only plans need not wait until they are read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from weft.aggregates.kind import CHOICE, FOLD, Algebra

_BY_PLACE = Algebra.ASSOCIATIVE | Algebra.SELECTIVE
"""Of equal keys the place decides, so the order of the arguments matters: not commutative."""

ALGEBRAS: Mapping[str, Algebra] = {
    "int_sum": FOLD | Algebra.INVERTIBLE,
    "float_sum": FOLD,
    "max": CHOICE,
    "min": CHOICE,
    "bit_and": FOLD,
    "bit_or": FOLD,
    "bit_xor": FOLD | Algebra.INVERTIBLE,
    "argmax_last": _BY_PLACE,
    "argmax_first": _BY_PLACE,
    "moments_2": FOLD,
    "moments_3": FOLD,
    "moments_4": FOLD,
    "comoments": FOLD,
}
"""Every operator, and what it can do."""

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
"""The techniques of the dissertation, and what each asks of an operator."""

OWN: Mapping[str, Collection[str]] = {"blocks": tuple(ALGEBRAS), "prefix": ("int_sum",)}
"""weft's own techniques, and the operators that each serves."""


def accepts(technique: str, operator: str) -> bool:
    """Whether the technique can serve the operator.

    >>> accepts("slick_deque_inv", "max"), accepts("blocks", "max"), accepts("prefix", "int_sum")
    (False, True, True)
    """
    return operator in OWN[technique] if technique in OWN else NEEDS[technique] in ALGEBRAS[operator]


def fallback(operator: str) -> str:
    """What serves an operator where nothing was chosen, or what was chosen cannot.

    >>> fallback("int_sum"), fallback("max")
    ('prefix', 'blocks')
    """
    return "prefix" if accepts("prefix", operator) else "blocks"
