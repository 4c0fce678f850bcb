"""Sources by name: folders of parquet, json or csv, and the rate generator, as streams."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from weft.model import WeftError

FILE_FORMATS = ("parquet", "json", "csv", "orc")


class UnknownSource(WeftError):
    """A source that weft does not know, or cannot read."""


def open_source(
    spark: SparkSession, source: str, *, schema: str | None = None, files_a_batch: int | None = None
) -> DataFrame:
    """`parquet:folder`, `json:folder`, `csv:folder`, `orc:folder`, or `rate:1000` (rows a second).

    The schema of a folder is read from what lies in it, unless it is given as DDL.
    """
    kind, _, rest = source.partition(":")
    if kind == "rate":
        return spark.readStream.format("rate").option("rowsPerSecond", rest or "1000").load()
    if kind not in FILE_FORMATS or not rest:
        raise UnknownSource(
            f"unknown source {source!r}; use {', '.join(f'{f}:FOLDER' for f in FILE_FORMATS)}, or rate:ROWS_A_SECOND"
        )
    if "://" not in rest and not Path(rest).is_dir():
        raise UnknownSource(f"{rest} is not a folder; a source is a folder that {kind} files arrive in")
    reader = spark.readStream.format(kind)
    if kind == "csv":
        reader = reader.option("header", "true")
    if files_a_batch is not None:
        reader = reader.option("maxFilesPerTrigger", str(files_a_batch))
    return reader.schema(schema or _schema(spark, kind, rest)).load(rest)


def _schema(spark: SparkSession, kind: str, folder: str) -> str:
    reader = spark.read.format(kind)
    if kind == "csv":
        reader = reader.option("header", "true").option("inferSchema", "true")
    frame = reader.load(folder)
    if not frame.columns:
        raise UnknownSource(f"{folder} holds no {kind} file to read the schema from; give it as DDL with --schema")
    return ", ".join(f"`{name}` {type_}" for name, type_ in frame.dtypes)
