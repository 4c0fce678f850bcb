"""What a session needs for a topic, and what is said where it is missing; answers as keys and texts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkRuntimeError

from weft.spark import connectors, open_source, weave
from weft.spark.connectors import BadAddress, KafkaAddress, MissingConnector, resolving
from weft.spark.sinks.corrupt_records import BadSink, make_corrupt_sink
from weft.spark.sinks.json_rows import json_rows
from weft.spark.sinks.kafka import KafkaSink, NoTopic
from weft.spark.sinks.row_key import CannotTell, RowKey, row_keys_of
from weft.spark.sources.folder import UnknownSource

TOPIC = "kafka:127.0.0.1:9/trades"


def test_a_session_is_asked_for_the_connectors_of_its_own_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_CONNECTOR_JARS", raising=False)
    kafka, avro = (f"org.apache.spark:{n}_2.13:{pyspark.__version__}" for n in ("spark-sql-kafka-0-10", "spark-avro"))
    assert connectors("parquet:rows", "noop", None) == {}
    assert connectors("rate:1", TOPIC) == {"spark.jars.packages": kafka}
    assert connectors(f"{TOPIC}?format=avro", TOPIC) == {"spark.jars.packages": f"{kafka},{avro}"}


def test_jars_of_a_folder_take_the_place_of_maven_central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CONNECTOR_JARS", str(tmp_path))
    with pytest.raises(MissingConnector, match=r"there is no jar in it; put org.apache.spark:spark-sql-kafka"):
        connectors(TOPIC)
    (tmp_path / "one.jar").touch()
    assert connectors(TOPIC) == {"spark.jars": str(tmp_path / "one.jar")}


def test_a_session_that_does_not_start_for_want_of_a_connector_says_so() -> None:
    died = PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
    said = r"did not start with a:b:1.*WEFT_CONNECTOR_JARS"
    with pytest.raises(MissingConnector, match=said), resolving({"spark.jars.packages": "a:b:1"}):
        raise died
    with pytest.raises(PySparkRuntimeError), resolving({}):
        raise died


@pytest.mark.parametrize("spec", ["kafka:one:9092", "kafka:/topic", "kafka:one:9092/a/b", "kafka:one:9092/"])
def test_an_address_without_a_topic_is_refused(spec: str) -> None:
    with pytest.raises(BadAddress, match="write kafka:HOST:PORT/TOPIC"):
        KafkaAddress.of(spec)


def test_options_that_are_not_of_weft_go_to_the_connector() -> None:
    address = KafkaAddress.of("kafka://one:9092/trades?format=csv&startingOffsets=latest")
    assert address.for_spark("format") == {"startingOffsets": "latest", "kafka.bootstrap.servers": "one:9092"}


@pytest.mark.spark
def test_a_topic_is_not_opened_without_connector_schema_or_known_format(spark: Any) -> None:
    with pytest.raises(MissingConnector, match=r"was made without org.apache.spark:spark-sql-kafka"):
        open_source(spark, TOPIC, schema="ts TIMESTAMP")
    with pytest.raises(Exception, match="columns of trades are not known: give them with --schema"):
        open_source(spark, TOPIC)
    with pytest.raises(Exception, match="unknown format 'xml' of trades; use format=json, csv, avro"):
        open_source(spark, f"{TOPIC}?format=xml", schema="ts TIMESTAMP")
    with pytest.raises(UnknownSource, match="--rows-a-batch"):
        open_source(spark, TOPIC, schema="ts TIMESTAMP", files_a_batch=1)
    with pytest.raises(UnknownSource, match="are for kafka:HOST:PORT/TOPIC"):
        open_source(spark, "rate:1", rows_a_batch=1)


@pytest.mark.spark
def test_bad_records_have_a_sink_or_none_come(spark: Any) -> None:
    plain, bad = spark.range(1), spark.range(1).selectExpr("CAST(NULL AS BINARY) AS kafka_bad")
    assert make_corrupt_sink(plain, None) is None
    with pytest.raises(BadSink, match="open the source with corrupt='side'"):
        make_corrupt_sink(plain, "parquet:bad")
    with pytest.raises(BadSink, match="would be lost: start with corrupt_sink"):
        make_corrupt_sink(bad, None)
    with pytest.raises(BadSink, match="unknown sink for corrupt records 'csv:x'"):
        make_corrupt_sink(bad, "csv:x")


START = datetime(2024, 3, 1, tzinfo=UTC)


def test_the_begin_of_a_window_is_read_off_whatever_the_query_selects_of_it() -> None:
    minute = timedelta(minutes=1)
    type_ = pa.timestamp("us", "UTC")
    window = pa.struct([("start", type_), ("end", type_)])
    table = pa.table(
        {
            "w": pa.array([{"start": START, "end": START + minute}], window),
            "s": pa.array([START], type_),
            "e": pa.array([START + minute], type_),
        }
    )
    for column, shape in (("w", "window"), ("s", "window_start"), ("e", "window_end")):
        assert RowKey(column, shape, 60_000_000, ()).starts(table).to_pylist() == [START]


def test_values_are_written_as_json_that_spark_reads_back() -> None:
    columns = {
        'na"me': pa.array(["ü\n", None]),
        "at": pa.array([START, None], pa.timestamp("us", "UTC")),
        "local": pa.array([START.replace(tzinfo=None), None], pa.timestamp("us")),
        "real": pa.array([0.1, float("-inf")]),
        "exact": pa.array([Decimal("1E+3"), None], pa.decimal128(10, 0)),
        "many": pa.array([[1, None], []], pa.list_(pa.int32())),
        "bytes": pa.array([b"\x00\xff", None]),
    }
    assert [json.loads(row) for row in json_rows(columns)] == [
        {
            'na"me': "ü\n",
            "at": "2024-03-01T00:00:00.000000Z",
            "local": "2024-03-01T00:00:00.000000",
            "real": 0.1,
            "exact": 1000,
            "many": [1, None],
            "bytes": "AP8=",
        },
        {'na"me': None, "at": None, "local": None, "real": "-Infinity", "exact": None, "many": [], "bytes": None},
    ]


@pytest.mark.spark
def test_records_have_keys_headers_and_tombstones(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = spark.createDataFrame([], "ts TIMESTAMP, k STRING, v INT")
    query = "CREATE VIEW q AS SELECT k, window.start AS start, count(*) AS n FROM s GROUP BY k, window(ts, '1 minute')"
    layout = weave(rows, query).physical.layout
    sink = KafkaSink("kafka:127.0.0.1:9/to.{query}")
    sink.begin("job")
    sink.open(layout)
    marks = {"weft_revision": [0, 4], "weft_retracted": [False, True]}
    starts = pa.array([START] * 2, pa.timestamp("us", "UTC"))
    session = Mock()
    monkeypatch.setattr("weft.spark.sinks.kafka.SparkSession.active", lambda: session)
    sink.take(4, {"q": pa.table({"k": ["a", None], "start": starts, "n": [3, 0], **marks})})
    monkeypatch.undo()
    session.createDataFrame.return_value.write.format.assert_called_once_with("kafka")
    records = session.createDataFrame.call_args.args[0].to_pylist()
    assert [r["topic"] for r in records] == ["to.q", "to.q"]
    assert records[0]["key"] == '{"query":"q","start":"2024-03-01T00:00:00.000000Z","group":{"k":"a"}}'
    assert json.loads(records[1]["key"])["group"] == {"k": None}
    at = "2024-03-01T00:00:00.000000Z"
    assert json.loads(records[0]["value"]) == {"k": "a", "start": at, "n": 3, "weft_revision": 0}
    assert records[1]["value"] is None
    assert {h["key"]: h["value"] for h in records[0]["headers"]} == {
        "weft_job": b"job",
        "weft_batch": b"4",
        "weft_query": b"q",
    }
    spaced = weave(rows, query.replace("VIEW q", "VIEW `a b`")).physical.layout
    with pytest.raises(NoTopic, match=r"to\.a b cannot be a topic"):
        sink.open(spaced)
    lacking = weave(rows, "SELECT window.start AS start, count(*) AS n FROM s GROUP BY k, window(ts, '1 minute')")
    with pytest.raises(CannotTell, match="does not select all its group keys, and Kafka identifies answers by them"):
        row_keys_of(lacking.physical.layout, "Kafka")
