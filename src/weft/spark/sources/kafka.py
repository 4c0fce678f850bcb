"""A topic as a stream of rows: its records' values read as JSON, CSV or Avro, and what cannot be read never lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.model import SourceError
from weft.spark.connectors import CORRUPT_RECORD, KafkaAddress, connected

RECORD = {"kafka_key": "key", "kafka_partition": "partition", "kafka_offset": "offset", "kafka_timestamp": "timestamp"}
"""What a row has of its record, beside the columns of its value."""

CORRUPT = "weft_corrupt"
"""Where Spark puts the text of a value that it could not read."""


NO_FIELD = "no field"
"""Stands in a condition for: every column of the value is NULL."""


class UnreadableTopic(SourceError):
    """A topic that weft is not told enough about, or cannot make rows of."""


def open_kafka(
    spark: SparkSession,
    spec: str,
    *,
    schema: str | None,
    event_time: str | None = None,
    rows_a_batch: int | None = None,
    aside: bool = False,
) -> DataFrame:
    """records   (key, value, topic, partition, offset, timestamp)
    rows      (columns of the value..., kafka_key, kafka_partition, kafka_offset, kafka_timestamp[, kafka_bad])

    A record without a value is a tombstone, and no row. One that cannot be read, or has no event time, fails its batch
    with its place in the topic; with `aside` it is a row that has nothing but `kafka_bad` and its place.
    """
    address = KafkaAddress.of(spec)
    options = {"startingOffsets": "earliest", **address.for_spark("format"), "subscribe": address.topic}
    if rows_a_batch is not None:
        options["maxOffsetsPerTrigger"] = str(rows_a_batch)
    format_ = address.options.get("format", "json")
    if format_ not in READERS:
        raise UnreadableTopic(f"unknown format {format_!r} of {address.topic}; use format={', '.join(READERS)}")
    if not schema:
        raise UnreadableTopic(
            f"the columns of {address.topic} are not known: give them with --schema, as DDL such as "
            "'ts TIMESTAMP, symbol STRING, price DOUBLE', or for Avro as the file of the Avro schema"
        )
    with connected("spark-sql-kafka-0-10"):
        records = spark.readStream.format("kafka").options(**options).load()
    with connected("spark-avro"):
        try:
            value, bad = READERS[format_](schema)
            read = records.where("value IS NOT NULL").withColumn("read", value)
        except (AnalysisException, ParseException) as error:
            if "AVRO_NOT_LOADED" in str(error):
                raise
            said = str(error).strip().splitlines()[0]
            raise UnreadableTopic(f"the schema of {address.topic} is not one of {format_}: {said}") from None
    columns = _columns(read, address.topic)
    if event_time in columns:
        bad = f"({bad}) OR read.`{event_time}` IS NULL"
    read = read.withColumn("bad", F.expr(bad.replace(NO_FIELD, " AND ".join(f"read.`{c}` IS NULL" for c in columns))))
    if not aside:
        said = F.concat(
            F.lit(f"{address.topic}, partition "), F.col("partition"), F.lit(", offset "), F.col("offset"),
            F.lit(f": no {format_} of the schema, or without its event time; give a corrupt_sink for such rows, or "),
            F.lit("mend the schema, and start again: nothing is lost"),
        )  # fmt: skip
        read = read.where(F.when(F.col("bad"), F.raise_error(said).cast("boolean")).otherwise(True))
    good = F.col("bad") == F.lit(False)
    rows = read.select(
        *(F.when(good, F.col(f"read.`{name}`")).alias(name) for name in columns),
        *(F.col(of).alias(name) for name, of in RECORD.items() if name != "kafka_timestamp"),
        F.when(good, F.col("timestamp")).alias("kafka_timestamp"),
        F.when(F.col("bad"), F.col("value")).alias(CORRUPT_RECORD),
    )
    return rows if aside else rows.drop(CORRUPT_RECORD)


def _columns(read: DataFrame, topic: str) -> list[str]:
    type_ = read.schema["read"].dataType
    names = [name for name in type_.names if name != CORRUPT] if isinstance(type_, StructType) else []
    if not names:
        raise UnreadableTopic(f"a value of {topic} must be a record with fields, not {type_.typeName()}")
    taken = sorted({*RECORD, CORRUPT_RECORD} & set(names))
    if taken:
        raise UnreadableTopic(f"{', '.join(taken)} in the schema of {topic} is a name of the record's own; use another")
    return names


def _text(parse: Callable[[Column, str, Mapping[str, str]], Column]) -> Callable[[str], tuple[Column, str]]:
    def read(schema: str) -> tuple[Column, str]:
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        value = parse(F.col("value").cast("string"), f"{schema}, {CORRUPT} STRING", options)
        return value, f"read IS NULL OR read.{CORRUPT} IS NOT NULL"

    return read


def _avro(schema: str) -> tuple[Column, str]:
    """`schema` is the Avro schema, or the file that it is in. What cannot be read has no field."""
    from pyspark.sql.avro.functions import from_avro

    text = schema
    if not schema.lstrip().startswith("{"):
        try:
            text = Path(schema).read_text(encoding="utf-8")
        except OSError as error:
            raise UnreadableTopic(f"{schema}: {error.strerror}; name the file that the Avro schema is in") from None
    return from_avro(F.col("value"), text, {"mode": "PERMISSIVE"}), f"read IS NULL OR ({NO_FIELD})"


READERS: Mapping[str, Callable[[str], tuple[Column, str]]] = {
    "json": _text(F.from_json),
    "csv": _text(F.from_csv),
    "avro": _avro,
}
"""By format: from the schema to the value's expression, and to the condition that it could not be read."""
