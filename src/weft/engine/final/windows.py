"""Windows that are due: which of a query's windows are answered now, and where the partials of each one lie."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.aggregates import Component
from weft.engine.combine.base import Longs
from weft.engine.layout import FOREVER, CallLayout, QueryLayout
from weft.engine.state.partials import Partials
from weft.kernels import count_windows, fill_windows, locate_windows
from weft.model import Refresh, Window


@dataclass(slots=True)
class DueWindows:
    """Windows that have an answer: their group, their number k, and their partials `[lo, hi)`."""

    window: Window
    groups: npt.NDArray[np.int32]
    ks: Longs
    lo: Longs
    hi: Longs
    combined: dict[Component, tuple[pa.Array, ...]] = field(default_factory=dict)
    """Components that are already combined over these windows; queries share them."""
    lowered: dict[CallLayout, pa.Array] = field(default_factory=dict)
    """Answers of calls that are already computed over these windows; queries share them."""

    @property
    def starts(self) -> Longs:
        return self.ks * self.window.slide + self.window.offset


@dataclass(frozen=True, slots=True)
class WindowNumbers:
    """The windows number `first` to `last`, both included; `first` None: from the earliest window that has a row."""

    window: Window
    first: int | None
    last: int


def ending_between(query: QueryLayout, after: int | None, until: int) -> WindowNumbers:
    """The windows of the query that end in `(after, until]`; `after` None: every window that ends by `until`."""
    first = None if after is None else query.window.last_ended(after) + 1
    if query.since is not None:
        since = query.window.first_begun(query.since)
        first = since if first is None else max(first, since)
    last = query.window.last_ended(until if query.until is None else min(until, query.until))
    return WindowNumbers(query.window, first, last)


def refreshed(query: QueryLayout, refresh: Refresh) -> WindowNumbers:
    """The windows that a SLIDE AT MOST query answers in one refresh."""
    window, first = query.requested_window, None
    assert window is not None
    if refresh.first is not None:
        begin = refresh.first - window.length
        window = Window(window.length, refresh.step, begin % refresh.step)
        first = window.first_begun(begin)
    if query.since is not None:
        first = max(window.first_begun(query.since), -FOREVER if first is None else first)
    last = window.last_ended(refresh.last if query.until is None else min(refresh.last, query.until))
    return WindowNumbers(window, first, last)


class WindowIndex:
    """Finds the windows of partials, which are in the order of group and slice."""

    def __init__(self, partials: Partials, group_count: int) -> None:
        self._partials = partials
        self._group_count = group_count
        self._due: dict[WindowNumbers, DueWindows | None] = {}

    @cached_property
    def offsets(self) -> Longs:
        """Where the partials of each group begin."""
        return self._partials.offsets(self._group_count)

    @cached_property
    def _span(self) -> tuple[int, int]:
        return int(self._partials.slices.min()), int(self._partials.slices.max())

    def enumerate(self, numbers: WindowNumbers) -> DueWindows | None:
        """Those of the windows that hold a partial, per group; None: there are none."""
        if numbers not in self._due:
            self._due[numbers] = self._enumerate(numbers) if len(self._partials) else None
        return self._due[numbers]

    def _enumerate(self, numbers: WindowNumbers) -> DueWindows | None:
        window = numbers.window
        earliest, latest = self._span
        first = window.first_over(earliest)
        if numbers.first is not None:
            first = max(first, numbers.first)
        last = min(window.last_over(latest), numbers.last)
        if first > last:
            return None
        bounds = (self._partials.slices, self.offsets, window.length, window.slide, window.offset, first, last)
        starts = np.concatenate([[0], np.cumsum(count_windows(*bounds))])
        total = int(starts[-1])
        if total == 0:
            return None
        ks, lo, hi = (np.empty(total, np.int64) for _ in range(3))
        due = DueWindows(window, np.empty(total, np.int32), ks, lo, hi)
        fill_windows(*bounds, starts, due.groups, due.ks, due.lo, due.hi)
        return due

    def holding(self, new: Partials, numbers: WindowNumbers) -> DueWindows | None:
        """Those of the windows that hold a partial of `new`; None: there are none."""
        window = numbers.window
        assert numbers.first is not None
        first = np.maximum((new.slices - window.offset - window.length) // window.slide + 1, numbers.first)
        last = np.minimum((new.slices - window.offset) // window.slide, numbers.last)
        counts = np.maximum(last - first + 1, 0)
        if not counts.any():
            return None
        groups = np.repeat(new.groups, counts)
        ks = np.arange(counts.sum()) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        order = np.lexsort((ks, groups))
        groups, ks = groups[order], ks[order]
        once = np.append(True, (groups[1:] != groups[:-1]) | (ks[1:] != ks[:-1]))
        groups, ks = groups[once], ks[once]
        begins = ks * window.slide + window.offset
        lo, hi = locate_windows(self._partials.slices, self.offsets, groups, begins, begins + window.length)
        return DueWindows(window, groups, ks, lo, hi)
