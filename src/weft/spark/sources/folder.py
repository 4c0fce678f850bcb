"""A folder that files arrive in, as a stream: parquet, json, csv or orc."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from weft.model import SourceError
from weft.spark.sql_types import column_types, quoted

FILE_FORMATS = ("parquet", "json", "csv", "orc")


class UnknownSource(SourceError):
    """A source that weft does not know, or cannot read."""


def open_folder(
    spark: SparkSession, format_: str, folder: str, schema: str | None, files_a_batch: int | None
) -> DataFrame:
    """The schema is DDL; None: it is read from the files."""
    if "://" not in folder and not Path(folder).is_dir():
        raise UnknownSource(f"{folder} is not a folder; a source is a folder that {format_} files arrive in")
    reader = spark.readStream.format(format_)
    if format_ == "csv":
        reader = reader.option("header", "true")
    if files_a_batch is not None:
        reader = reader.option("maxFilesPerTrigger", str(files_a_batch))
    return reader.schema(schema or _schema(spark, format_, folder)).load(folder)


def _schema(spark: SparkSession, format_: str, folder: str) -> str:
    reader = spark.read.format(format_)
    if format_ == "csv":
        reader = reader.option("header", "true").option("inferSchema", "true")
    frame = reader.load(folder)
    if not frame.columns:
        raise UnknownSource(f"{folder} holds no {format_} file to read the schema from; give it as DDL with --schema")
    return ", ".join(f"{quoted(name)} {type_}" for name, type_ in column_types(frame).items())
