"""How many slices a union of edge classes cuts, exactly.

`density` is edges per unit of time, in any unit; `edge_rate` is slices per second for edges in microseconds, as
the rest of weft has them.

>>> from weft.model import Edges
>>> density(Edges.of_classes([(2, 0), (3, 0), (4, 0), (5, 0), (6, 0)])) * 60
Fraction(44, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache

from weft.model import Edges
from weft.optimizer.edge_counting import bit_set, exact, f1, interval

MICROSECONDS_A_SECOND = 1_000_000

Density = Callable[[Edges], Fraction]

COUNTERS: Mapping[str, Density] = {"bit_set": bit_set.density, "f1": f1.density, "exact": exact.density}
"""All are exact; the two of the papers refuse composite slides that are too long, or too many groups."""

density: Density = exact.density
"""The default counter."""


def edge_rate(edges: Edges) -> Fraction:
    """Slices per second."""
    classes = edges.classes
    if len(classes) <= 2 and classes[0][0] == classes[-1][0]:
        return _rate_of_one_slide(len(classes), classes[0][0])
    return density(edges) * MICROSECONDS_A_SECOND


def edge_rate_between(edges: Edges) -> tuple[Fraction, Fraction]:
    """Slices per second, at least the first and at most the second number; equal where counting is fast enough."""
    classes = edges.classes
    if len(classes) <= 2 and classes[0][0] == classes[-1][0]:
        rate = _rate_of_one_slide(len(classes), classes[0][0])
        return rate, rate
    low, high = interval.density_between(edges)
    return low * MICROSECONDS_A_SECOND, high * MICROSECONDS_A_SECOND


@lru_cache(maxsize=1 << 14)
def _rate_of_one_slide(classes: int, slide: int) -> Fraction:
    return Fraction(classes * MICROSECONDS_A_SECOND, slide)
