"""Rows that come to a bucket as they are: their partials are those of plain loops, and answers those of partials."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis.strategies import DrawFn, composite, integers, none, one_of, sampled_from

from weft.aggregates import Component
from weft.engine import FeedLayout, GroupingLayout
from weft.engine.partial.from_rows import ComponentFailed, RowFeed, RowGrouping
from weft.kernels.group_ids import number_rows
from weft.model import Edges, Window

KEYS = {
    "x1": (pa.int64(), [None, 0, -1, -(2**63), 2**63 - 1]),
    "x2": (pa.string(), [None, "", "a", "b"]),
    "x3": (pa.decimal128(20, 2), [None, Decimal("0.00"), Decimal("-12345678901234567.89")]),
    "x4": (pa.int32(), [None, 0, 1 << 30]),
}
COMPONENTS = (Component("rows"), Component("sum", ("v",)), Component("max", ("s",)), Component("sum", ("d",)))
SLOTS = (("c0",), ("c1",), ("c2",), ("c3",))
ROWS = pa.schema(
    {"m0": pa.int64(), "x0": pa.int64(), **{name: type_ for name, (type_, _) in KEYS.items()}}
    | {"x5": pa.int64(), "x6": pa.int64(), "x7": pa.string(), "x8": pa.decimal128(38, 2)}
)
"""A mask, the slice, keys, a word of a signature, and what is aggregated."""


def feed(number: int, keys: int, words: tuple[str, ...] = ()) -> FeedLayout:
    grouping = GroupingLayout(number, tuple(pa.field(f"k{i}", pa.int64()) for i in range(keys)))
    edges = Edges.of([Window(10, 10)])
    return FeedLayout(number, grouping, edges, tuple(f"k{i}" for i in range(keys)), words, COMPONENTS, SLOTS, ())


FEEDS = (feed(0, 1), feed(3, 3, ("w0",)), feed(5, 0))
OWN = {"slice": "x0", "c1": "x6", "c2": "x7", "c3": "x8"}
SCATTERED = (
    RowFeed(0, "m0", 0, OWN | {"k0": "x1"}),
    RowFeed(3, "m0", 61, OWN | {"w0": "x5", "k0": "x4", "k1": "x2", "k2": "x3"}),
    RowFeed(5, "m0", 7, OWN),
)


@composite
def tables(draw: DrawFn) -> list[dict[str, Any]]:
    def row() -> dict[str, Any]:
        bits = sum(1 << one.bit for one in SCATTERED if draw(integers(0, 2)))
        keys = {name: draw(sampled_from(values)) for name, (_, values) in KEYS.items()}
        kept = {
            "x6": draw(one_of(none(), integers(-5, 5))),
            "x7": draw(sampled_from([None, "m", "n"])),
            "x8": draw(sampled_from([None, Decimal("1.25"), Decimal("-7.00")])),
        }
        return {"m0": bits, "x0": draw(sampled_from([-10, 0, 20])), **keys, "x5": draw(integers(0, 1)), **kept}

    return [row() for _ in range(draw(integers(0, 40)))]


def by_loops(rows: list[dict[str, Any]], layout: FeedLayout, source: RowFeed) -> dict[tuple[Any, ...], list[Any]]:
    names = ["slice", *layout.words, *layout.key_columns]
    partials: dict[tuple[Any, ...], list[Any]] = defaultdict(lambda: [0, None, None, None])
    for row in rows:
        if row["m0"] >> source.bit & 1:
            kept = partials[tuple(row[source.columns[name]] for name in names)]
            kept[0] += 1
            for place, name, combine in ((1, "x6", sum), (2, "x7", max), (3, "x8", sum)):
                there = [value for value in (kept[place], row[name]) if value is not None]
                kept[place] = combine(there) if there else None
    return dict(partials)


@settings(deadline=None, max_examples=60)
@given(rows=tables())
def test_partials_of_rows_are_those_of_plain_loops(rows: list[dict[str, Any]]) -> None:
    halves = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
    table = pa.concat_tables([pa.Table.from_pylist(half, ROWS) for half in halves])
    gathering = RowGrouping(table, SCATTERED, FEEDS)
    for layout, source in zip(FEEDS, SCATTERED, strict=True):
        expected = by_loops(rows, layout, source)
        made = gathering.partials(layout)
        if made is None:
            assert not expected
            continue
        names = ["slice", *layout.words, *layout.key_columns]
        assert made.column_names == [*names, "c0", "c1", "c2", "c3"]
        partials = {tuple(row[n] for n in names): [row[c] for (c,) in SLOTS] for row in made.to_pylist()}
        assert len(partials) == made.num_rows
        assert partials == expected


def test_a_sum_that_leaves_its_type_names_its_component() -> None:
    row = {"m0": 1, "x0": 0, "x1": 1, "x6": 2**63 - 1}
    gathering = RowGrouping(pa.Table.from_pylist([row, row], ROWS), SCATTERED, FEEDS)
    with pytest.raises(ComponentFailed, match="leaves the range of its type") as raised:
        gathering.partials(FEEDS[0])
    assert raised.value.component == COMPONENTS[1]


def test_groups_are_numbered_in_the_order_of_first_sight_among_the_rows_asked_for() -> None:
    codes = np.array([[1, 5], [2, 5], [1, 6], [1, 5], [2, 5]])
    groups, firsts = number_rows(codes, np.array([0, 1]), np.array([1, 2, 3, 4]))
    assert (groups.tolist(), firsts.tolist()) == ([0, 1, 2, 0], [1, 2, 3])
    groups, firsts = number_rows(codes, np.array([1]), np.array([0, 1, 2]))
    assert (groups.tolist(), firsts.tolist()) == ([0, 0, 1], [0, 2])
