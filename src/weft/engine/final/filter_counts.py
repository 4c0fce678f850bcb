"""How many rows each query's filter let through."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weft.engine.layout import FeedLayout, FilterBit
from weft.engine.state.partials import Longs, Partials


def matched_rows(fresh: Partials, feed: FeedLayout) -> dict[str, int]:
    """Rows of the feed's partials that passed each query's filter; the first component counts rows.

    Rows are added up for each signature first: what a filter costs then depends on the number of signatures, not on
    the number of partials.
    """
    rows = fresh.columns[0][0].to_numpy(zero_copy_only=False)
    places, codes = _signatures(fresh)
    totals = np.zeros(len(places), np.int64)
    np.add.at(totals, codes, rows)
    words = [word[places] for word in fresh.words]
    counts: dict[FilterBit | None, int] = {None: int(totals.sum())}
    found: dict[str, int] = {}
    for tree in feed.trees:
        for query in tree.queries:
            bit = tree.filters[query.filter]
            if bit is not None and bit not in counts:
                counts[bit] = int(totals[bit.passed(words)].sum())
            found[query.name] = counts[bit]
    return found


def _signatures(fresh: Partials) -> tuple[Longs, Longs]:
    """A place of each different signature, and for each partial which of them it has."""
    codes = np.zeros(len(fresh), np.int64)
    for word in fresh.words:
        of_word = _coded(word)
        codes = _coded(codes * (1 + of_word.max(initial=0)) + of_word)
    places = np.zeros(1 + codes.max(initial=-1), np.int64)
    places[codes] = np.arange(len(codes))
    return places, codes


def _coded(values: Longs) -> Longs:
    """Numbers from 0 for different values; by hashing, which is far cheaper than by order."""
    indices: Longs = pa.array(values).dictionary_encode().indices.to_numpy().astype(np.int64)
    return indices
