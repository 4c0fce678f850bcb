"""Rows with every nasty value, as SQL literals: a table is a text, so a finding is a script that can be pasted.

Every column holds one type that Spark groups or orders by; some names need quotes. Tame columns hold numbers whose sums
are exact in floating point, wild ones what only `min`, `max`, `count` and keys can compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

SECOND = 1_000_000
DAY = 86_400 * SECOND

Draw = Callable[[Random], str]
"""One cell as SQL."""


@dataclass(frozen=True)
class TableColumn:
    """A column of the stream: how queries write it, its type, and its cells."""

    name: str
    type: str
    draw: Draw
    nulls: float = 0.12
    """How often a cell is NULL."""

    @property
    def sql(self) -> str:
        return quoted(self.name)


def quoted(name: str) -> str:
    plain = name.isidentifier() and name.isascii() and name != "select"
    return name if plain else f"`{name.replace('`', '``')}`"


def one_of(*cells: str) -> Draw:
    return lambda random: random.choice(cells)


def whole(low: int, high: int) -> Draw:
    return lambda random: str(random.randint(low, high))


def ends(bits: int) -> Draw:
    """Both ends of an integer type, numbers around zero, and some between."""
    least, greatest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    nasty = [str(n) for n in (least, least + 1, -1, 0, 0, 1, 2, greatest - 1, greatest)]
    return lambda random: random.choice(nasty) if random.random() < 0.6 else str(random.randint(-100, 100))


def eighths(random: Random) -> str:
    """Sums of thousands of these have no rounding error."""
    return f"{random.randint(-800, 800) / 8}D"


TEXTS = (
    "''", "'a'", "'A'", "'b'", "'ab'", "'abc'", "' a'", "'a '", "'Straße'", "'éa'", "'e\\u0301'", "'日本'", "'😀'",
    "'a,b'", "'a-b'", "'it\\'s'", "'NULL'", "'2024-03-10'", "'{\"a\": 1}'", "'%a_'", "'\\\\'",
)  # fmt: skip
NUMERIC_TEXTS = (
    "'0'", "'1'", "'12'", "'007'", "'-5'", "'99999'", "' 3'", "'1e3'", "'1.5'", "'abc'", "''", "'NaN'",
    "'12345678901234567890'",
)  # fmt: skip
DOUBLES = (
    "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)", "-0.0D", "0.0D", "1e16D",
    "-1e16D", "1.0D", "0.1D", "CAST('4.9e-324' AS DOUBLE)", "CAST('1.7976931348623157e308' AS DOUBLE)", "1e-7D",
    "12345678.9D",
)  # fmt: skip
FLOATS = (
    "CAST('NaN' AS FLOAT)", "CAST('Infinity' AS FLOAT)", "CAST('-0.0' AS FLOAT)", "0.0F", "0.1F", "-1.5F",
    "CAST('3.4028235e38' AS FLOAT)", "16777217F", "CAST('1.4e-45' AS FLOAT)",
)  # fmt: skip
DECIMALS_38 = (
    "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "0", "1", "-1",
    "12345678901234567890123456789012345678", "10000000000000000000000000000000000000",
)  # fmt: skip
DECIMALS_38_18 = (
    "0.000000000000000001", "-0.000000000000000001", "99999999999999999999.999999999999999999", "0.0", "1.5",
    "123.456",
)  # fmt: skip
DATES = (
    "DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'1582-10-04'", "DATE'1582-10-15'", "DATE'1969-12-31'",
    "DATE'1970-01-01'", "DATE'2024-02-29'", "DATE'2024-03-10'", "DATE'2024-11-03'", "DATE'2023-12-31'",
)  # fmt: skip
MOMENTS = (
    -62135596800 * SECOND + DAY, 253402300799 * SECOND - DAY, -1, 0, 1710054000 * SECOND, 1710054000 * SECOND - 1,
    1730613600 * SECOND, -12219292800 * SECOND, 1709251199_999999,
)  # fmt: skip
NTZ = (
    "TIMESTAMP_NTZ'0001-01-02 00:00:00'", "TIMESTAMP_NTZ'9999-12-30 23:59:59.999999'",
    "TIMESTAMP_NTZ'2024-03-10 02:30:00'", "TIMESTAMP_NTZ'2024-11-03 01:30:00'",
    "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'", "TIMESTAMP_NTZ'2024-02-29 12:00:00'",
)  # fmt: skip
INTERVALS = (
    "INTERVAL '0' SECOND", "INTERVAL '1' SECOND", "INTERVAL '-1' SECOND",
    "INTERVAL '1 02:03:04.000005' DAY TO SECOND", "INTERVAL '106751990' DAY", "INTERVAL '-106751990' DAY",
    "INTERVAL '0.000001' SECOND",
)  # fmt: skip
BINARIES = ("X''", "X'00'", "X'ff'", "X'00ff'", "X'61'", "X'e697a5'", "X'80'")
ARRAYS = (
    "array()", "array(1)", "array(1, 2)", "array(1, NULL)", "array(NULL, 1)", "array(2)", "array(-2147483648)",
    "array(1, 2, 3)",
)  # fmt: skip
TEXT_ARRAYS = ("array()", "array('a')", "array('', NULL)", "array('日本', 'a')", "array('b', 'a')")
STRUCTS = (
    "named_struct('a b', 1, 'n', 'x')", "named_struct('a b', NULL, 'n', 'x')", "named_struct('a b', 1, 'n', NULL)",
    "named_struct('a b', -5, 'n', '')", "named_struct('a b', 1, 'n', 'é')",
)  # fmt: skip
MAPS = ("map()", "map('a', 1)", "map('a', NULL)", "map('a', 1, 'b', 2)", "map('b', 2)")

COLUMNS: tuple[TableColumn, ...] = (
    TableColumn("k", "INT", one_of("-2", "-1", "0", "1", "2", "4"), nulls=0.05),
    TableColumn("x", "DOUBLE", eighths),
    TableColumn("f", "FLOAT", lambda random: f"{random.randint(-80, 80) / 8}F"),
    TableColumn("b", "BOOLEAN", one_of("true", "false")),
    TableColumn("tiny", "TINYINT", ends(8)),
    TableColumn("small", "SMALLINT", ends(16)),
    TableColumn("i", "INT", ends(32)),
    TableColumn("big", "BIGINT", ends(64)),
    TableColumn("n", "BIGINT", whole(-1000, 1000)),
    TableColumn("wild", "DOUBLE", one_of(*DOUBLES)),
    TableColumn("wildf", "FLOAT", one_of(*FLOATS)),
    TableColumn("m", "DECIMAL(9,2)", lambda random: f"{random.randint(-99999, 99999) / 100:.2f}BD"),
    TableColumn("d38", "DECIMAL(38,0)", one_of(*(f"{t}BD" for t in DECIMALS_38))),
    TableColumn("d3818", "DECIMAL(38,18)", one_of(*(f"{t}BD" for t in DECIMALS_38_18))),
    TableColumn("s", "STRING", one_of(*TEXTS)),
    TableColumn("num", "STRING", one_of(*NUMERIC_TEXTS)),
    TableColumn("bin", "BINARY", one_of(*BINARIES)),
    TableColumn("day", "DATE", one_of(*DATES)),
    TableColumn("moment", "TIMESTAMP", one_of(*(f"timestamp_micros({m})" for m in MOMENTS))),
    TableColumn("ntz", "TIMESTAMP_NTZ", one_of(*NTZ)),
    TableColumn("dt", "INTERVAL DAY TO SECOND", one_of(*INTERVALS)),
    TableColumn("arr", "ARRAY<INT>", one_of(*ARRAYS)),
    TableColumn("texts", "ARRAY<STRING>", one_of(*TEXT_ARRAYS)),
    TableColumn("st", "STRUCT<`a b`: INT, n: STRING>", one_of(*STRUCTS)),
    TableColumn("map", "MAP<STRING, INT>", one_of(*MAPS)),
    TableColumn("col", "STRING COLLATE UTF8_LCASE", one_of("'a'", "'A'", "'b'", "'B'", "'É'", "'é'", "''")),
    TableColumn("a b", "INT", whole(0, 3)),
    TableColumn("größe", "DOUBLE", eighths),
    TableColumn("select", "STRING", one_of("'x'", "'y'", "''")),
    TableColumn("Mixed", "INT", whole(0, 2)),
)

TWIN = TableColumn("mixed", "INT", whole(10, 12))
"""Beside `Mixed`, where the session tells case."""

INTERNAL = TableColumn("_weft_time", "INT", whole(0, 2))
"""A name that weft could be tempted to use itself."""

ID = "id"
"""A column of distinct numbers, to make an order total."""

BASES = (
    0,
    1_709_251_190 * SECOND,
    -37 * SECOND,
    1_710_054_000 * SECOND - 40 * SECOND,
    -2_000_000_000 * SECOND + 123_456,
)
"""The epoch, a leap day, before 1970, New York's change to summer time, and an odd time in 1906."""


@dataclass(frozen=True)
class RandomTable:
    """A stream's rows, each with its event time in microseconds; NULL where it has none."""

    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    base: int
    ties: bool
    """Whether rows share event times. Then `first` and `last` are not determined."""

    @property
    def select(self) -> str:
        """The table as a SELECT over VALUES, the casts outside so that a cell is short."""
        names = ["ts", ID, *(c.sql for c in self.columns)]
        casts = [f"CAST({c.sql} AS {c.type}) AS {c.sql}" for c in self.columns]
        values = ",\n  ".join(f"({', '.join(row)})" for row in self.rows)
        return (
            f"SELECT timestamp_micros(ts) AS ts, CAST({ID} AS BIGINT) AS {ID}, {', '.join(casts)}\n"
            f"FROM VALUES\n  {values}\nAS t({', '.join(names)})"
        )

    def with_rows(self, rows: Sequence[tuple[str, ...]]) -> RandomTable:
        return replace(self, rows=tuple(rows))

    def only(self, used: Callable[[TableColumn], bool]) -> RandomTable:
        """Without columns that nothing uses."""
        places = [i for i, c in enumerate(self.columns) if used(c)]
        rows = tuple((*row[:2], *(row[2 + i] for i in places)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in places), rows=rows)


def random_table(random: Random, case_sensitive: bool, size: int = 80) -> RandomTable:
    """Rows in order of event time, so that Spark's `first` over one partition is the first by event time."""
    base, ties = random.choice(BASES), random.random() < 0.25
    span = random.choice((20, 100, 100, 400)) * SECOND
    step = 250_000 if ties else 1
    moments = [base + random.randrange(0, span, step) for _ in range(size)]
    times = sorted(moments if ties else set(moments))
    columns = (*COLUMNS, TWIN) if case_sensitive else COLUMNS
    columns = (*columns, INTERNAL) if random.random() < 0.04 else columns
    rows = []
    for place, time in enumerate(times):
        cells = ["NULL" if random.random() < c.nulls else c.draw(random) for c in columns]
        rows.append(("CAST(NULL AS BIGINT)" if random.random() < 0.02 else str(time), str(place), *cells))
    return RandomTable(columns, tuple(rows), base, ties)
