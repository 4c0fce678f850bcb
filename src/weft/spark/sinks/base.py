"""Where answers go. A sink writes in the executors, a bucket at a time, or takes everything on the driver.

Whatever it does for a batch it must be able to do again: a batch that was not committed is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema
from rich.console import Console
from rich.table import Table as RichTable

from weft.engine import Layout
from weft.model import SinkError
from weft.spark.checkpoint.files import CheckpointFiles
from weft.spark.kafka_connector import KIND as KAFKA

Answers = Mapping[str, pa.Table]

SPARK_TYPES = "org.apache.spark.sql.parquet.row.metadata"
"""Where Spark's own files say what types their columns have."""


class UnknownSink(SinkError):
    """A sink that weft does not know."""


class OtherColumns(SinkError):
    """Answers of a query that had the same name and other columns."""


@runtime_checkable
class BucketSink(Protocol):
    """Written by each bucket where it runs; must be picklable."""

    def open(self, layout: Layout) -> None:
        """On the driver, before the first batch; again with queries that join later: what is raised keeps them out."""

    def write(self, batch: int, bucket: int, answers: Answers) -> None: ...


@runtime_checkable
class DriverSink(Protocol):
    """Gets a batch's answers on the driver, after all buckets and before the commit."""

    def open(self, layout: Layout) -> None: ...

    def take(self, batch: int, answers: Answers) -> None: ...


Sink = BucketSink | DriverSink


@runtime_checkable
class JobSink(Protocol):
    """Is told, before it is opened, a name of the job that no other job has and a restart keeps."""

    def begin(self, job: str) -> None: ...


@runtime_checkable
class RepeatedSink(Protocol):
    """Writes by bucket, and must forget a batch that was not committed before it is repeated in other buckets."""

    def undo(self, batch: int) -> None: ...


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """A typed folder a query; a file for each batch and bucket with answers, replaced when the batch is repeated."""

    folder: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", CheckpointFiles(self.folder).uri)

    def open(self, layout: Layout) -> None:
        """A file without rows gives each folder its types before the first answer comes."""
        store = CheckpointFiles(self.folder)
        files = {f"{folder_of(q.name)}/schema.parquet": q.schema.empty_table() for q in layout.queries}
        there = {name for name in files if store.exists(name)}
        for name in sorted(there):
            written, wanted = pq.read_schema(pa.BufferReader(store.read(name))), _as_written(files[name])
            if not written.equals(wanted):
                raise OtherColumns(
                    f"{store.path(name.removesuffix('/schema.parquet'))} holds answers of other columns "
                    f"({', '.join(written.names)}) than this query gives ({', '.join(wanted.names)}); "
                    "give the query another name, or move the folder away"
                )
        store.write_many({name: _writer(table) for name, table in files.items() if name not in there})

    def write(self, batch: int, bucket: int, answers: Answers) -> None:
        file = f"part-{batch:08d}-{bucket:04d}.parquet"
        CheckpointFiles(self.folder).write_many(
            {f"{folder_of(name)}/{file}": _writer(table) for name, table in answers.items()}
        )

    def undo(self, batch: int) -> None:
        store = CheckpointFiles(self.folder)
        for name in store.names("", recursive=True):
            if name.rpartition("/")[2].startswith(f"part-{batch:08d}-"):
                store.delete(name)


def _writer(table: pa.Table) -> Callable[[str, Any], None]:
    # Window bounds and keys repeat, floats do not: a dictionary of floats would be built and thrown away.
    repeated = [path for path, field in _leaves(table.schema) if not pa.types.is_floating(field.type)]
    notes = _notes(table.schema)

    def write(path: str, system: Any) -> None:
        with pq.ParquetWriter(
            path, table.schema, filesystem=system, use_dictionary=repeated, compression="lz4", store_schema=False
        ) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata(notes)

    return write


def _notes(schema: pa.Schema) -> dict[str, str]:
    """Parquet has no intervals: Spark reads from a file's notes that its integers are some."""
    intervals = any("duration" in str(field.type) for field in schema)
    return {SPARK_TYPES: from_arrow_schema(schema).json()} if intervals else {}


def _as_written(table: pa.Table) -> pa.Schema:
    """Parquet does not know every type of Arrow: what comes back may differ a little."""
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, store_schema=False)
    return pq.read_schema(pa.BufferReader(buffer.getvalue()))


def _leaves(schema: pa.Schema) -> list[tuple[str, pa.Field]]:
    return [
        leaf
        for field in schema
        for leaf in (
            [(f"{field.name}.{inner.name}", inner) for inner in field.type]
            if pa.types.is_struct(field.type)
            else [(field.name, field)]
        )
    ]


def folder_of(query: str) -> str:
    """The query's name as a folder's name."""
    return quote(query, safe=" ()")


class NoopSink:
    """Answers are made and let go: for measurements."""

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
            known = self._schemas.setdefault(query.name, query.schema)
            if not known.equals(query.schema):
                raise OtherColumns(
                    f"there are answers of {query.name} with other columns ({', '.join(known.names)}) than this query "
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


def make_sink(spec: str | Sink | Callable[[int, Answers], object]) -> Sink:
    """`parquet:folder`, `kafka:host:port/topic`, `postgresql://host/database`, `memory`, `console`, `noop`, a function,
    or a sink of your own.
    """
    if isinstance(spec, BucketSink | DriverSink):
        return spec
    if callable(spec):
        return CallbackSink(spec)
    kind, _, rest = spec.partition(":")
    if kind == "parquet" and rest:
        return ParquetSink(rest)
    if kind == KAFKA and rest:
        from weft.spark.sinks.kafka import KafkaSink

        return KafkaSink(spec)
    if kind in ("postgresql", "postgres") and rest:
        from weft.spark.sinks.postgres import PostgresSink

        return PostgresSink(spec)
    simple: dict[str, Callable[[], Sink]] = {"memory": MemorySink, "console": ConsoleSink, "noop": NoopSink}
    if kind in simple and not rest:
        return simple[kind]()
    raise UnknownSink(
        f"unknown sink {spec!r}; use parquet:FOLDER, kafka:HOST:PORT/TOPIC, postgresql://HOST/DATABASE, memory, "
        "console, noop, or a Python function(batch, answers)"
    )


def decoded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table in its query's own types: dictionaries are an economy of the way, not of the answer."""
    return table.cast(schema)


def serialise(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def deserialise(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
