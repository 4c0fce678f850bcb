"""Answers as records of Kafka: a key for each window and group of a query, so that the newest record of a key holds."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from weft.engine import Layout
from weft.model import SinkError, WeftError
from weft.spark.connectors import KafkaAddress, connected
from weft.spark.sinks.base import Answers
from weft.spark.sinks.json_rows import json_rows
from weft.spark.sinks.row_key import RETRACTED, RowKey, row_keys_of

QUERY = "{query}"
"""Stands in a topic for the name of the query: a topic each."""

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


class NotWritten(SinkError):
    """Answers that the brokers did not take."""


class NoTopic(SinkError):
    """A query whose name cannot be part of a topic's."""


class KafkaSink:
    """key      {"query", "start", "group": {keys...}}
    value    the answer's columns; NULL if it was retracted, so that compaction removes the key
    headers  weft_job, weft_batch, weft_query: a batch that is repeated has the same

    Spark's connector has no transactions. An interrupted batch is written again: all of it, with the same keys and
    values.
    """

    def __init__(self, spec: str) -> None:
        self._address = KafkaAddress.of(spec)
        self._row_keys: dict[str, RowKey] = {}
        self._job = uuid.uuid4().hex

    def begin(self, job: str) -> None:
        self._job = job

    def open(self, layout: Layout) -> None:
        row_keys = row_keys_of(layout, "Kafka")
        for name in row_keys:
            topic = self._topic(name)
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic):
                raise NoTopic(
                    f"{topic} cannot be a topic: letters, digits, dots, dashes and underscores can; name the query "
                    "otherwise, or write all answers to one topic"
                )
        self._row_keys |= row_keys

    def take(self, batch: int, answers: Answers) -> None:
        records = [self._records(batch, name, table) for name, table in answers.items() if table.num_rows]
        if not records:
            return
        writer = SparkSession.active().createDataFrame(pa.concat_tables(records)).write
        try:
            with connected("spark-sql-kafka-0-10"):
                writer.format("kafka").options(**self._address.for_spark()).save()
        except WeftError:
            raise
        except Exception as error:
            raise NotWritten(
                f"the answers of batch {batch} could not be written to Kafka at {self._address.servers}: "
                f"{_reason(error)}; mend that and start again, nothing is lost"
            ) from error

    def _topic(self, query: str) -> str:
        return self._address.topic.replace(QUERY, query)

    def _records(self, batch: int, query: str, answers: pa.Table) -> pa.Table:
        row_key = self._row_keys[query]
        count = answers.num_rows
        group = json_rows({key: answers.column(key) for key in row_key.keys}) if row_key.keys else ["{}"] * count
        heads = json_rows({"query": pa.array([query] * count), "start": row_key.starts(answers)})
        keys = [f'{head[:-1]},"group":{of}}}' for head, of in zip(heads, group, strict=True)]
        shown = [name for name in answers.column_names if name != RETRACTED]
        values: list[str | None] = list(json_rows({name: answers.column(name) for name in shown}))
        if RETRACTED in answers.column_names:
            gone = answers.column(RETRACTED).to_pylist()
            values = [None if taken_back else value for value, taken_back in zip(values, gone, strict=True)]
        origin = {"weft_job": self._job, "weft_batch": str(batch), "weft_query": query}
        headers: list[Any] = [[{"key": name, "value": text.encode()} for name, text in origin.items()]]
        return pa.table(
            {
                "topic": pa.array([self._topic(query)] * count, pa.string()),
                "key": pa.array(keys, pa.string()),
                "value": pa.array(values, pa.string()),
                "headers": pa.array(headers * count, HEADERS),
            }
        )


def _reason(error: Exception) -> str:
    """The innermost cause that Spark names, or the first line of what it says."""
    lines = str(error).splitlines()
    causes = [line.partition("Caused by: ")[2] for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or [type(error).__name__])[-1].strip()
