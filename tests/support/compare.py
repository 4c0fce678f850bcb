"""Whether two answers are the same rows, as exactly as the arithmetic allows; and Spark's answers to compare with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tests.support.naive import Answers
from tests.support.twin import Query

RELATIVE = 1e-9
"""How far floating sums, means and deviations may be from Spark's, as a share of them."""

Magnitudes = Mapping[tuple[Any, ...], Sequence[float | None]]
"""By the key of an answer row, for each cell the absolute error allowed beside `RELATIVE`; None for exact cells."""


@dataclass(frozen=True)
class Rows:
    """Rows of plain Python values: a time is an integer, a struct a tuple. None stands for a name or type not known."""

    names: tuple[str | None, ...]
    types: tuple[pa.DataType | None, ...]
    cells: list[tuple[Any, ...]]


def assert_same_rows(
    actual: Any,
    expected: Any,
    schema: pa.Schema | None = None,
    magnitudes: Magnitudes | None = None,
    *,
    key: Sequence[int] | None = None,
    text: str = "",
) -> None:
    """Fail where `actual` and `expected` differ in columns, in rows, or in a cell.

    Either is an Arrow table, a list of Spark rows, or the oracle's `Answers`. `schema` gives the types of rows that
    carry none. `key` names the columns, by position, that tell rows apart; without it they are matched by all cells
    that are not floating. `text` is the query, for the message. `Answers` bring their own key, text and magnitudes.
    """
    for side in (expected, actual):
        if isinstance(side, Answers):
            key = key or side.query.key_positions
            text = text or side.query.text
            magnitudes = magnitudes or allowances(side)
    left, right = rows_of(actual, schema), rows_of(expected, schema)
    _assert_same_columns(left, right, text)
    types = [a if a is not None else b for a, b in zip(left.types, right.types)]
    left_rows = [tuple(map(_as_type, row, types)) for row in left.cells]
    right_rows = [tuple(map(_as_type, row, types)) for row in right.cells]
    if key is None:
        key = [i for i, t in enumerate(types) if t is None or not pa.types.is_floating(t)]
    names = [a or b or f"column {i}" for i, (a, b) in enumerate(zip(left.names, right.names))]
    _assert_same_cells(
        _by_key(left_rows, key), _by_key(right_rows, key), names, [names[i] for i in key], magnitudes, text
    )


def allowances(answers: Answers) -> Magnitudes:
    """What the oracle allows in each cell, by the key of the answer row."""
    positions = answers.query.key_positions
    return {tuple(canonical(a.cells[i]) for i in positions): a.slacks for a in answers}


def rows_of(side: Any, schema: pa.Schema | None = None) -> Rows:
    """Bring rows into one form."""
    types = None if schema is None else tuple(plain_type(t) for t in schema.types)
    if isinstance(side, pa.Table):
        columns = [[plain_value(v) for v in column.to_pylist()] for column in side.columns]
        return Rows(tuple(side.column_names), tuple(plain_type(t) for t in side.schema.types), list(zip(*columns)))
    if isinstance(side, Answers):
        names = side.query.names
        return Rows(names, types or (None,) * len(names), [a.cells for a in side])
    names = tuple(side[0].__fields__) if side else tuple(schema.names if schema is not None else ())
    return Rows(names, types or (None,) * len(names), [tuple(map(plain_value, row)) for row in side])


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """Without field metadata and without what it says about NULLs, which Spark's optimizer changes at will."""
    if pa.types.is_struct(data_type):
        return pa.struct([(f.name, plain_type(f.type)) for f in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(plain_type(data_type.value_type))
    return data_type


def plain_value(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(plain_value(v) for v in value.values())
    if isinstance(value, tuple):
        return tuple(plain_value(v) for v in value)
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.astimezone()  # collect() gives local time
        return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return value


def canonical(value: Any) -> Any:
    """As part of a key: NaN equals NaN, and -0.0 equals 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def close(actual: float, expected: float, slack: float | None) -> bool:
    """Whether two floating results are the same. NaN equals NaN, -0.0 equals 0.0; a slack of None wants equality."""
    if math.isnan(actual) or math.isnan(expected):
        return math.isnan(actual) and math.isnan(expected)
    if slack is None or math.isinf(actual) or math.isinf(expected):
        return actual == expected
    return abs(actual - expected) <= RELATIVE * abs(expected) + slack


def _as_type(value: Any, data_type: pa.DataType | None) -> Any:
    """The oracle does not know decimal types: it gives fractions, rounded here as Spark rounds."""
    if not isinstance(value, Fraction | Decimal) or data_type is None or not pa.types.is_decimal(data_type):
        return value
    with localcontext(prec=80):
        number = Decimal(value.numerator) / value.denominator if isinstance(value, Fraction) else value
        return number.quantize(Decimal(1).scaleb(-data_type.scale), ROUND_HALF_UP)


def _by_key(rows: list[tuple[Any, ...]], key: Sequence[int]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(tuple(canonical(row[i]) for i in key), []).append(row)
    return found


def _assert_same_columns(left: Rows, right: Rows, text: str) -> None:
    if not left.names or not right.names:  # a list without rows says nothing of its columns
        return
    same_names = len(left.names) == len(right.names) and all(
        a == b or a is None or b is None for a, b in zip(left.names, right.names)
    )
    if not same_names:
        raise AssertionError(f"columns are {list(left.names)}, expected {list(right.names)}{_in(text)}")
    for name, a, b in zip(left.names, left.types, right.types):
        if a is not None and b is not None and a != b:
            raise AssertionError(f"column {name} has type {a}, expected {b}{_in(text)}")


def _assert_same_cells(
    actual: dict[tuple[Any, ...], list[tuple[Any, ...]]],
    expected: dict[tuple[Any, ...], list[tuple[Any, ...]]],
    names: list[str],
    key_names: list[str],
    magnitudes: Magnitudes | None,
    text: str,
) -> None:
    problems = []
    for key in [*expected, *(k for k in actual if k not in expected)]:
        ours, theirs = sorted(actual.get(key, []), key=repr), sorted(expected.get(key, []), key=repr)
        where = ", ".join(f"{n}={v!r}" for n, v in zip(key_names, key))
        if len(ours) != len(theirs):
            problems.append(f"at {where}: {len(ours)} rows, expected {len(theirs)}\n    got {ours}\n    not {theirs}")
            continue
        slacks = magnitudes[key] if magnitudes is not None and key in magnitudes else [0.0] * len(names)
        for row, wanted in zip(ours, theirs):
            for name, a, b, slack in zip(names, row, wanted, slacks):
                if not _same(a, b, slack):
                    allowed = "" if slack is None else f" (allowed beside {RELATIVE:g} relative: {slack:g})"
                    problems.append(f"at {where}: {name} is {a!r}, expected {b!r}{allowed}")
    if problems:
        more = f"\n  and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise AssertionError("answers differ\n  " + "\n  ".join(problems[:5]) + more + _in(text))


def _same(actual: Any, expected: Any, slack: float | None) -> bool:
    if isinstance(actual, float) and isinstance(expected, float):
        return close(actual, expected, slack)
    return type(actual) is type(expected) and actual == expected


def _in(text: str) -> str:
    return f"\nin the query\n{text}" if text else ""


# What Spark says


def spark_answers(spark: Any, rows: pa.Table, queries: Sequence[Query], threads: int = 3) -> dict[str, pa.Table]:
    """The answers of plain Spark by query name, with the rows as the view `stream`.

    A session beside `spark` keeps the view and the settings apart from what is tested. One partition needs no shuffle,
    and interpreting beats compiling for a few rows: a query takes about a tenth of a second.
    """
    beside = spark.newSession()
    beside.conf.set("spark.sql.codegen.wholeStage", "false")
    beside.conf.set("spark.sql.adaptive.enabled", "false")
    beside.createDataFrame(rows).coalesce(1).createOrReplaceTempView("stream")
    with ThreadPoolExecutor(threads) as pool:
        tables = pool.map(lambda query: beside.sql(query.spark_sql).toArrow(), queries)
        return {query.name: table for query, table in zip(queries, tables)}
