"""Random rows, queries and batchings for hypothesis: where streams and Spark have their corners.

    @given(cases())
    def test(case):
        tables = spark_answers(spark, case.table, case.queries)
        for query in case.queries:
            oracle = case.naive(query)
            assert_same_rows(tables[query.name], oracle)

`without` leaves out features by name: aggregate functions, `filter_clause`, `having`, `offset`, `arithmetic`,
`unaliased`, `ignore_nulls`, `double_key`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.support.naive import Answers, answers
from tests.support.twin import (
    Call,
    Column,
    Fragment,
    KeyColumn,
    Query,
    Row,
    ValueColumn,
    WindowColumn,
    apply,
    both,
    either,
    equal,
    greater,
    is_nan,
    negation,
    remainder,
)
from weft.model import Window

SECOND = 1_000_000
MINUTE = 60 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TupleRow = tuple[Any, ...]
"""A row as `spark.createDataFrame` takes it; times are aware, since Python's local time zone is not Spark's."""


# Rows


def ddl(k3: str = "DECIMAL(9,2)") -> str:
    return (
        f"ts TIMESTAMP, k1 STRING, k2 INT, k3 {k3}, x DOUBLE, y DOUBLE, n INT, b BIGINT, d DECIMAL(12,3), "
        "s STRING, f BOOLEAN"
    )


ARROW_TYPES = {
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DECIMAL(9,2)": pa.decimal128(9, 2),
    "DECIMAL(12,3)": pa.decimal128(12, 3),
}


def arrow_schema(schema: str) -> pa.Schema:
    columns = [column.split() for column in schema.split(", ")]
    return pa.schema([(name, ARROW_TYPES[data_type]) for name, data_type in columns])


def arrow(schema: str, rows: Sequence[TupleRow]) -> pa.Table:
    fields = arrow_schema(schema)
    columns = list(zip(*rows)) if rows else [()] * len(fields)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, fields)], schema=fields)


@dataclass(frozen=True)
class Scene:
    """What the rows of one case have in common."""

    base: int
    span: int
    disorder: int
    wild: bool
    null_times: bool
    gaps: bool
    boolean_k3: bool


BASES = (0, 1_700_000_000 * SECOND, -37 * SECOND, -2_000_000_000 * SECOND + 123_456)

SCENES = st.builds(
    Scene,
    base=st.sampled_from(BASES),
    span=st.sampled_from((20 * SECOND, 3 * SECOND, 2 * MINUTE, 15 * MINUTE)),
    disorder=st.sampled_from((0, 2 * SECOND, 10**15)),
    wild=st.sampled_from((False, True, True)),
    null_times=st.booleans(),
    gaps=st.booleans(),
    boolean_k3=st.booleans(),
)


@st.composite
def rows(
    draw: st.DrawFn,
    min_rows: int = 1,
    max_rows: int = 200,
    ties: bool = False,
    scenes: st.SearchStrategy[Scene] = SCENES,
) -> tuple[str, list[TupleRow]]:
    """A schema and rows in order of arrival. Event times differ from row to row unless `ties`.

    A row is made from one drawn number, so that hypothesis shrinks by leaving rows out.
    """
    scene = draw(scenes)
    size = draw(
        st.sampled_from([n for n in (1, 2, 40, 120, max_rows) if min_rows <= n <= max_rows])
        | st.integers(min_rows, max_rows)
    )
    seeds = draw(st.lists(st.integers(0, 2**20), min_size=size, max_size=size))
    seen: set[int] = set()
    arriving = []
    for place, seed in enumerate(seeds):
        random = Random(seed)
        time = _time(random, scene)
        while time is not None and time in seen and not ties:
            time += 1
        if time is not None:
            seen.add(time)
        late_by = random.randrange(scene.disorder) if scene.disorder else 0
        arriving.append(((scene.base if time is None else time) + late_by, place, _row(random, scene, time)))
    arriving.sort(key=lambda entry: entry[:2])
    return ddl("BOOLEAN" if scene.boolean_k3 else "DECIMAL(9,2)"), [row for _, _, row in arriving]


def _time(random: Random, scene: Scene) -> int | None:
    if scene.null_times and random.random() < 0.05:
        return None
    time = random.randrange(-scene.span // 3, scene.span)
    if random.random() < 0.4:
        # Most windows begin and end on half seconds: the first instant inside, or the last before.
        time -= time % (SECOND // 2) + random.choice((0, 0, 1))
    if scene.gaps and random.random() < 0.1:
        time += random.choice((3600 * SECOND, 7200 * SECOND))
    return scene.base - scene.base % (SECOND // 2) + time


def _row(random: Random, scene: Scene, time: int | None) -> TupleRow:
    def maybe(value: Any, share: float = 0.15) -> Any:
        return None if random.random() < share else value

    x = maybe(random.choice((1.0, -1.0, 0.1, 2.5, -0.0, random.uniform(-1000, 1000))))
    if scene.wild and random.random() < 0.15:
        x = random.choice((math.nan, math.inf, -math.inf, 1e16, 1e16, -1e16))
    k3 = maybe(random.choice((True, False))) if scene.boolean_k3 else maybe(_decimal(random.randrange(-1, 3) * 50, 2))
    return (
        None if time is None else EPOCH + timedelta(microseconds=time),
        maybe(random.choice(("a", "a", "b", "A", "", "none", "é", "日本"))),
        maybe(random.choice((1, 2, 3, -1, -2))),
        k3,
        x,
        # Eighths add up exactly, so that a constant column has a deviation of exactly 0 however it is added.
        maybe(random.choice((1.5, random.randrange(-800, 800) / 8))),
        maybe(random.choice((0, 1, 2, 3, random.randrange(-1000, 1000)))),
        maybe(random.choice((0, 7, random.randrange(-(10**12), 10**12)))),
        maybe(_decimal(random.choice((0, 1500, random.randrange(-(10**8), 10**8))), 3)),
        maybe(random.choice(("a", "ab", "b", "", "Zoë", "日", "aaaa"))),
        maybe(random.choice((True, False))),
    )


def _decimal(units: int, scale: int) -> Decimal:
    return Decimal(units).scaleb(-scale)


def record(schema: str, row: TupleRow) -> Row:
    """The row as the oracle takes it: by name, with the time in microseconds."""
    names = [column.split()[0] for column in schema.split(", ")]
    values = dict(zip(names, row))
    time = values["ts"]
    return values | {"ts": None if time is None else (time - EPOCH) // timedelta(microseconds=1)}


@st.composite
def batchings(draw: st.DrawFn, rows: Sequence[TupleRow], empty: bool = False) -> list[list[TupleRow]]:
    """Cut rows into batches, from all in one to one each; with `empty`, some of them have no row."""
    how = draw(st.sampled_from(("one", "few", "few", "each")))
    if how == "one":
        cuts: list[int] = []
    elif how == "each":
        cuts = list(range(1, len(rows)))
    else:
        cuts = sorted(draw(st.lists(st.integers(0 if empty else 1, max(1, len(rows) - 1)), min_size=1, max_size=8)))
    bounds = [0, *cuts, len(rows)]
    batches = [list(rows[begin:end]) for begin, end in pairwise(bounds)]
    return [batch for batch in batches if batch or empty]


DELAYS = st.sampled_from((0, SECOND, 5 * SECOND, MINUTE))
"""Of the watermark, in microseconds; the short ones make rows late."""


# Queries

X, Y, N, B, D, S, F, TS = map(Fragment.column, ("x", "y", "n", "b", "d", "s", "f", "ts"))

FILTERS = (
    Fragment("x > 0", lambda r: greater(r["x"], 0)),
    Fragment("k1 = 'a'", lambda r: equal(r["k1"], "a")),
    Fragment("n % 2 = 0 AND f", lambda r: both(apply(lambda n: n % 2 == 0, r["n"]), r["f"])),
    Fragment("s LIKE 'a%' OR s IS NULL", lambda r: either(apply(lambda s: s.startswith("a"), r["s"]), r["s"] is None)),
    Fragment("y BETWEEN -10 AND 10", lambda r: apply(lambda y: -10 <= y <= 10, r["y"])),
    Fragment("k2 IN (1, 2)", lambda r: apply(lambda k: k in (1, 2), r["k2"])),
    Fragment("d >= 1.5", lambda r: apply(lambda d: d >= Decimal("1.5"), r["d"])),
    Fragment("NOT f", lambda r: negation(r["f"])),
    Fragment("length(s) > 1 AND b <> 0", lambda r: both(greater(apply(len, r["s"]), 1), negation(equal(r["b"], 0)))),
    Fragment("NOT isnan(x)", lambda r: not is_nan(r["x"])),
    Fragment("k1 <=> 'a'", lambda r: r["k1"] == "a"),
    Fragment("n > 1000000", lambda r: greater(r["n"], 1_000_000)),
)

KEYS = (
    Fragment.column("k1"),
    Fragment.column("k2"),
    Fragment.column("k3"),
    Fragment("upper(k1)", lambda r: apply(str.upper, r["k1"])),
    Fragment("k2 % 3", lambda r: apply(lambda k: remainder(k, 3), r["k2"])),
    Fragment("coalesce(k1, 'none')", lambda r: "none" if r["k1"] is None else r["k1"]),
    Fragment("n > 0", lambda r: greater(r["n"], 0)),
    Fragment("CASE WHEN n > 0 THEN 'up' ELSE 'rest' END", lambda r: "up" if greater(r["n"], 0) else "rest"),
    F,
)
DOUBLE_KEY = X

DOUBLES = (
    X,
    Y,
    Fragment("y * 0.5", lambda r: apply(lambda y: y * 0.5, r["y"])),
    Fragment("x + y", lambda r: apply(lambda x, y: x + y, r["x"], r["y"])),
    Fragment("CASE WHEN f THEN y ELSE 0 END", lambda r: r["y"] if r["f"] else 0.0),
)
INTEGERS = (N, B, Fragment("n * 2 + 1", lambda r: apply(lambda n: n * 2 + 1, r["n"])))
NUMBERS = (*DOUBLES, *INTEGERS, D)
ORDERED = (*NUMBERS, S, F, TS)

ARGUMENTS: dict[str, tuple[tuple[Fragment, ...], ...]] = {
    "count": ((), (X,), (S,)),
    "count_if": ((F,), (Fragment("x > 0", lambda r: greater(r["x"], 0)),)),
    **{f: tuple((a,) for a in NUMBERS) for f in ("sum", "avg", "mean")},
    **{f: tuple((a,) for a in ORDERED) for f in ("min", "max")},
    **dict.fromkeys(("stddev", "stddev_pop", "variance", "var_pop"), ((X,), (Y,), (N,), (D,))),
    **{f: ((F,), (Fragment("n > 0", lambda r: greater(r["n"], 0)),)) for f in ("bool_and", "bool_or")},
    **{f: tuple((a,) for a in INTEGERS) for f in ("bit_and", "bit_or", "bit_xor")},
    **dict.fromkeys(("max_by", "min_by"), ((S, TS), (X, TS))),
    **dict.fromkeys(("first", "last"), ((X,), (S,), (N,), (D,))),
    # Finite columns only: with infinities Spark's own covariance depends on the order of the rows.
    **dict.fromkeys(("corr", "covar_samp", "covar_pop"), ((Y, N), (N, Y), (Y, Y))),
    **dict.fromkeys(("skewness", "kurtosis"), ((Y,), (N,))),
    "count_distinct": tuple((a,) for a in ORDERED),
    "median": tuple((a,) for a in NUMBERS),
    "percentile": tuple((a, Fragment(str(f), lambda r, f=f: f)) for a in (X, N, D) for f in (0.0, 0.3, 0.95, 1.0)),
}
"""What each aggregate is called on."""

ORDER_DEPENDENT = ("first", "last", "max_by", "min_by")
"""With equal event times these may give one row's value or another's."""


def _call(function: str, *arguments: Fragment) -> Call:
    return Call(function, arguments)


ARITHMETIC = (
    ValueColumn((_call("max", X), _call("min", X)), "{0} - {1}", lambda a, b: apply(lambda a, b: a - b, a, b)),
    ValueColumn((_call("sum", N), _call("count")), "{0} * 2 + {1}", lambda a, b: apply(lambda a: a * 2 + b, a)),
    ValueColumn((_call("sum", D), _call("count")), "{0} / {1}", lambda a, b: apply(lambda a: Fraction(a) / b, a)),
    ValueColumn((_call("avg", X),), "{0} - 1", lambda a: apply(lambda a: a - 1, a)),
    ValueColumn((_call("avg", Y),), "2 * {0}", lambda a: apply(lambda a: 2 * a, a), gain=2.0),
    ValueColumn((_call("sum", N), _call("sum", B)), "{0} + {1}", lambda a, b: apply(lambda a, b: a + b, a, b)),
    ValueColumn((_call("sum", N), _call("count")), "{0} / {1}", lambda a, b: apply(lambda a: a / b, a)),
    ValueColumn((_call("max", B),), "-{0}", lambda a: apply(lambda a: -a, a)),
)

HAVING = (
    ValueColumn((_call("count"),), "{0} > 1", lambda a: a > 1),
    ValueColumn((_call("sum", N),), "{0} > 3", lambda a: greater(a, 3)),
    ValueColumn((_call("count"), _call("max", B)), "{0} > 1 OR {1} < 0", lambda a, b: either(a > 1, greater(0, b))),
)

SLIDES = (SECOND, 3 * SECOND, 7 * SECOND, SECOND // 2, MINUTE, 90 * SECOND)


@st.composite
def windows(draw: st.DrawFn, offsets: bool = True) -> Window:
    """An overlap of 1 to 12, whole or not."""
    slide = draw(st.sampled_from(SLIDES))
    length = slide * draw(st.sampled_from((1, 2, 3, 4, 5, 12)))
    if draw(st.integers(0, 2)) == 0:
        length = min(length + slide * draw(st.integers(1, 9)) // 10, 12 * slide)
    offset = 0
    if offsets and draw(st.integers(0, 3)) == 0:
        offset = slide * draw(st.sampled_from((1, -1, 3, -7))) // 8
    return Window(length, slide, offset)


@st.composite
def queries(
    draw: st.DrawFn,
    min_queries: int = 1,
    max_queries: int = 40,
    cql: bool = False,
    without: Collection[str] = (),
) -> list[Query]:
    """Queries q1, q2, ... that often share windows, filters and group keys; with `cql`, some have a CQL window."""
    pool = _Pool(
        windows=draw(st.lists(windows("offset" not in without), min_size=1, max_size=5)),
        filters=[None, *draw(st.lists(st.sampled_from(FILTERS), max_size=3))],
        keys=draw(st.lists(_key_sets(without), min_size=1, max_size=3)),
    )
    size = draw(st.integers(min_queries, max_queries))
    return [draw(_query(f"q{i + 1}", pool, cql, tuple(without))) for i in range(size)]


@dataclass(frozen=True)
class _Pool:
    windows: list[Window]
    filters: list[Fragment | None]
    keys: list[tuple[Fragment, ...]]


def _key_sets(without: Collection[str]) -> st.SearchStrategy[tuple[Fragment, ...]]:
    keys = KEYS if "double_key" in without else (*KEYS, DOUBLE_KEY)
    return st.lists(st.sampled_from(keys), max_size=3, unique_by=lambda k: k.sql).map(tuple)


@st.composite
def _query(draw: st.DrawFn, name: str, pool: _Pool, cql: bool, without: tuple[str, ...]) -> Query:
    keys = draw(st.sampled_from(pool.keys))
    window = draw(st.sampled_from(pool.windows))
    unaliased = "unaliased" not in without
    columns: list[Column] = [
        KeyColumn(i, None if key.sql.isidentifier() or (unaliased and draw(st.booleans())) else f"key{i}")
        for i, key in enumerate(keys)
    ]
    if draw(st.booleans()):
        columns.append(WindowColumn())
    else:
        columns += [WindowColumn("start", draw(st.sampled_from(("w0", None)))), WindowColumn("end", "w1")]
    values = draw(st.lists(_values(without), min_size=1, max_size=4, unique_by=lambda v: (v.template, v.calls)))
    for i, value in enumerate(values):
        # Spark is given `min_by` for `first`, and the name that it would make up for `first` is not known here.
        by_time = any(call.function in ("first", "last") for call in value.calls)
        plain = unaliased and not by_time and draw(st.integers(0, 3)) == 0
        columns.append(value if plain else replace(value, alias=draw(st.sampled_from((f"a{i}", f"value {i}")))))
    has_having = "having" not in without and draw(st.integers(0, 5)) == 0
    return Query(
        name,
        window,
        tuple(draw(st.permutations(columns))),
        keys,
        draw(st.sampled_from(pool.filters)),
        draw(st.sampled_from(HAVING)) if has_having else None,
        cql=cql and not window.offset and draw(st.booleans()),
        window_position=draw(st.integers(0, len(keys))),
    )


@st.composite
def _values(draw: st.DrawFn, without: tuple[str, ...]) -> ValueColumn:
    if "arithmetic" not in without and draw(st.integers(0, 4)) == 0:
        allowed = [v for v in ARITHMETIC if not any(call.function in without for call in v.calls)]
        if allowed:
            return draw(st.sampled_from(allowed))
    function = draw(st.sampled_from([f for f in ARGUMENTS if f not in without]))
    arguments = draw(st.sampled_from(ARGUMENTS[function]))
    condition = None
    if "filter_clause" not in without and draw(st.integers(0, 4)) == 0:
        condition = draw(st.sampled_from(FILTERS))
    ignore = function in ("first", "last") and "ignore_nulls" not in without and draw(st.booleans())
    return ValueColumn((Call(function, arguments, condition, ignore),))


# All together


@dataclass(frozen=True)
class Case:
    """One random workload: a stream, its queries, and how it is cut into batches."""

    schema: str
    rows: list[TupleRow]
    queries: list[Query]
    batches: list[list[TupleRow]]

    @property
    def texts(self) -> dict[str, str]:
        """The queries as weft reads them, by name."""
        return {query.name: query.text for query in self.queries}

    @property
    def table(self) -> pa.Table:
        return arrow(self.schema, self.rows)

    @property
    def tables(self) -> list[pa.Table]:
        """One a batch."""
        return [arrow(self.schema, batch) for batch in self.batches]

    def naive(self, query: Query, delay: int | None = None) -> Answers:
        """The oracle's answers; without a delay those of the whole input, else batch by batch."""
        return answers(query, [[record(self.schema, row) for row in batch] for batch in self.batches], delay)


@st.composite
def cases(
    draw: st.DrawFn,
    max_rows: int = 200,
    min_queries: int = 1,
    max_queries: int = 40,
    ties: bool = False,
    cql: bool = False,
    without: Collection[str] = (),
    scenes: st.SearchStrategy[Scene] = SCENES,
) -> Case:
    schema, made = draw(rows(max_rows=max_rows, ties=ties, scenes=scenes))
    left_out = {*without, *(ORDER_DEPENDENT if ties else ())}
    asked = draw(queries(min_queries, max_queries, cql=cql, without=left_out))
    return Case(schema, made, asked, draw(batchings(made)))
