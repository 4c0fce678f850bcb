"""Expressions over aggregates, against Spark: value by value, type by type, and error by error."""

from __future__ import annotations

import math
import pickle
import re
import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weft.engine.project import CannotEvaluate, EvaluationError, LeafColumns, Typed, bind, evaluate
from weft.model.expression import Expression

# ---------------------------------------------------------------------------------------------------------------------
# Columns that stand for aggregate calls. Rows pair edge values by cycling lists of different lengths.

MAX, MIN = 2**63 - 1, -(2**63)
NAN, INF = math.nan, math.inf


def decimals(values: str) -> list[Decimal | None]:
    return [*map(Decimal, values.split()), None]


EDGES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.int64(), [0, 1, -7, None, MAX, MIN, 12, 3_000_000_000, -1, 15, 25]),
    "c": (pa.int64(), [2, 0, -1, 3, None, 7, 1000]),
    "i": (pa.int32(), [0, 7, -3, None, 2**31 - 1, -(2**31), 100, 16_777_217]),
    "t": (pa.int8(), [1, -128, 127, None, 0]),
    "d": (pa.float64(), [0.0, -0.0, 1.5, NAN, INF, -INF, None, 2.5, -2.5, 0.285, 1e300, 123456.785, -1e-9]),
    "e": (pa.float64(), [1.0, NAN, 0.0, -0.0, None, 3.25, -1e19, 9.3e18, 200.0]),
    "f": (pa.float32(), [0.0, 1.005, None, NAN, -2.5, 16_777_216.0, 3e38]),
    "m": (
        pa.decimal128(10, 2),
        decimals("0.00 1.25 -1.25 99999999.99 0.05 -0.05"),
    ),
    "n": (
        pa.decimal128(20, 4),
        decimals("3.0000 0.0000 -7.1250 9999999999999999.9999 0.0003"),
    ),
    "w": (
        pa.decimal128(38, 18),
        decimals("1.5 0 -99999999999999999999.999999999999999999 1e-18 -7 123456789.5"),
    ),
    "x": (
        pa.decimal128(38, 0),
        decimals("5 99999999999999999999999999999999999999 -12 0"),
    ),
    "s": (pa.string(), ["a", "", None, "b", "12", " -7 ", "1.5", "x", "true", "zürich"]),
    "p": (pa.bool_(), [True, False, None]),
    "q": (pa.bool_(), [True, True, False, None, False]),
    "y": (pa.date32(), [date(2024, 2, 29), None, date(1969, 12, 31), date(2025, 1, 1)]),
    "z": (
        pa.timestamp("us", "UTC"),
        [datetime(2024, 2, 29, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 500_000, UTC), None],
    ),
    "u": (pa.timestamp("us", "UTC"), [datetime(2024, 5, 1, 12, 30, 0, 120, UTC), datetime(2024, 2, 29, tzinfo=UTC)]),
}
ROWS = 44
TABLE = pa.table({name: pa.array([v[r % len(v)] for r in range(ROWS)], t) for name, (t, v) in EDGES.items()})

TEMPLATES = {
    "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})", "div": "({0} / {1})", "int_div": "({0} div {1})",
    "mod": "({0} % {1})", "neg": "(- {0})", "eq": "({0} = {1})", "ne": "({0} <> {1})", "lt": "({0} < {1})",
    "le": "({0} <= {1})", "gt": "({0} > {1})", "ge": "({0} >= {1})", "null_safe_eq": "({0} <=> {1})",
    "and": "({0} AND {1})", "or": "({0} OR {1})", "not": "(NOT {0})", "is_null": "({0} IS NULL)",
    "is_not_null": "({0} IS NOT NULL)",
}  # fmt: skip


def call(name: str) -> Expression:
    return Expression("call", name, value=list(EDGES).index(name))


def lit(text: str) -> Expression:
    return Expression("literal", text, value=text)


def op(name: str, *operands: Expression | str) -> Expression:
    """`"b"` is a column, any other text a literal."""
    args = tuple(o if isinstance(o, Expression) else call(o) if o in EDGES else lit(o) for o in operands)
    texts = [a.sql for a in args]
    if name == "case":
        whens = "".join(f" WHEN {c} THEN {v}" for c, v in zip(texts[::2], texts[1::2]))
        return Expression("case", f"CASE{whens}{' ELSE ' + texts[-1] if len(texts) % 2 else ''} END", args)
    return Expression(name, TEMPLATES.get(name, f"{name}({', '.join(texts)})").format(*texts), args)


def cast(operand: Expression | str, to: str) -> Expression:
    arg = operand if isinstance(operand, Expression) else call(operand) if operand in EDGES else lit(operand)
    return Expression("cast", f"CAST({arg.sql} AS {to})", (arg,), to)


def every(name: str, *pairs: str) -> list[Expression]:
    return [op(name, *re.findall(r"(?:[^\s']|'[^']*')+", pair)) for pair in pairs]


EXPRESSIONS = [
    *every("add", "b c", "i i", "t t", "i b", "d e", "f f", "f d", "f i", "m n", "w x", "b m", "m 2.5"),
    *every("add", "d 1", "m d", "b NULL"),
    *every("sub", "b c", "t t", "d e", "m n", "x w", "5 m", "z u", "y y", "f b"),
    *every("mul", "b c", "i t", "d e", "m n", "w w", "x c", "n 0.5BD", "d 100", "b 1e3", "t t", "m 3L"),
    *every("div", "b c", "d e", "m n", "w x", "n c", "m 3", "w w", "f i", "d m", "i t", "b 3", "x 7.00", "d 2.5D"),
    *every("int_div", "b c", "b -1", "i t", "m n", "x 0.01", "n 2", "x 3"),
    *every("mod", "b c", "b -1", "d e", "m n", "w 0.7", "t i", "f 2", "x c", "i -3"),
    *[op(name, column) for name in ("neg", "abs") for column in "bitdfmw"],
    *[e for name in ("eq", "lt", "ge", "null_safe_eq") for e in every(name, "d e", "b d", "m n", "s 'a'")],
    *every("le", "b m", "i f", "w x", "n w", "f m", "p q", "y z", "z u", "x 1.5", "x 3", "b 12.0", "y '2024-03-01'"),
    *every("gt", "d e", "b c", "t 5L", "z '2024-01-01 00:00:00'", "f d", "b NULL", "b i", "m 1e0", "s 'Zebra'"),
    *every("ne", "d e", "m 1.25", "p q", "z TIMESTAMP'2024-02-29 00:00:00'", "y DATE'2025-01-01'"),
    *every("null_safe_eq", "b NULL", "s s", "p q", "y z"),
    *every("and", "p q", "p NULL", "false q"),
    *every("or", "p q", "q NULL", "true p"),
    *[op(name, "p") for name in ("not", "is_null", "is_not_null")],
    *every("is_null", "s", "d", "z"),
    op("case", op("gt", "c", "0"), op("div", "b", "c")),
    op("case", op("ne", "c", "0"), op("mod", "b", "c"), op("is_null", "c"), "0", "-1"),
    op("case", "p", "m", "q", "b", "2.5"),
    op("case", "p", "i", "d"),
    op("case", "p", "s", "'none'"),
    op("case", "p", "NULL", "z"),
    op("if", op("eq", "c", "0"), "NULL", op("div", "n", "c")),
    op("if", "p", op("add", "b", "1"), op("neg", "b")),
    op("coalesce", "b", op("div", "i", "c"), "0"),
    op("coalesce", "m", "b", "d"),
    op("coalesce", "s", "'it''s'"),
    op("coalesce", "NULL", "y"),
    op("nullif", "c", "0"),
    op("nullif", "m", "1.25"),
    op("nullif", "d", "e"),
    op("div", "b", op("nullif", "c", "0")),
    op("and", op("ne", "c", "0"), op("gt", op("div", "b", "c"), "1")),
    op("or", op("eq", "c", "0"), op("gt", op("mod", "b", "c"), "1")),
    op("add", "c", op("int_div", "b", "i")),
    op("div", op("add", "b", "1"), "c"),
    *every("greatest", "d e", "b c", "m n", "b d", "s 'm'", "p q", "z u", "d -0.0D 0.0D", "b 2.5 NULL", "i t"),
    *every("least", "d e", "b c", "m n", "w x", "b d", "s 'm'", "p q", "y y", "d -0.0D 0.0D", "f i"),
    *every("round", "d", "d 2", "e 1", "f 2", "f", "m", "m 1", "n 2", "w 10", "x", "b", "i 2"),
    *every("round", "x -3", "m 5", "b -1", "t -2", "d -2", "d 17", "e -1", "f -1"),
    *every("floor", "d", "e", "f", "m", "w", "x", "b", "i"),
    *every("ceil", "d", "e", "f", "m", "w", "n", "b", "i"),
    *[op(name, column) for name in ("sqrt", "exp", "ln", "log10", "log2", "sign") for column in "dbm"],
    *every("power", "d e", "e d", "b 2", "m 0.5", "1.0D d"),
    *[cast("d", to) for to in ("bigint", "int", "tinyint", "float", "decimal(10,2)", "decimal(38,18)", "boolean")],
    *[cast("e", to) for to in ("bigint", "smallint", "decimal(20,0)")],
    *[cast("f", to) for to in ("double", "int", "decimal(20,5)")],
    *[cast("b", to) for to in ("int", "tinyint", "double", "float", "decimal(20,2)", "decimal(5,0)", "string")],
    *[cast("n", to) for to in ("decimal(10,2)", "bigint", "int", "double", "float", "string", "boolean")],
    *[cast("w", to) for to in ("double", "float", "bigint", "tinyint", "decimal(38,2)", "string")],
    *[cast("x", to) for to in ("double", "bigint", "int", "string", "decimal(38,18)")],
    *[cast("p", to) for to in ("int", "double", "decimal(3,1)", "string")],
    *[cast("s", to) for to in ("int", "bigint", "double", "decimal(10,1)", "boolean")],
    *[cast("z", to) for to in ("string", "date", "bigint", "double", "timestamp_ntz")],
    *[cast("u", to) for to in ("string", "date")],
    *[cast("y", to) for to in ("string", "timestamp", "timestamp_ntz")],
    *every("add", "z INTERVAL'1'HOUR", "y 1", "z INTERVAL'-90'MINUTE"),
    *map(lit, ("5", "5L", "-5", "2.5", "1e3", "2.5F", "7S", "7Y", "1.50BD", ".5", "'t\\n\\'x'", "true", "NULL")),
    *map(lit, ("DATE'2024-02-29'", "TIMESTAMP'2024-02-29 01:02:03.000004'", "INTERVAL 5 MINUTES", "99999999999")),
]  # fmt: skip
APPROXIMATE = ("exp", "ln", "log", "power")
"""Spark takes these from Java's StrictMath, which may differ from the C library's in the last digit."""


# ---------------------------------------------------------------------------------------------------------------------


class Oracle:
    """Spark's types, values and errors for the table's rows."""

    def __init__(self, spark: Any, ansi: bool) -> None:
        from pyspark.sql.pandas.types import to_arrow_type

        spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
        self.ansi = ansi
        self.frame = spark.createDataFrame(TABLE.append_column("row", pa.array(range(ROWS), pa.int32())))
        texts = sorted({node.sql for e in EXPRESSIONS for node in e.walk()})
        fields = self.frame.selectExpr(*(f"{text} AS v{at}" for at, text in enumerate(texts))).schema.fields
        self.types = {text: to_arrow_type(f.dataType, timezone="UTC") for text, f in zip(texts, fields, strict=True)}

    def type_of(self, node: Expression) -> pa.DataType:
        return self.types[node.sql]

    def run(self, sql: str, row: int) -> None:
        """For its error: one that is met while Arrow is sent takes longer to come."""
        self.frame.where(f"row = {row}").selectExpr(f"{sql} AS v").collect()

    def values(self, sql: str, rows: list[int]) -> pa.Array:
        chosen = self.frame.where(f"row IN ({','.join(map(str, rows))})")
        return chosen.selectExpr("row", f"{sql} AS v").toArrow().sort_by("row").column(1).combine_chunks()

    @cached_property
    def together(self) -> dict[str, pa.Array]:
        """The values of expressions, of rows that they do not raise for, many to a query; one that raises adds none."""
        values: dict[str, pa.Array] = {}
        for begin in range(0, len(EXPRESSIONS), 30):
            part = EXPRESSIONS[begin : begin + 30]
            wrong = [raising(bind(e, self.type_of), self.ansi) for e in part]
            texts = (f"{_guarded(e.sql, rows)} AS v{i}" for i, (e, rows) in enumerate(zip(part, wrong, strict=True)))
            try:
                table = self.frame.selectExpr("row", *texts).toArrow().sort_by("row")
            except Exception:  # whichever of them it was fails its own test
                continue
            for e, rows, column in zip(part, wrong, table.columns[1:], strict=True):
                values[e.sql] = column.combine_chunks().take([row for row in range(ROWS) if row not in rows])
        return values


@pytest.fixture(scope="module", params=[True, False], ids=["ansi", "legacy"])
def oracle(spark: Any, request: pytest.FixtureRequest) -> Iterator[Oracle]:
    yield Oracle(spark, request.param)
    spark.conf.unset("spark.sql.ansi.enabled")


def columns(rows: list[int] | None = None) -> LeafColumns:
    table = TABLE if rows is None else TABLE.take(pa.array(rows, pa.int64()))
    return LeafColumns(table.num_rows, [c.combine_chunks() for c in table.columns])


def same(ours: Any, theirs: Any, exact: bool) -> bool:
    if ours is None or theirs is None or not isinstance(ours, float):
        return bool(ours == theirs) and type(ours) is type(theirs)
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    bits = struct.pack("d", ours) == struct.pack("d", theirs)
    return bits or (not exact and math.isclose(ours, theirs, rel_tol=1e-12))


def _guarded(sql: str, wrong: Iterable[int]) -> str:
    rows = ",".join(map(str, wrong))
    return f"CASE WHEN row NOT IN ({rows}) THEN {sql} END" if rows else sql


def raising(node: Typed, ansi: bool) -> dict[int, str]:
    """The rows that the expression raises for, each with the way out that is told."""
    return {row: way_out for row in range(ROWS) if (way_out := raises(node, row, ansi))}


def raises(node: Typed, row: int, ansi: bool) -> str | None:
    try:
        evaluate(node, columns([row]), ansi=ansi)
    except EvaluationError as error:
        advice = re.search("Write nullif|Cast the operands|Correct the text", str(error))
        return advice and advice[0]
    return None


@pytest.mark.spark
@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda e: e.sql)
def test_values_types_and_errors_are_those_of_spark(oracle: Oracle, expression: Expression) -> None:
    node = pickle.loads(pickle.dumps(bind(expression, oracle.type_of)))
    wrong = raising(node, oracle.ansi)
    right = [row for row in range(ROWS) if row not in wrong]
    for row in {way_out: row for row, way_out in wrong.items()}.values():  # one of each kind
        with pytest.raises(Exception, match=r"\[[A-Z_]+") as caught:
            oracle.run(expression.sql, row)
        assert "SQLSTATE: 22" in str(caught.value)
    if not right:
        return
    ours = evaluate(node, columns(right), ansi=oracle.ansi)
    cached = oracle.together.get(expression.sql)
    theirs = oracle.values(expression.sql, right) if cached is None else cached
    assert ours.type == theirs.type == node.type
    ours.validate(full=True)
    exact = not any(name in expression.sql for name in APPROXIMATE)
    differing = {
        row: (weft, spark)
        for row, weft, spark in zip(right, ours.to_pylist(), theirs.to_pylist(), strict=True)
        if not same(weft, spark, exact)
    }
    assert not differing


# ---------------------------------------------------------------------------------------------------------------------
# Without Spark.


def typed(expression: Expression, types: dict[str, pa.DataType]) -> Typed:
    leaves = {name: t for name, (t, _) in EDGES.items()}
    return bind(expression, lambda node: types[node.sql] if node.sql in types else leaves[node.sql])


def test_a_plain_leaf_is_the_column_itself() -> None:
    table = columns()
    got = evaluate(typed(call("d"), {}), table, ansi=True)
    assert got is table.calls[list(EDGES).index("d")]


def test_keys_and_the_window_are_leaves_too() -> None:
    start = pa.array([0, 60_000_000], pa.timestamp("us", "UTC"))
    end = pa.array([60_000_000, 120_000_000], pa.timestamp("us", "UTC"))
    window = pa.StructArray.from_arrays([start, end], ["start", "end"])
    table = LeafColumns(2, keys=[pa.array(["a", None])], window_start=start, window_end=end, window=window)
    for name, column in (("window", window), ("window_start", start), ("window_end", end)):
        assert evaluate(Typed(name, column.type), table, ansi=True) is column
    assert evaluate(Typed("key", pa.string(), value=0), table, ansi=True).to_pylist() == ["a", None]


def test_a_struct_can_be_chosen_by_a_condition() -> None:
    window = pa.array([{"start": 1}, {"start": 2}])
    node = Typed(
        "if",
        window.type,
        (Typed("call", pa.bool_(), value=0), Typed("window", window.type), Typed("literal", pa.null(), value="NULL")),
    )
    table = LeafColumns(2, [pa.array([False, True])], window=window)
    assert evaluate(node, table, ansi=True).to_pylist() == [None, {"start": 2}]


def test_a_branch_that_is_not_taken_does_not_raise() -> None:
    ratio = op("div", "b", "c")
    node = typed(
        op("case", op("ne", "c", "0"), ratio),
        {
            "0": pa.int32(),
            "(c <> 0)": pa.bool_(),
            ratio.sql: pa.float64(),
            f"CASE WHEN (c <> 0) THEN {ratio.sql} END": pa.float64(),
        },
    )
    evaluate(node, columns(), ansi=True)
    with pytest.raises(EvaluationError, match=r"\(b / c\): division by zero"):
        evaluate(typed(ratio, {ratio.sql: pa.float64()}), columns(), ansi=True)


def test_no_rows_give_no_rows() -> None:
    for expression, result in ((op("div", "m", "n"), pa.decimal128(32, 14)), (op("add", "b", "c"), pa.int64())):
        got = evaluate(typed(expression, {expression.sql: result}), columns([]), ansi=True)
        assert got.type == result
        assert len(got) == 0


@pytest.mark.parametrize(
    ("expression", "types", "reason"),
    [
        (op("sha2", "s", "256"), {"256": pa.int32(), "sha2(s, 256)": pa.string()}, "does not evaluate sha2"),
        (op("gt", "s", "b"), {"(s > b)": pa.bool_()}, "gt of string, bigint"),
        (op("eq", "z", "'soon'"), {"'soon'": pa.string(), "(z = 'soon')": pa.bool_()}, "timestamp"),
        (cast("d", "string"), {"CAST(d AS string)": pa.string()}, "cast of double"),
        (op("round", "d", "i"), {"round(d, i)": pa.float64()}, "constant"),
        (op("floor", "d", "1"), {"1": pa.int32(), "floor(d, 1)": pa.decimal128(20, 1)}, "2 arguments"),
    ],
    ids=lambda value: value.sql if isinstance(value, Expression) else "",
)
def test_what_cannot_be_evaluated_is_refused_when_it_is_bound(
    expression: Expression, types: dict[str, pa.DataType], reason: str
) -> None:
    with pytest.raises(CannotEvaluate, match=reason) as caught:
        typed(expression, types)
    assert expression.args[0].sql in str(caught.value)


def test_rounding_a_double_rounds_the_decimal_that_it_prints() -> None:
    values = np.random.default_rng(7).normal(0, 1000, 5000).round(3) + 0.0005
    node = Typed("round", pa.float64(), (Typed("call", pa.float64(), value=0), Typed("literal", pa.int32(), value="3")))
    got = evaluate(node, LeafColumns(len(values), [pa.array(values)]), ansi=True).to_pylist()
    assert got == [float(Decimal(repr(v)).quantize(Decimal("0.001"), "ROUND_HALF_UP")) for v in values.tolist()]
