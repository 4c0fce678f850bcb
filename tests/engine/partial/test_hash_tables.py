"""Hash tables that evict partials: for any sizes, no row is lost or counted twice, and memory stays bounded."""

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
from weft.engine.partial.hash_tables import CHUNK, FeedOutput, HashTableSpec, Slot, TaskHashTables
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


def feed_output(feed: int, **keys: str) -> FeedOutput:
    return FeedOutput(feed, keys, {"n": ROWS, "s": SUM, "m": MOST})


def phantom(buckets: list[int]) -> HashTableSpec:
    """(a, b) feeds itself, a, and b: `ab*(a b)`."""
    a = HashTableSpec(("a",), SLOTS, buckets[0], (feed_output(0, k0="a"),))
    b = HashTableSpec(("b",), SLOTS, buckets[1], (feed_output(1, k1="b"),))
    return HashTableSpec(("a", "b"), SLOTS, buckets[2], (feed_output(2, k0="a", k1="b"),), (a, b))


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
    partials_by_key: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in (row for evicted in batches for row in evicted.to_pylist()):
        key = (row["feed"], row["k0"], row["k1"])
        partials_by_key[key] = combine(partials_by_key.get(key, (0, None, None)), (row["n"], row["s"], row["m"]))
    return partials_by_key


def combine(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    total = other[1] if one[1] is None else one[1] if other[1] is None else one[1] + other[1]
    greatest = [value for value in (one[2], other[2]) if value is not None]
    return one[0] + other[0], total, max(greatest, key=lambda v: (v != v, v), default=None)


def plainly(stream: list[list[tuple[Any, ...]]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    partials_by_key: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for a, b, v, r, _ in (row for rows in stream for row in rows):
        for key in ((0, a, None), (1, None, b), (2, a, b)):
            partials_by_key[key] = combine(partials_by_key.get(key, (0, None, None)), (1, v, r))
    return partials_by_key


@settings(max_examples=150, deadline=None)
@given(
    stream=streams(),
    buckets=lists(sampled_from([1, 2, 3, 64]), min_size=3, max_size=3),
    little=sampled_from([0, 1 << 20]),
)
def test_cascading_evictions_lose_and_double_nothing(
    stream: list[list[tuple[Any, ...]]], buckets: list[int], little: int
) -> None:
    tables = TaskHashTables([phantom(buckets)], SCHEMA, little)
    evicted = [one for rows in stream for one in tables.take(batch(rows))] + list(tables.empty())
    partials_by_key, expected = merged(iter(evicted)), plainly(stream)
    assert str(sorted(partials_by_key.items(), key=str)) == str(sorted(expected.items(), key=str))
    counts = Counter(left_row["feed"] for one in evicted for left_row in one.to_pylist() for _ in range(left_row["n"]))
    assert all(counts[feed] == sum(map(len, stream)) for feed in (0, 1, 2))
    assert not list(tables.empty())


def test_one_bucket_sends_a_group_out_whenever_another_comes() -> None:
    rows = [("x" if i % 2 else "y", 0, 1, None, i) for i in range(10)]
    table = HashTableSpec(("a",), SLOTS, 1, (feed_output(0, k0="a"),))
    tables = TaskHashTables([table], SCHEMA, 1 << 20)
    list(tables.take(batch(rows)))
    assert (tables.probes, tables.evictions) == (10, 9)


def test_a_sum_that_would_leave_64_bits_leaves_the_table_instead() -> None:
    wide = pa.RecordBatch.from_pydict(
        {"a": ["x", "x"], "b": [1, 1], "v": [2**63 - 1, 1], "r": pa.nulls(2, pa.float64()), "t": [1, 2]}
    )
    table = HashTableSpec(("a",), SLOTS, 8, (feed_output(0, k0="a"),))
    tables = TaskHashTables([table], SCHEMA, 1 << 20)
    evicted = [row["s"] for one in [*tables.take(wide), *tables.empty()] for row in one.to_pylist()]
    assert sorted(evicted) == [1, 2**63 - 1]


def test_memory_stays_within_the_limit_whatever_the_number_of_groups() -> None:
    limit = 1 << 20
    table = HashTableSpec(("a",), SLOTS, 1_000, (feed_output(0, k0="a"),))
    tables = TaskHashTables([table], SCHEMA, limit)
    rows, groups, largest = 0, 0, 0
    for number in range(20):
        names = pa.array([f"group {number} {i}" for i in range(CHUNK)])
        nothing = pa.array([0] * CHUNK)
        columns = [names, nothing, nothing.cast(pa.int32()), nothing.cast(pa.float64()), nothing]
        chunk = pa.RecordBatch.from_arrays(columns, names=["a", "b", "v", "r", "t"])
        groups += CHUNK
        rows += sum(sum(one.column("n").to_pylist()) for one in tables.take(chunk))
        largest = max(largest, tables.table_bytes)
    rows += sum(sum(one.column("n").to_pylist()) for one in tables.empty())
    assert rows == groups
    # All groups together would take several times the limit; the limit is checked once per chunk.
    chunk_bytes = CHUNK * (ENTRY + 32)
    assert tables.dictionary_peak <= limit + chunk_bytes < groups * ENTRY / 2
    assert largest < 1_000 * 100


def test_sums_of_decimals_keep_their_point_and_their_sign() -> None:
    prices = pa.array([Decimal("1.50"), None, Decimal("-4.75"), None], pa.decimal128(9, 2))
    summed, least = Slot(OP.SUM, "p"), Slot(OP.LEAST, "p")
    types = {"feed": pa.int32(), "k0": pa.int32(), "s": pa.decimal128(19, 2), "l": pa.decimal128(9, 2)}
    table = HashTableSpec(("a",), (summed, least), 4, (FeedOutput(0, {"k0": "a"}, {"s": summed, "l": least}),))
    tables = TaskHashTables([table], pa.schema(types), 0)
    rows = pa.RecordBatch.from_arrays([pa.array([1, 1, 1, 2], pa.int32()), prices], names=["a", "p"])
    (evicted,) = [*tables.take(rows), *tables.empty()]
    partials_by_key = {row["k0"]: (row["s"], row["l"]) for row in evicted.to_pylist()}
    assert partials_by_key == {1: (Decimal("-3.25"), Decimal("-4.75")), 2: (None, None)}


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
    table = HashTableSpec(("a",), (ROWS,), 2, (FeedOutput(0, {"k0": "a"}, {"n": ROWS}),))
    tables = TaskHashTables([table], schema, 1 << 20)
    rows = pa.RecordBatch.from_arrays([pa.concat_arrays([values, values])], names=["a"])
    evicted = [*tables.take(rows), *tables.empty()]
    counts = Counter(str(row["k0"]) for one in evicted for row in one.to_pylist() for _ in range(row["n"]))
    assert counts == Counter(map(str, values.to_pylist() * 2))
