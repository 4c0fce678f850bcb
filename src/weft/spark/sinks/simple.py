"""Sinks in the driver's process: memory, console, a function of yours, and none."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from rich.console import Console
from rich.table import Table as RichTable

from weft.engine import Layout
from weft.spark.sinks.base import Answers, OtherColumns


class NoopSink:
    """Drops the answers: for measurements."""

    def open(self, layout: Layout) -> None:
        return

    def write(self, batch: int, bucket: int, answers: Answers) -> None:
        return


class MemorySink:
    """Answers in the driver's memory, by query; a repeated batch replaces what it gave."""

    def __init__(self) -> None:
        self._batches: dict[int, Answers] = {}
        self._schemas: dict[str, pa.Schema] = {}

    def open(self, layout: Layout) -> None:
        for query in layout.queries:
            schema = self._schemas.setdefault(query.name, query.schema)
            if not schema.equals(query.schema):
                raise OtherColumns(
                    f"there are answers of {query.name} with other columns ({', '.join(schema.names)}) than this query "
                    f"gives ({', '.join(query.schema.names)}); give the query another name"
                )

    def take(self, batch: int, answers: Answers) -> None:
        self._batches[batch] = answers

    def tables(self) -> dict[str, pa.Table]:
        """All answers so far, also of queries that left; a query without any has an empty table."""
        batches = [self._batches[b] for b in sorted(self._batches)]
        return {
            name: pa.concat_tables([schema.empty_table(), *(b[name] for b in batches if name in b)])
            for name, schema in self._schemas.items()
        }


class CallbackSink:
    """Hands each batch's answers to a Python function: `function(batch, {query: pyarrow.Table})`."""

    def __init__(self, function: Callable[[int, Answers], object]) -> None:
        self._function = function

    def open(self, layout: Layout) -> None:
        return

    def take(self, batch: int, answers: Answers) -> None:
        self._function(batch, answers)


class ConsoleSink:
    """Prints the newest rows of each query."""

    def __init__(self, rows: int = 5) -> None:
        self._rows = rows
        self._console = Console()

    def open(self, layout: Layout) -> None:
        return

    def take(self, batch: int, answers: Answers) -> None:
        for name, table in answers.items():
            shown = RichTable(title=f"{name}  batch {batch}  {table.num_rows} rows", title_justify="left")
            for column in table.column_names:
                shown.add_column(column)
            for row in table.slice(max(0, table.num_rows - self._rows)).to_pylist():
                shown.add_row(*(_cell(v) for v in row.values()))
            self._console.print(shown)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return " .. ".join(_cell(v) for v in value.values())
    return "NULL" if value is None else str(value)
