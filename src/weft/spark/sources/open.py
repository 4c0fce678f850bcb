"""Sources by name: folders of parquet, json or csv, Kafka's topics, and the rate generator, as streams."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from weft.model import SourceError
from weft.spark.connectors import KAFKA
from weft.spark.options import renamed
from weft.spark.sources.kafka import open_kafka

Corrupt = Literal["stop", "side"]

FILE_FORMATS = ("parquet", "json", "csv", "orc")


class UnknownSource(SourceError):
    """A source that weft does not know, or cannot read."""


@renamed(bad="corrupt")
def open_source(
    spark: SparkSession,
    source: str,
    *,
    schema: str | None = None,
    files_a_batch: int | None = None,
    rows_a_batch: int | None = None,
    event_time: str | None = None,
    corrupt: Corrupt = "stop",
) -> DataFrame:
    """`parquet:folder`, `json:folder`, `csv:folder`, `orc:folder`, `kafka:host:port/topic`, or `rate:1000` (a second).

    The schema of a folder is read from what lies in it, unless it is given as DDL; that of a topic must be given.
    A record of a topic that cannot be read, or has no `event_time`, fails its batch; with `corrupt="side"` it goes to
    the `corrupt_sink` that the job must be started with.
    """
    if corrupt == "aside":  # type: ignore[comparison-overlap]
        corrupt = "side"  # its name when the option was called bad
    kind, _, rest = source.partition(":")
    if kind == KAFKA:
        if files_a_batch is not None:
            raise UnknownSource("a topic has no files; say how many records a batch reads with --rows-a-batch")
        return open_kafka(
            spark, source, schema=schema, event_time=event_time, rows_a_batch=rows_a_batch, aside=corrupt == "side"
        )
    if rows_a_batch is not None or corrupt != "stop":
        raise UnknownSource(
            f"{kind} is no topic of Kafka: --rows-a-batch and --corrupt-sink are for kafka:HOST:PORT/TOPIC"
        )
    if kind == "rate":
        return spark.readStream.format("rate").option("rowsPerSecond", rest or "1000").load()
    if kind not in FILE_FORMATS or not rest:
        raise UnknownSource(
            f"unknown source {source!r}; use {', '.join(f'{f}:FOLDER' for f in FILE_FORMATS)}, kafka:HOST:PORT/TOPIC, "
            "or rate:ROWS_A_SECOND"
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
