"""Rows that each query's filter lets through, counted from partials as plain loops count them from rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.aggregates import Component
from weft.engine import FeedLayout, GroupingLayout, QueryLayout, TreeLayout
from weft.engine.final.filter_counts import matched_rows
from weft.engine.layout import FilterBit
from weft.engine.state.partials import Partials
from weft.model import Edges, Window

WINDOW = Window(6, 3)
EDGES = Edges.of([WINDOW])
NOBODY = GroupingLayout(0, ())
ROWS = (Component("rows"),)
FILTERS = {
    "none": None, "low": FilterBit(0, 0), "sign": FilterBit(0, 63), "next": FilterBit(1, 5),
    "fifth": FilterBit(1, 8, 7, 5),
}  # fmt: skip
"""Where each query's filter stands; 63 is the sign of a word, and the last one is the fifth of seven in a chain."""


def feed() -> FeedLayout:
    def query(name: str) -> QueryLayout:
        return QueryLayout(name, WINDOW, None if FILTERS[name] is None else name, (), (), None, pa.schema([]))

    filters = {None if bit is None else name: bit for name, bit in FILTERS.items()}
    trees = [
        TreeLayout(n, NOBODY, EDGES, ROWS, filters, 2, tuple(map(query, names)))
        for n, names in enumerate([("none", "low"), ("sign", "next", "fifth")])
    ]
    return FeedLayout(0, NOBODY, EDGES, (), ("w0", "w1"), ROWS, (("c0",),), tuple(trees))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sets(st.sampled_from(["low", "sign", "next", "fifth"])), st.integers(1, 9)), max_size=30))
def test_matched_rows_are_those_that_pass_the_filter(partials: list[tuple[set[str], int]]) -> None:
    words = np.zeros((2, len(partials)), np.uint64)
    for i, (passed, _) in enumerate(partials):
        for name in passed:
            bit = FILTERS[name]
            assert bit is not None
            words[bit.word, i] |= np.uint64(bit.least + i % 3 if bit.mask > 1 else 1) << np.uint64(bit.shift)
    counts = pa.array([rows for _, rows in partials], pa.int64())
    slices = np.zeros(len(partials), np.int64)
    fresh = Partials(np.zeros(len(partials), np.int32), slices, tuple(words.view(np.int64)), ((counts,),))
    expected = {
        name: sum(rows for passed, rows in partials if bit is None or name in passed) for name, bit in FILTERS.items()
    }
    assert matched_rows(fresh, feed()) == expected
