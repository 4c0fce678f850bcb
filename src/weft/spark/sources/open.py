"""Sources by name, as streams: folders of files, Kafka topics, and Spark's rate source."""

from __future__ import annotations

from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from weft.spark.connectors import KAFKA
from weft.spark.keywords import renamed
from weft.spark.sources.folder import FILE_FORMATS, UnknownSource, open_folder
from weft.spark.sources.kafka import open_kafka

Corrupt = Literal["stop", "side"]


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
    """`parquet:folder`, `json:folder`, `csv:folder`, `orc:folder`, `kafka:host:port/topic`, or `rate:1000`, which gives
    1000 rows per second.

    The schema of a folder is read from its files, unless it is given as DDL; the schema of a topic must be given.
    A record of a topic that cannot be read, or has no `event_time`, fails its batch; with `corrupt="side"` it goes to
    the `corrupt_sink`, which the job must be started with.
    """
    if corrupt == "aside":  # type: ignore[comparison-overlap]
        corrupt = "side"  # its name when the option was called bad
    kind, _, rest = source.partition(":")
    if kind == KAFKA:
        if files_a_batch is not None:
            raise UnknownSource("a topic has no files; say how many records a batch reads with --rows-a-batch")
        keep = corrupt == "side"
        return open_kafka(
            spark, source, schema=schema, event_time=event_time, rows_a_batch=rows_a_batch, keep_corrupt=keep
        )
    if rows_a_batch is not None or corrupt != "stop":
        raise UnknownSource(
            f"{kind} is not a Kafka topic: --rows-a-batch and --corrupt-sink are for kafka:HOST:PORT/TOPIC"
        )
    if kind == "rate":
        return spark.readStream.format("rate").option("rowsPerSecond", rest or "1000").load()
    if kind in FILE_FORMATS and rest:
        return open_folder(spark, kind, rest, schema, files_a_batch)
    raise UnknownSource(
        f"unknown source {source!r}; use {', '.join(f'{f}:FOLDER' for f in FILE_FORMATS)}, kafka:HOST:PORT/TOPIC, "
        "or rate:ROWS_A_SECOND"
    )
