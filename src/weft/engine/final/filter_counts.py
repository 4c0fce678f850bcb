"""How many rows pass each query's filter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weft.engine.layout import FeedLayout, FilterBit
from weft.engine.state.partials import Longs, Partials


def matched_rows(fresh: Partials, feed: FeedLayout) -> dict[str, int]:
    """Rows of the feed's partials that pass each query's filter; the first component counts rows.

    Rows are added per signature first: the cost per filter then depends on the number of signatures, not on the number
    of partials.
    """
    rows = fresh.columns[0][0].to_numpy(zero_copy_only=False)
    positions, codes = _signatures(fresh)
    totals = np.zeros(len(positions), np.int64)
    np.add.at(totals, codes, rows)
    words = [word[positions] for word in fresh.words]
    counts: dict[FilterBit | None, int] = {None: int(totals.sum())}
    matched: dict[str, int] = {}
    for tree in feed.trees:
        for query in tree.queries:
            bit = tree.filters[query.filter]
            if bit is not None and bit not in counts:
                counts[bit] = int(totals[bit.passed(words)].sum())
            matched[query.name] = counts[bit]
    return matched


def _signatures(fresh: Partials) -> tuple[Longs, Longs]:
    """A position of each distinct signature, and for each partial the number of its signature."""
    codes = np.zeros(len(fresh), np.int64)
    for word in fresh.words:
        of_word = _coded(word)
        codes = _coded(codes * (1 + of_word.max(initial=0)) + of_word)
    positions = np.zeros(1 + codes.max(initial=-1), np.int64)
    positions[codes] = np.arange(len(codes))
    return positions, codes


def _coded(values: Longs) -> Longs:
    """Numbers from 0 for the distinct values; by hashing, which is much cheaper than sorting."""
    indices: Longs = pa.array(values).dictionary_encode().indices.to_numpy().astype(np.int64)
    return indices
