"""The table of a query in Postgres: its columns and key, and how the answers of a batch are written to it.

A table has one row per window and group of its query.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.model import SinkError
from weft.spark.sinks.base import OtherColumns
from weft.spark.sinks.json_rows import json_cells
from weft.spark.sinks.row_key import RETRACTED, RowKey

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed

BATCHES = "weft_batches"
"""The table with the last batch of each job that was written."""

LEAST_VERSION = 150000
"""From version 15 on, two NULLs can be the same key."""

LONGEST_NAME = 63
"""Bytes of a name; Postgres truncates longer ones silently."""


class PostgresFailed(SinkError):
    """A server that cannot be reached, is too old, or refuses."""


@dataclass(frozen=True, slots=True)
class TargetTable:
    """A query's table: names and types of its columns, and those of its key."""

    name: str
    columns: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]

    def rows(self, answers: pa.Table) -> list[Sequence[Any]]:
        """The answers as Postgres stores them: a window in two columns, nested values as JSON."""
        columns: list[Sequence[Any]] = []
        for column in answers.columns:
            if _is_window(column.type):
                columns += [pc.struct_field(column, "start").to_pylist(), pc.struct_field(column, "end").to_pylist()]
            elif _type(column.type) == "jsonb":
                columns.append([None if cell == "null" else cell for cell in json_cells(column)])
            else:
                columns.append(column.to_pylist())
        return list(zip(*columns, strict=True))


def prepare_tables(connection: Connection[Any], tables: Sequence[TargetTable]) -> None:
    """Create missing tables; existing ones must have the right columns."""
    from psycopg import sql

    if connection.info.server_version < LEAST_VERSION:
        raise PostgresFailed(
            f"this Postgres is version {connection.info.server_version // 10000}; weft needs 15 or newer, which can "
            "treat two NULLs in a group as the same"
        )
    with connection.transaction():
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {BATCHES} (job text PRIMARY KEY, batch bigint NOT NULL, "
            "at timestamptz NOT NULL DEFAULT now())"
        )
        for table in tables:
            existing = _columns(connection, table.name)
            if existing:
                _check(connection, table, existing)
                continue
            columns = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type_)) for name, type_ in table.columns]
            statement = sql.SQL("CREATE TABLE {} ({}, UNIQUE NULLS NOT DISTINCT ({}))").format(
                sql.Identifier(table.name), sql.SQL(", ").join(columns), _names(table.keys)
            )
            connection.execute(statement)


def _columns(connection: Connection[Any], table: str) -> dict[str, str]:
    """Names and types; empty if there is no such table."""
    return dict(
        connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(quote_ident(%s)) AND attnum > 0 AND NOT attisdropped",
            [table],
        ).fetchall()
    )


def _check(connection: Connection[Any], table: TargetTable, existing: dict[str, str]) -> None:
    wrong = [f"{name} {type_}" for name, type_ in table.columns if existing.get(name) != _full(type_)]
    if wrong:
        raise OtherColumns(
            f"the table {table.name} exists with other columns ({', '.join(f'{n} {t}' for n, t in existing.items())}): "
            f"this query gives {', '.join(wrong)}; give the query another name, or move the table away"
        )
    unique = connection.execute(
        "SELECT 1 FROM pg_index WHERE indrelid = to_regclass(quote_ident(%s)) AND indisunique "
        "AND indnullsnotdistinct AND indpred IS NULL "
        "AND (SELECT array_agg(attname::text ORDER BY attname) FROM pg_attribute "
        "WHERE attrelid = indrelid AND attnum = ANY (indkey)) = %s",
        [table.name, sorted(table.keys)],
    ).fetchone()
    if unique is None:
        raise OtherColumns(
            f"the table {table.name} exists without a key that answers can be replaced by; add it with "
            f'ALTER TABLE "{table.name}" ADD UNIQUE NULLS NOT DISTINCT ({", ".join(table.keys)}), or move it away'
        )


def write_answers(connection: Connection[Any], table: TargetTable, answers: pa.Table) -> None:
    """COPY to a temporary table, then delete retracted answers, and insert or replace the others."""
    from psycopg import sql

    target, names = sql.Identifier(table.name), [name for name, _ in table.columns]
    temporary = f"weft_{hashlib.sha256(table.name.encode()).hexdigest()[:16]}"
    staging = sql.Identifier("pg_temp", temporary)
    made = "CREATE TEMP TABLE IF NOT EXISTS {} ON COMMIT DELETE ROWS AS SELECT {}, false AS {} FROM {} WITH NO DATA"
    connection.execute(
        sql.SQL(made).format(sql.Identifier(temporary), _names(names), sql.Identifier(RETRACTED), target)
    )
    marked = RETRACTED in answers.column_names
    copied = [*names, RETRACTED] if marked else names
    with connection.cursor().copy(sql.SQL("COPY {} ({}) FROM STDIN").format(staging, _names(copied))) as copy:
        for row in table.rows(answers):
            copy.write_row(row)
    if marked:
        same = [sql.SQL("t.{0} IS NOT DISTINCT FROM b.{0}").format(sql.Identifier(key)) for key in table.keys]
        connection.execute(
            sql.SQL("DELETE FROM {} t USING {} b WHERE b.{} AND {}").format(
                target, staging, sql.Identifier(RETRACTED), sql.SQL(" AND ").join(same)
            )
        )
    changed = [name for name in names if name not in table.keys]
    sets = [sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in changed]
    then = sql.SQL("UPDATE SET {}" if sets else "NOTHING").format(sql.SQL(", ").join(sets))
    connection.execute(
        sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE {} IS NOT TRUE ON CONFLICT ({}) DO {}").format(
            target, _names(names), _names(names), staging, sql.Identifier(RETRACTED), _names(table.keys), then
        )
    )


def _names(names: Sequence[str]) -> Composed:
    from psycopg import sql

    return sql.SQL(", ").join(map(sql.Identifier, names))


def table_for(name: str, schema: pa.Schema, row_key: RowKey) -> TargetTable:
    columns: list[tuple[str, str]] = []
    for field in schema:
        if _is_window(field.type):
            of = _type(field.type.field("start").type)
            columns += [(f"{field.name}_start", of), (f"{field.name}_end", of)]
        elif field.name != RETRACTED:
            columns.append((field.name, _type(field.type)))
    names = [column for column, _ in columns]
    for long in (n for n in (name, *names) if len(n.encode()) > LONGEST_NAME):
        raise OtherColumns(f"{long} has more than {LONGEST_NAME} bytes, and Postgres cuts that off; shorten the name")
    doubled = sorted({n for n in names if names.count(n) > 1})
    if doubled:
        raise OtherColumns(f"{name} would have two columns {', '.join(doubled)} in Postgres; rename one with AS")
    window = f"{row_key.window}_start" if row_key.shape == "window" else row_key.window
    return TargetTable(name, tuple(columns), (window, *row_key.keys))


def _is_window(type_: pa.DataType) -> bool:
    return pa.types.is_struct(type_) and [field.name for field in type_] == ["start", "end"]


TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.large_binary(): "bytea",
    pa.date32(): "date",
    pa.null(): "text",
}


def _type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamptz" if type_.tz is not None else "timestamp"
    return TYPES.get(type_, "jsonb")


def _full(type_: str) -> str:
    """As Postgres spells it."""
    return {"timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone"}.get(type_, type_)
