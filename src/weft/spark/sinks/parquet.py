"""Answers as Parquet files, written by each bucket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema

from weft.engine import Layout
from weft.model import SinkError, WeftError
from weft.spark.files import FileError, FileStore, folder_name
from weft.spark.sinks.base import Answers, OtherColumns

SPARK_TYPES = "org.apache.spark.sql.parquet.row.metadata"
"""The metadata key for the Spark types of the columns."""


class AnswerFileError(FileError, SinkError):
    """A file of answers that could not be written or read."""


@dataclass(frozen=True, slots=True)
class _Files(FileStore):
    error: ClassVar[type[WeftError]] = AnswerFileError


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """A typed folder per query; a file per batch and bucket with answers, replaced when the batch is repeated."""

    folder: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", _Files(self.folder).uri)

    def open(self, layout: Layout) -> None:
        """A file without rows gives each folder its types before the first answer comes."""
        store = _Files(self.folder)
        files = {f"{folder_name(q.name)}/schema.parquet": q.schema.empty_table() for q in layout.queries}
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
        _Files(self.folder).write_many(
            {f"{folder_name(name)}/{file}": _writer(table) for name, table in answers.items()}
        )

    def undo(self, batch: int) -> None:
        store = _Files(self.folder)
        for name in store.names("", recursive=True):
            if name.rpartition("/")[2].startswith(f"part-{batch:08d}-"):
                store.delete(name)


def _writer(table: pa.Table) -> Callable[[str, Any], None]:
    # Window bounds and keys repeat, floats do not: a dictionary of floats would be built and thrown away.
    repeated = [path for path, field in _leaves(table.schema) if not pa.types.is_floating(field.type)]
    metadata = _metadata(table.schema)

    def write(path: str, system: Any) -> None:
        with pq.ParquetWriter(
            path, table.schema, filesystem=system, use_dictionary=repeated, compression="lz4", store_schema=False
        ) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata(metadata)

    return write


def _metadata(schema: pa.Schema) -> dict[str, str]:
    """Parquet has no intervals: the file's metadata tells Spark which integers are intervals."""
    intervals = any("duration" in str(field.type) for field in schema)
    return {SPARK_TYPES: from_arrow_schema(schema).json()} if intervals else {}


def _as_written(table: pa.Table) -> pa.Schema:
    """The schema after a write and a read: Parquet does not have every type of Arrow."""
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
