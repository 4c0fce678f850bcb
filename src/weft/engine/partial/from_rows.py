"""Partials that a bucket builds from rows, for feeds that Spark does not aggregate.

If almost every row has its own group, one partial per row and grouping is larger than the row itself. Such a row is
sent once to each bucket that has one of its groups, and the bucket groups it with one hash table per feed.
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


class ComponentFailed(RunError):
    """A component that cannot be computed for some group, because its sum leaves the range of its type."""

    def __init__(self, component: Component, reason: str) -> None:
        super().__init__(reason)
        self.component = component


@dataclass(frozen=True, slots=True)
class RowFeed:
    """A feed that gets rows, and the columns of the rows that its partials are built from."""

    feed: int
    mask: str
    """The column with the bit that says whether a row's group is in this bucket."""
    bit: int
    columns: Mapping[str, str]
    """The rows' column for each column of the partials; there is none for row counts."""


class RowGrouping:
    """The rows of a bucket. The columns that groups, slices and signatures depend on are encoded once for all feeds."""

    def __init__(self, rows: pa.Table, row_feeds: Sequence[RowFeed], feeds: Sequence[FeedLayout]) -> None:
        self._row_feeds = {row_feed.feed: row_feed for row_feed in row_feeds}
        read = dict.fromkeys(name for row_feed in row_feeds for name in (row_feed.mask, *row_feed.columns.values()))
        self._columns: dict[str, pa.Array] = {name: rows.column(name).combine_chunks() for name in read}
        by = dict.fromkeys(
            self._row_feeds[feed.number].columns[name]
            for feed in feeds
            if feed.number in self._row_feeds
            for name in _identity(feed)
        )
        encoded, self._code_columns, width = [], dict[str, list[int]](), 0
        for name in by:
            column = self._columns[name]
            codes = code_for(rows.schema.field(name)).encode(column)
            if not column.null_count:  # then the number that marks NULL is not needed
                codes = codes[:, :1]
            encoded.append(codes)
            self._code_columns[name] = list(range(width, width + codes.shape[1]))
            width += codes.shape[1]
        self._codes: Longs = plain(np.column_stack(encoded), np.int64)

    def __contains__(self, feed: FeedLayout) -> bool:
        return feed.number in self._row_feeds

    def partials(self, feed: FeedLayout) -> pa.Table | None:
        """rows      (masks..., columns...)
        partials  (slice, words..., keys..., components...), one per group, slice and signature of the feed

        None: no row has a group in this bucket.
        """
        source = self._row_feeds[feed.number]
        in_bucket: Longs = np.flatnonzero(self._columns[source.mask].to_numpy() & np.int64(1 << source.bit))
        if not len(in_bucket):
            return None
        identity = _identity(feed)
        code_columns = [code_column for name in identity for code_column in self._code_columns[source.columns[name]]]
        groups, firsts = number_rows(self._codes, np.array(code_columns, np.int64), in_bucket)
        offsets = group_offsets(groups, len(firsts))
        order = pa.array(in_bucket[counting_order(groups, np.arange(len(in_bucket)), len(firsts))])
        first = pa.array(firsts)
        partials = {name: self._columns[source.columns[name]].take(first) for name in identity}
        for component, names in zip(feed.components, feed.columns, strict=True):
            if isinstance(component.definition.combine, RowCount):
                partials[names[0]] = pa.array(np.diff(offsets))
                continue
            columns = tuple(self._columns[source.columns[name]].take(order) for name in names)
            try:
                combined = combiner_of(component.definition, columns).combine(offsets[:-1], offsets[1:])
            except WeftError as error:
                raise ComponentFailed(component, str(error)) from None
            partials.update(zip(names, combined, strict=True))
        return pa.table(partials)


def _identity(feed: FeedLayout) -> tuple[str, ...]:
    """The columns that identify a partial of the feed."""
    return ("slice", *feed.words, *feed.key_columns)
