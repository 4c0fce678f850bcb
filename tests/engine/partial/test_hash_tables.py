"""Tables that throw partials out: for any sizes, what leaves is what came, in no more memory than was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis.strategies import DrawFn, composite, integers, lists, none, one_of, sampled_from

from weft.aggregates.kind import TableOperation as OP
from weft.engine.partial.hash_tables import CHUNK, Cascade, CascadeTable, Out, Slot
from weft.engine.partial.key_codes import ENTRY

ROWS, SUM, MOST, LATEST = (
    Slot(OP.SUM, None),
    Slot(OP.SUM, "v"),
    Slot(OP.GREATEST, "r", real=True),
    Slot(OP.GREATEST, "t"),
)
SLOTS = (ROWS, SUM, MOST, LATEST)

SCHEMA = pa.schema(
    {"feed": pa.int32(), "k0": pa.string(), "k1": pa.int64(), "n": pa.int64(), "s": pa.int64(), "m": pa.float64()}
)


def out(feed: int, **keys: str) -> Out:
    return Out(feed, keys, {"n": ROWS, "s": SUM, "m": MOST})


def phantom(buckets: list[int]) -> CascadeTable:
    """(a, b) feeds itself, a, and b: `ab*(a b)`."""
    a = CascadeTable(("a",), SLOTS, buckets[0], (out(0, k0="a"),))
    b = CascadeTable(("b",), SLOTS, buckets[1], (out(1, k1="b"),))
    return CascadeTable(("a", "b"), SLOTS, buckets[2], (out(2, k0="a", k1="b"),), (a, b))


def batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    types = (pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.int64())
    columns = zip(*rows, strict=True) if rows else ((),) * len(types)
    arrays = [pa.array(list(column), type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["a", "b", "v", "r", "t"])


@composite
def streams(draw: DrawFn) -> list[list[tuple[Any, ...]]]:
    row_count = draw(integers(0, 60))
    keys, numbers = one_of(none(), sampled_from("xyzuvw")), one_of(none(), sampled_from([0, 1, -(2**63), 2**63 - 1]))
    values = one_of(none(), integers(-5, 5))
    reals = one_of(none(), sampled_from([0.5, -1.0, float("nan"), float("-inf")]))
    rows = [(draw(keys), draw(numbers), draw(values), draw(reals), i) for i in range(row_count)]
    cut = draw(integers(0, row_count))
    return [rows[:cut], rows[cut:]]


def merged(batches: Iterator[pa.RecordBatch]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """What the high level makes of the partials: by feed and keys, rows, sum and greatest."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in (row for left in batches for row in left.to_pylist()):
        key = (row["feed"], row["k0"], row["k1"])
        found[key] = combine(found.get(key, (0, None, None)), (row["n"], row["s"], row["m"]))
    return found


def combine(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    total = other[1] if one[1] is None else one[1] if other[1] is None else one[1] + other[1]
    greatest = [value for value in (one[2], other[2]) if value is not None]
    return one[0] + other[0], total, max(greatest, key=lambda v: (v != v, v), default=None)


def plainly(stream: list[list[tuple[Any, ...]]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for a, b, v, r, _ in (row for rows in stream for row in rows):
        for key in ((0, a, None), (1, None, b), (2, a, b)):
            found[key] = combine(found.get(key, (0, None, None)), (1, v, r))
    return found


@settings(max_examples=150, deadline=None)
@given(
    stream=streams(),
    buckets=lists(sampled_from([1, 2, 3, 64]), min_size=3, max_size=3),
    little=sampled_from([0, 1 << 20]),
)
def test_cascading_evictions_lose_and_double_nothing(
    stream: list[list[tuple[Any, ...]]], buckets: list[int], little: int
) -> None:
    cascade = Cascade([phantom(buckets)], SCHEMA, little)
    left = [one for rows in stream for one in cascade.take(batch(rows))] + list(cascade.empty())
    found, expected = merged(iter(left)), plainly(stream)
    assert str(sorted(found.items(), key=str)) == str(sorted(expected.items(), key=str))
    counts = Counter(left_row["feed"] for one in left for left_row in one.to_pylist() for _ in range(left_row["n"]))
    assert all(counts[feed] == sum(map(len, stream)) for feed in (0, 1, 2))
    assert not list(cascade.empty())


def test_one_bucket_sends_a_group_out_whenever_another_comes() -> None:
    rows = [("x" if i % 2 else "y", 0, 1, None, i) for i in range(10)]
    table = CascadeTable(("a",), SLOTS, 1, (out(0, k0="a"),))
    cascade = Cascade([table], SCHEMA, 1 << 20)
    list(cascade.take(batch(rows)))
    assert (cascade.probes, cascade.evictions) == (10, 9)


def test_a_sum_that_would_leave_64_bits_leaves_the_table_instead() -> None:
    wide = pa.RecordBatch.from_pydict(
        {"a": ["x", "x"], "b": [1, 1], "v": [2**63 - 1, 1], "r": pa.nulls(2, pa.float64()), "t": [1, 2]}
    )
    table = CascadeTable(("a",), SLOTS, 8, (out(0, k0="a"),))
    cascade = Cascade([table], SCHEMA, 1 << 20)
    left = [row["s"] for one in [*cascade.take(wide), *cascade.empty()] for row in one.to_pylist()]
    assert sorted(left) == [1, 2**63 - 1]


def test_memory_stays_within_the_limit_whatever_the_number_of_groups() -> None:
    limit = 1 << 20
    table = CascadeTable(("a",), SLOTS, 1_000, (out(0, k0="a"),))
    cascade = Cascade([table], SCHEMA, limit)
    rows, groups, largest = 0, 0, 0
    for number in range(20):
        names = pa.array([f"group {number} {i}" for i in range(CHUNK)])
        nothing = pa.array([0] * CHUNK)
        columns = [names, nothing, nothing.cast(pa.int32()), nothing.cast(pa.float64()), nothing]
        chunk = pa.RecordBatch.from_arrays(columns, names=["a", "b", "v", "r", "t"])
        groups += CHUNK
        rows += sum(sum(one.column("n").to_pylist()) for one in cascade.take(chunk))
        largest = max(largest, cascade.table_bytes)
    rows += sum(sum(one.column("n").to_pylist()) for one in cascade.empty())
    assert rows == groups
    # All groups together would take several times the limit; it is looked at once a chunk.
    a_chunk = CHUNK * (ENTRY + 32)
    assert cascade.dictionary_peak <= limit + a_chunk < groups * ENTRY / 2
    assert largest < 1_000 * 100


def test_sums_of_decimals_keep_their_point_and_their_sign() -> None:
    prices = pa.array([Decimal("1.50"), None, Decimal("-4.75"), None], pa.decimal128(9, 2))
    summed, least = Slot(OP.SUM, "p"), Slot(OP.LEAST, "p")
    types = {"feed": pa.int32(), "k0": pa.int32(), "s": pa.decimal128(19, 2), "l": pa.decimal128(9, 2)}
    table = CascadeTable(("a",), (summed, least), 4, (Out(0, {"k0": "a"}, {"s": summed, "l": least}),))
    cascade = Cascade([table], pa.schema(types), 0)
    rows = pa.RecordBatch.from_arrays([pa.array([1, 1, 1, 2], pa.int32()), prices], names=["a", "p"])
    (left,) = [*cascade.take(rows), *cascade.empty()]
    found = {row["k0"]: (row["s"], row["l"]) for row in left.to_pylist()}
    assert found == {1: (Decimal("-3.25"), Decimal("-4.75")), 2: (None, None)}


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
        pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]),
        pa.array([1, None, 20_000], pa.date32()),
        pa.array([True, None, False]),
        pa.array([1, None, -(2**50)], pa.timestamp("us", "UTC")),
        pa.array([0.5, None, float("inf")], pa.float32()),
        pa.array([b"x", None, b""]),
        pa.array([3, None, -128], pa.int8()),
    ],
    ids=lambda values: str(values.type),
)
def test_keys_of_any_type_come_out_as_they_went_in(values: pa.Array) -> None:
    schema = pa.schema({"feed": pa.int32(), "k0": values.type, "n": pa.int64()})
    table = CascadeTable(("a",), (ROWS,), 2, (Out(0, {"k0": "a"}, {"n": ROWS}),))
    cascade = Cascade([table], schema, 1 << 20)
    rows = pa.RecordBatch.from_arrays([pa.concat_arrays([values, values])], names=["a"])
    left = [*cascade.take(rows), *cascade.empty()]
    counts = Counter(str(row["k0"]) for one in left for row in one.to_pylist() for _ in range(row["n"]))
    assert counts == Counter(map(str, values.to_pylist() * 2))
