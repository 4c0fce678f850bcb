"""The techniques, what each needs of an operator, and how to create one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from weft.aggregates.kind import Algebra
from weft.aggregates.operators import NEEDS, accepts, fallback
from weft.kernels.techniques.b_int import b_int
from weft.kernels.techniques.blocks import BLOCKS
from weft.kernels.techniques.combine import OPERATORS, Operator
from weft.kernels.techniques.daba import daba
from weft.kernels.techniques.flat_fat import flat_fat
from weft.kernels.techniques.flat_fit import flat_fit
from weft.kernels.techniques.panes import PANES, panes
from weft.kernels.techniques.panes_inv import panes_inv
from weft.kernels.techniques.prefix import PREFIX
from weft.kernels.techniques.slick_deque_inv import slick_deque_inv
from weft.kernels.techniques.slick_deque_non_inv import slick_deque_non_inv
from weft.kernels.techniques.technique import Technique, compiled
from weft.kernels.techniques.two_stacks import two_stacks
from weft.model import PlanError


class ImpossiblePair(PlanError):
    """A technique that needs more of an operator than the operator can do."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a technique is created for an operator: as plain functions, which run as they are or compiled."""

    name: str
    needs: Algebra
    make: Callable[[Operator], Technique]
    many: bool = False
    """Answers many ranges at once from one structure."""

    def accepts(self, operator: Operator) -> bool:
        return self.needs in operator.algebra

    def of(self, operator: Operator, called: str = "this operator") -> Technique:
        lacks = self.needs & ~operator.algebra
        if lacks:
            raise ImpossiblePair(
                f"{self.name} needs an operator that is {_words(self.needs)}, and {called} is not {_words(lacks)}; "
                f"it can be served by {', '.join(r.name for r in TECHNIQUES.values() if r.accepts(operator))}"
            )
        return self.make(operator)


def _words(algebra: Algebra) -> str:
    return " and ".join(str(part.name).lower() for part in algebra)


TECHNIQUES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("panes", NEEDS["panes"], panes, many=True),
        Recipe("panes_inv", NEEDS["panes_inv"], panes_inv),
        Recipe("flat_fat", NEEDS["flat_fat"], flat_fat, many=True),
        Recipe("b_int", NEEDS["b_int"], b_int, many=True),
        Recipe("two_stacks", NEEDS["two_stacks"], two_stacks),
        Recipe("daba", NEEDS["daba"], daba),
        Recipe("flat_fit", NEEDS["flat_fit"], flat_fit, many=True),
        Recipe("slick_deque_inv", NEEDS["slick_deque_inv"], slick_deque_inv, many=True),
        Recipe("slick_deque_non_inv", NEEDS["slick_deque_non_inv"], slick_deque_non_inv, many=True),
    )
}
"""The techniques of the dissertation."""

OWN: Mapping[str, Mapping[str, Technique]] = {"blocks": BLOCKS, "prefix": PREFIX}
"""Techniques of weft itself, which answer whole columns only."""


@cache
def technique(name: str, operator: str) -> Technique:
    """The compiled technique for an operator of `OPERATORS`; also those of weft itself.

    >>> technique("slick_deque_inv", "max")
    Traceback (most recent call last):
    weft.kernels.techniques.registry.ImpossiblePair: slick_deque_inv needs an operator that is invertible, and max is \
not invertible; it can be served by panes, flat_fat, b_int, two_stacks, daba, flat_fit, slick_deque_non_inv
    """
    if not accepts(name, operator) and name in OWN:
        raise ImpossiblePair(f"{name} serves {', '.join(OWN[name])} only, not {operator}")
    if name in OWN:
        return OWN[name][operator]
    if name == "panes":
        return PANES[operator]
    return compiled(TECHNIQUES[name].of(OPERATORS[operator], operator), f"{name}_{operator}")


__all__ = ["OWN", "TECHNIQUES", "ImpossiblePair", "Recipe", "accepts", "fallback", "technique"]
