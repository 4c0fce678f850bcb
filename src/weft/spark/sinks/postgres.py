"""Answers in Postgres: each batch is one transaction, and a batch that is repeated changes nothing."""

from __future__ import annotations

import logging
import time
import uuid
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from weft.engine import Layout
from weft.model import SinkError
from weft.spark.logs import log_event
from weft.spark.sinks.base import Answers
from weft.spark.sinks.postgres_table import (
    BATCHES,
    PostgresFailed,
    TargetTable,
    prepare_tables,
    table_for,
    write_answers,
)
from weft.spark.sinks.row_key import row_keys_of

if TYPE_CHECKING:
    from psycopg import Connection

logger = logging.getLogger(__name__)

PAUSES = (1.0, 2.0, 4.0)
"""Seconds between two attempts to reach a server that does not answer."""


class MissingPsycopg(SinkError):
    """The package that talks to Postgres is not installed."""


class PostgresSink:
    """The number of a batch is written in one transaction with its answers, so a repeated batch changes nothing.

    Revised answers are replaced, retracted ones are deleted.
    """

    def __init__(self, spec: str) -> None:
        if find_spec("psycopg") is None:
            raise MissingPsycopg("a Postgres sink needs psycopg; install it with: pip install 'weft[postgres]'")
        self._url = spec
        self._tables: dict[str, TargetTable] = {}
        self._job = uuid.uuid4().hex
        self._connection: Connection[Any] | None = None

    def begin(self, job: str) -> None:
        self._job = job

    def open(self, layout: Layout) -> None:
        import psycopg

        row_keys = row_keys_of(layout, "Postgres")
        tables = [table_for(query.name, query.schema, row_keys[query.name]) for query in layout.queries]
        try:
            with self._connect() as connection:
                prepare_tables(connection, tables)
        except psycopg.Error as error:
            raise PostgresFailed(f"{self._where(error)}; nothing has been changed") from error
        self._tables |= {table.name: table for table in tables}

    def take(self, batch: int, answers: Answers) -> None:
        """Try again for some seconds if the server does not answer; no batch is written twice."""
        import psycopg

        for pause in (*PAUSES, None):
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = self._connect()
                with self._connection.transaction():
                    self._apply(self._connection, batch, answers)
                return
            except psycopg.OperationalError as error:
                self._close()
                if pause is None:
                    raise PostgresFailed(self._not_written(batch, error)) from error
                log_event(logger, "Postgres is tried again", level=logging.WARNING, batch=batch, after_seconds=pause)
                time.sleep(pause)
            except psycopg.Error as error:
                self._close()
                raise PostgresFailed(self._not_written(batch, error)) from error

    def _apply(self, connection: Connection[Any], batch: int, answers: Answers) -> None:
        last = connection.execute(f"SELECT batch FROM {BATCHES} WHERE job = %s FOR UPDATE", [self._job]).fetchone()
        if last is not None and last[0] >= batch:
            return
        for name, table in answers.items():
            if table.num_rows:
                write_answers(connection, self._tables[name], table)
        connection.execute(
            f"INSERT INTO {BATCHES} (job, batch) VALUES (%s, %s) "
            "ON CONFLICT (job) DO UPDATE SET batch = EXCLUDED.batch, at = now()",
            [self._job, batch],
        )

    def _connect(self) -> Connection[Any]:
        import psycopg

        return psycopg.connect(self._url, autocommit=True, connect_timeout=10, application_name="weft")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _not_written(self, batch: int, error: Exception) -> str:
        return f"batch {batch}: {self._where(error)}; repair that and start again; nothing is lost"

    def _where(self, error: Exception) -> str:
        """Without the password that the URL may hold."""
        from psycopg.conninfo import conninfo_to_dict

        parameters = conninfo_to_dict(self._url)
        host, database = parameters.get("host", "its local socket"), parameters.get("dbname", "default")
        return f"Postgres at {host}, database {database}: {' '.join(str(error).split())}"
