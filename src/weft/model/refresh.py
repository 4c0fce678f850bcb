"""SLIDE AT MOST: when such a query may be answered, and for which windows.

A query that needs an answer at least every two minutes lets weft decide when. Its slices are cut at every interval,
and any window that begins and ends at one may be answered next. The interval depends on the query alone, so that its
windows stay the same when other queries join or leave. Each interval divides the next one, so that queries whose
periods have little in common still share slices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from weft.model.acq import ACQ
from weft.model.window import Window

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE

INTERVALS = (
    *(1, 10, 50, 100, 500, 1_000, 10_000, 50_000, 100_000, 500_000),
    *(n * _SECOND for n in (1, 5, 15, 30)),
    *(n * _MINUTE for n in (1, 5, 15, 30)),
    *(n * _HOUR for n in (1, 6, 12, 24)),
)
"""In microseconds; each divides the next."""


def interval(window: Window) -> int:
    """The longest of the intervals that divides range, slide and offset.

    >>> windows = [Window(10 * _MINUTE, 2 * _MINUTE), Window(15 * _MINUTE, 3 * _MINUTE), Window(2 * _HOUR, 2 * _HOUR)]
    >>> [interval(window) // _MINUTE for window in windows]
    [1, 1, 60]
    """
    common = gcd(window.length, window.slide, window.offset)
    return max(each for each in INTERVALS if common % each == 0)


def at_intervals(query: ACQ) -> ACQ:
    """A query with SLIDE AT MOST, with its interval as the slide; others unchanged."""
    if query.refresh == "exact" or query.requested_window is not None:
        return query
    return replace(query, window=Window(query.window.length, interval(query.window)), requested_window=query.window)


@dataclass(frozen=True, slots=True)
class Refresh:
    """The windows that a query is answered for in a batch: those that end at `first`, `first + step`, ... up to `last`.

    Without a first one: all windows of the query, as the user wrote it, that hold rows.
    """

    first: int | None
    last: int
    step: int

    @property
    def count(self) -> int:
        """The number of windows; 1 where there is no first."""
        return 1 if self.first is None else (self.last - self.first) // self.step + 1
