"""Whether a row is late: one of the query's own windows over it has ended, and is not answered again.

One rule, `MissedWindows`, in two languages: numpy counts late rows per query from slices, and SQL selects the rows
themselves for a side output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.engine.layout import Layout, QueryLayout, TreeLayout
from weft.engine.state.partials import Partials
from weft.model import Window


@dataclass(frozen=True, slots=True)
class MissedWindows:
    """The times whose rows are late for a query: the earliest of its windows over them is one of the closed ones."""

    window: Window
    first: int | None
    """The begin of the query's first window; None: the query has no first window."""
    last: int
    """The begin of its last closed window."""
    answered: tuple[int, int] | None = None
    """SLIDE AT MOST: the window that was answered last, `[begin, end)`; only its rows are late. None: every window is
    answered."""

    @classmethod
    def of(cls, query: QueryLayout, closed: int, answered: Mapping[str, int]) -> MissedWindows | None:
        """Of the windows that ended by `closed` within the query's lifetime; None: there are none yet."""
        w = query.window
        first = None if query.since is None else w.begin(w.first_begun(query.since))
        last = w.begin(w.last_ended(closed if query.until is None else min(closed, query.until)))
        if query.requested_window is None:
            return cls(w, first, last)
        end = answered.get(query.name)
        return None if end is None else cls(w, first, last, (end - w.length, end))

    def include(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        w = self.window
        begins = w.offset + ((times - w.offset - w.length) // w.slide + 1) * w.slide
        if self.first is not None:
            begins = np.maximum(begins, self.first)
        missed: npt.NDArray[np.bool_] = (begins <= self.last) & (begins <= times)
        if self.answered is not None:
            missed &= (times >= self.answered[0]) & (times < self.answered[1])
        return missed

    def to_sql(self, time: str) -> str:
        """The same condition on a column of times, as Spark SQL.

        >>> MissedWindows(Window(12, 9), None, 18).to_sql("t")
        '(t - pmod(t - 12L, 9L) + -3L) <= 18L AND (t - pmod(t - 12L, 9L) + -3L) <= t'
        """
        w = self.window
        begin = f"({time} - pmod({time} - {w.offset + w.length}L, {w.slide}L) + {w.slide - w.length}L)"
        if self.first is not None:
            begin = f"greatest({begin}, {self.first}L)"
        missed = f"{begin} <= {self.last}L AND {begin} <= {time}"
        if self.answered is not None:
            missed += f" AND {time} >= {self.answered[0]}L AND {time} < {self.answered[1]}L"
        return missed


def count_late_rows(fresh: Partials, tree: TreeLayout, layout: Layout, watermark: int) -> dict[str, int]:
    """How many rows are too late for each query of the tree; the first component of a partial counts its rows."""
    closed = _closed(layout, watermark)
    early = np.flatnonzero(fresh.slices < closed)
    if not len(early):
        return {}
    slices = fresh.slices[early]
    rows = fresh.columns[0][0].to_numpy(zero_copy_only=False)[early]
    counts: dict[str, int] = {}
    for query in tree.queries:
        missed = None if query.name in layout.backfilling else MissedWindows.of(query, closed, layout.answered)
        if missed is None:
            continue
        # All times in a slice lie in the same windows, so its begin stands for them.
        late = missed.include(slices)
        bit = tree.filters[query.filter]
        if bit is not None:
            late &= bit.passed([word[early] for word in fresh.words])
        if late.any():
            counts[query.name] = int(rows[late].sum())
    return counts


def late_condition(layout: Layout, watermark: int, time: str) -> str:
    """Whether a row is too late for some query and passes its filter, as Spark SQL over the column `time`."""
    closed = _closed(layout, watermark)
    conditions = set()
    for query in layout.queries:
        missed = None if query.name in layout.backfilling else MissedWindows.of(query, closed, layout.answered)
        if missed is not None:
            passes = "" if query.filter is None else f" AND ({query.filter})"
            conditions.add(f"({missed.to_sql(time)}{passes})")
    return f"{time} < {closed}L AND ({' OR '.join(sorted(conditions)) or 'false'})"


def _closed(layout: Layout, watermark: int) -> int:
    """The time by which a window must end so that it is not answered again."""
    return watermark - layout.allowed_lateness
