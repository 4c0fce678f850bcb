"""A Kafka topic as a stream of rows: values are JSON, CSV or Avro, and no corrupt record is lost."""

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
"""The columns of a row that come from its record, beside those of its value."""

CORRUPT = "weft_corrupt"
"""Where Spark puts the text of a value that it could not read."""


NO_FIELD = "no field"
"""In a condition: every column of the value is NULL."""


class UnreadableTopic(SourceError):
    """A topic without a schema, or whose values are no rows."""


def open_kafka(
    spark: SparkSession,
    spec: str,
    *,
    schema: str | None,
    event_time: str | None = None,
    rows_a_batch: int | None = None,
    keep_corrupt: bool = False,
) -> DataFrame:
    """records   (key, value, topic, partition, offset, timestamp)
    read      (records, read, bad): the value as columns, and whether it is corrupt
    rows      (columns of the value..., kafka_key, kafka_partition, kafka_offset, kafka_timestamp[, kafka_bad])

    A record without a value is a tombstone, and no row. A record is corrupt if it cannot be read or has no event time.
    It fails its batch with its position in the topic; with `keep_corrupt` it is a row that has only `kafka_bad` and its
    position.
    """
    address = KafkaAddress.of(spec)
    format_ = address.options.get("format", "json")
    schema = _known_schema(address.topic, format_, schema)
    read, corrupt = _with_values(_records(spark, address, rows_a_batch), address.topic, format_, schema)
    columns = _columns(read, address.topic)
    if event_time in columns:
        corrupt = f"({corrupt}) OR read.`{event_time}` IS NULL"
    no_field = " AND ".join(f"read.`{column}` IS NULL" for column in columns)
    read = read.withColumn("bad", F.expr(corrupt.replace(NO_FIELD, no_field)))
    if keep_corrupt:
        return _rows(read, columns)
    return _rows(_failing_on_corrupt(read, address.topic, format_), columns).drop(CORRUPT_RECORD)


def _records(spark: SparkSession, address: KafkaAddress, rows_a_batch: int | None) -> DataFrame:
    options = {"startingOffsets": "earliest", **address.for_spark("format"), "subscribe": address.topic}
    if rows_a_batch is not None:
        options["maxOffsetsPerTrigger"] = str(rows_a_batch)
    with connected("spark-sql-kafka-0-10"):
        return spark.readStream.format("kafka").options(**options).load()


def _known_schema(topic: str, format_: str, schema: str | None) -> str:
    if format_ not in READERS:
        raise UnreadableTopic(f"unknown format {format_!r} of {topic}; use format={', '.join(READERS)}")
    if not schema:
        raise UnreadableTopic(
            f"the columns of {topic} are not known: give them with --schema, as DDL such as "
            "'ts TIMESTAMP, symbol STRING, price DOUBLE', or for Avro as the file of the Avro schema"
        )
    return schema


def _with_values(records: DataFrame, topic: str, format_: str, schema: str) -> tuple[DataFrame, str]:
    """The records with their values in the column `read`, and the condition that a value could not be read."""
    with connected("spark-avro"):
        try:
            value, corrupt = READERS[format_](schema)
            return records.where("value IS NOT NULL").withColumn("read", value), corrupt
        except (AnalysisException, ParseException) as error:
            if "AVRO_NOT_LOADED" in str(error):
                raise
            reason = str(error).strip().splitlines()[0]
            raise UnreadableTopic(f"the schema of {topic} is not one of {format_}: {reason}") from None


def _failing_on_corrupt(read: DataFrame, topic: str, format_: str) -> DataFrame:
    message = F.concat(
        F.lit(f"{topic}, partition "), F.col("partition"), F.lit(", offset "), F.col("offset"),
        F.lit(f": no {format_} of the schema, or without its event time; give a corrupt_sink for such rows, or "),
        F.lit("correct the schema, and start again: nothing is lost"),
    )  # fmt: skip
    return read.where(F.when(F.col("bad"), F.raise_error(message).cast("boolean")).otherwise(True))


def _rows(read: DataFrame, columns: list[str]) -> DataFrame:
    good = F.col("bad") == F.lit(False)
    return read.select(
        *(F.when(good, F.col(f"read.`{name}`")).alias(name) for name in columns),
        *(F.col(of).alias(name) for name, of in RECORD.items() if name != "kafka_timestamp"),
        F.when(good, F.col("timestamp")).alias("kafka_timestamp"),
        F.when(F.col("bad"), F.col("value")).alias(CORRUPT_RECORD),
    )


def _columns(read: DataFrame, topic: str) -> list[str]:
    type_ = read.schema["read"].dataType
    names = [name for name in type_.names if name != CORRUPT] if isinstance(type_, StructType) else []
    if not names:
        raise UnreadableTopic(f"a value of {topic} must be a record with fields, not {type_.typeName()}")
    taken = sorted({*RECORD, CORRUPT_RECORD} & set(names))
    if taken:
        raise UnreadableTopic(
            f"{', '.join(taken)} in the schema of {topic} is the name of a column that every record has; use another"
        )
    return names


def _text(parse: Callable[[Column, str, Mapping[str, str]], Column]) -> Callable[[str], tuple[Column, str]]:
    def read(schema: str) -> tuple[Column, str]:
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        value = parse(F.col("value").cast("string"), f"{schema}, {CORRUPT} STRING", options)
        return value, f"read IS NULL OR read.{CORRUPT} IS NOT NULL"

    return read


def _avro(schema: str) -> tuple[Column, str]:
    """`schema` is the Avro schema, or its file. A value that cannot be read has no field."""
    from pyspark.sql.avro.functions import from_avro

    text = schema
    if not schema.lstrip().startswith("{"):
        try:
            text = Path(schema).read_text(encoding="utf-8")
        except OSError as error:
            raise UnreadableTopic(f"{schema}: {error.strerror}; give the file of the Avro schema") from None
    return from_avro(F.col("value"), text, {"mode": "PERMISSIVE"}), f"read IS NULL OR ({NO_FIELD})"


READERS: Mapping[str, Callable[[str], tuple[Column, str]]] = {
    "json": _text(F.from_json),
    "csv": _text(F.from_csv),
    "avro": _avro,
}
"""By format: a function from the schema to the expression of the value and the condition that it is corrupt."""
