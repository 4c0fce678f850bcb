"""How often a table is emptied if its queries have epochs of different lengths (section 7).

A table must be empty whenever an epoch of some query below it ends: at all multiples of their lengths.

>>> eviction_rate((2, 3, 5)) * 30
Fraction(22, 1)
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from weft.model import Edges, WeftError
from weft.optimizer.edge_counting import density


def eviction_rate(epochs: Iterable[int]) -> Fraction:
    """Times per unit of time."""
    return _rate(frozenset(epochs))


@lru_cache(maxsize=1 << 14)
def _rate(lengths: frozenset[int]) -> Fraction:
    if not lengths or min(lengths) < 1:
        raise WeftError(f"epochs need at least one length, and lengths are integers from 1 on; got {sorted(lengths)}")
    # Ends of epochs are edges of tumbling windows: the edge counter counts them without 2**n terms.
    return density(Edges.of_classes((length, 0) for length in lengths))
