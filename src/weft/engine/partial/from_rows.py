"""Rows that come to a bucket as they are, and the partials that feeds have of them.

Where next to every row has a group of its own, a row for each grouping is more than the row itself: it is sent once to
each bucket that has a group of its, and told apart there, in one hash table a feed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.aggregates import Component
from weft.aggregates.combining import RowCount
from weft.engine.combine.registry import combiner_of
from weft.engine.layout import FeedLayout
from weft.engine.partial.key_codes import code_for
from weft.kernels import group_offsets, plain
from weft.kernels.group_ids import number_rows
from weft.kernels.order import counting_order
from weft.model import RunError, WeftError

Longs = NDArray[np.int64]


class NotGathered(RunError):
    """A component that some rows have none of: their sum leaves its type."""

    def __init__(self, component: Component, reason: str) -> None:
        super().__init__(reason)
        self.component = component


@dataclass(frozen=True, slots=True)
class Scattered:
    """Where rows have what a feed's partials are made of."""

    feed: int
    mask: str
    """The column with a bit that says of a row whether its group is in this bucket."""
    bit: int
    columns: Mapping[str, str]
    """The column of the rows for each of the partials; how many rows there are is counted."""


class Gathering:
    """The rows of a bucket. Whatever tells groups apart is numbered once for all feeds."""

    def __init__(self, rows: pa.Table, scattered: Sequence[Scattered], feeds: Sequence[FeedLayout]) -> None:
        self._scattered = {one.feed: one for one in scattered}
        read = dict.fromkeys(name for one in scattered for name in (one.mask, *one.columns.values()))
        self._columns: dict[str, pa.Array] = {name: rows.column(name).combine_chunks() for name in read}
        by = dict.fromkeys(
            self._scattered[feed.number].columns[name]
            for feed in feeds
            if feed.number in self._scattered
            for name in _telling(feed)
        )
        encoded, self._places, width = [], dict[str, list[int]](), 0
        for name in by:
            column = self._columns[name]
            codes = code_for(rows.schema.field(name)).encode(column)
            if not column.null_count:  # then a number that says whether it is NULL says nothing
                codes = codes[:, :1]
            encoded.append(codes)
            self._places[name] = list(range(width, width + codes.shape[1]))
            width += codes.shape[1]
        self._codes: Longs = plain(np.column_stack(encoded), np.int64)

    def __contains__(self, feed: FeedLayout) -> bool:
        return feed.number in self._scattered

    def partials(self, feed: FeedLayout) -> pa.Table | None:
        """rows      (masks..., columns...)
        partials  (slice, words..., keys..., components...), one for each group, slice and signature of the feed

        None: no row has a group here.
        """
        source = self._scattered[feed.number]
        mine: Longs = np.flatnonzero(self._columns[source.mask].to_numpy() & np.int64(1 << source.bit))
        if not len(mine):
            return None
        telling = _telling(feed)
        places = [place for name in telling for place in self._places[source.columns[name]]]
        groups, firsts = number_rows(self._codes, np.array(places, np.int64), mine)
        offsets = group_offsets(groups, len(firsts))
        order = pa.array(mine[counting_order(groups, np.arange(len(mine)), len(firsts))])
        first = pa.array(firsts)
        found = {name: self._columns[source.columns[name]].take(first) for name in telling}
        for component, names in zip(feed.components, feed.columns, strict=True):
            if isinstance(component.definition.combine, RowCount):
                found[names[0]] = pa.array(np.diff(offsets))
                continue
            columns = tuple(self._columns[source.columns[name]].take(order) for name in names)
            try:
                combined = combiner_of(component.definition, columns).combine(offsets[:-1], offsets[1:])
            except WeftError as error:
                raise NotGathered(component, str(error)) from None
            found.update(zip(names, combined, strict=True))
        return pa.table(found)


def _telling(feed: FeedLayout) -> tuple[str, ...]:
    """What tells the feed's partials apart."""
    return ("slice", *feed.words, *feed.key_columns)
