"""How often a table is emptied where its queries have epochs of different lengths (section 7).

A table must be empty whenever an epoch of some query below it ends: at all multiples of their lengths.

>>> evictions((2, 3, 5), cycle=30)
22
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import lcm

from weft.model import Edges, WeftError
from weft.optimizer.edge_counting import density


def eviction_rate(epochs: Iterable[int]) -> Fraction:
    """Times a unit of time."""
    return _rate(frozenset(epochs))


def evictions(epochs: Iterable[int], cycle: int | None = None) -> int:
    """Times in a cycle, which is the least common multiple where none is given (equation 24)."""
    lengths = frozenset(epochs)
    times = _rate(lengths) * (lcm(*lengths) if cycle is None else cycle)
    if times.denominator != 1:
        raise WeftError(f"a cycle of {cycle} is no multiple of the epochs {sorted(lengths)}; give one that is")
    return int(times)


@lru_cache(maxsize=1 << 14)
def _rate(lengths: frozenset[int]) -> Fraction:
    if not lengths or min(lengths) < 1:
        raise WeftError(f"epochs are whole numbers from 1 on, one at least, got {sorted(lengths)}")
    # Ends of epochs are edges of windows that tumble: the counter of edges counts them without 2**n terms.
    return density(Edges.of_classes((length, 0) for length in lengths))
