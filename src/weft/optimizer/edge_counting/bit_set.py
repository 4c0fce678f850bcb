"""The papers' counter: mark every edge of one composite slide, count the marks."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from weft.model import EdgeClass, Edges, PlanError

LONGEST_PERIOD = 1 << 24
"""Two megabytes of marks. A composite slide grows like the product of the slides: ten odd ones exceed any memory."""


class CompositeSlideTooLong(PlanError):
    """More marks than a bit set should hold."""


def density(edges: Edges) -> Fraction:
    """Edges per unit of time."""
    if edges.period > LONGEST_PERIOD:
        raise CompositeSlideTooLong(
            f"the composite slide is {edges.period} units long, a bit set holds {LONGEST_PERIOD}; use the exact counter"
        )
    return Fraction(marked(edges.classes, edges.period), edges.period)


def marked(classes: Iterable[EdgeClass], period: int) -> int:
    """The number of edges in `[0, period)`, where `period` is a multiple of each slide."""
    return marks(classes, period).bit_count()


def marks(classes: Iterable[EdgeClass], period: int) -> int:
    """The edges in `[0, period)` as bits."""
    marked_bits = 0
    for slide, shift in classes:
        comb, length = 1, slide  # a mark at every multiple of the slide below `length`
        while length < period:
            comb |= comb << length
            length *= 2
        comb &= (1 << period) - 1
        # The last tooth is at `period - slide`, so a shift below the slide moves none out of the period.
        marked_bits |= comb << shift % slide
    return marked_bits
