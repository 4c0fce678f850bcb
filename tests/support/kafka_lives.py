"""Lives of a job between topics, each a process: `python -m tests.support.kafka_lives LIFE HOST:PORT FOLDER`.

`die` weaves the topic `rows` into the topic `answers`, and kills itself between writing a batch and recording it.
`go_on` starts again, lets queries join that read the topic from its begin, and drains. It leaves what the topics hold
and what plain Spark gives over them in the folder. `formats` reads records of each format, good and bad ones.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.spark import RunFailed, connectors, local_session, open_source, weave
from weft.spark.sinks.kafka import KafkaSink
from weft.sql import parse

SCHEMA = "ts TIMESTAMP, k STRING, v INT"
BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
LAST_BATCH = 3
"""Written to Kafka when the first life ends, and not recorded."""

FIRST = """
CREATE VIEW by_key AS SELECT k, window.start AS start, count(*) AS n, sum(v) AS total, max(v) AS top
  FROM stream GROUP BY k, window(ts, '30 seconds', '7 seconds');
CREATE VIEW overall AS SELECT window, count(*) AS n, avg(v) AS mean
  FROM stream WHERE v > 10 GROUP BY window(ts, '10 seconds', '5 seconds');
CREATE VIEW slow AS SELECT k, window.end AS end, min(v) AS least
  FROM stream GROUP BY window(ts, '2 minutes', '1 minute'), k HAVING count(*) > 1;
"""
WHOLE = "CREATE VIEW whole AS SELECT k, window.start AS start, max(v) AS top, sum(v) AS total \
FROM stream GROUP BY k, window(ts, '20 seconds', '4 seconds')"
SOME = "CREATE VIEW some AS SELECT window.start AS start, avg(v) AS mean \
FROM stream WHERE v > 10 GROUP BY window(ts, '14 seconds', '7 seconds')"
SOME_BEGIN = BEGIN + timedelta(seconds=40)


class DyingSink(KafkaSink):
    def take(self, batch: int, answers: Any) -> None:
        super().take(batch, answers)
        if batch == LAST_BATCH:
            os.killpg(0, signal.SIGKILL)


class Topics:
    def __init__(self, spark: Any, servers: str) -> None:
        self.spark, self.servers = spark, servers

    def write(self, topic: str, values: list[bytes | None]) -> None:
        """Spread over three partitions in turn, so that all of them are at about the same time."""
        table = pa.table(
            {
                "partition": pa.array([i % 3 for i in range(len(values))], pa.int32()),
                "value": pa.array(values, pa.binary()),
            }
        )
        frame = self.spark.createDataFrame(table).coalesce(1)  # one writer keeps them in the order of time
        frame.write.format("kafka").option("kafka.bootstrap.servers", self.servers).option("topic", topic).save()

    def read(self, topic: str) -> Any:
        options = {"kafka.bootstrap.servers": self.servers, "subscribe": topic, "includeHeaders": "true"}
        return self.spark.read.format("kafka").options(**options).load()


def rows(seconds: range, seed: int) -> list[dict[str, Any]]:
    """Three a second, up to fifteen seconds late; some without a key."""
    random = Random(seed)
    late = timedelta(seconds=15)
    return [
        {
            "ts": (BEGIN + timedelta(seconds=second) - random.random() * late).isoformat(),
            "k": random.choice(["a", "b", "c", 'd "quoted"', None]),
            "v": random.randrange(100),
        }
        for second in seconds
        for _ in range(3)
    ]


def as_json(found: list[dict[str, Any]]) -> list[bytes | None]:
    return [json.dumps(row).encode() for row in found]


def start(spark: Any, servers: str, folder: Path, sink: Any) -> Any:
    stream = open_source(spark, f"kafka:{servers}/rows", schema=SCHEMA, rows_a_batch=90, event_time="ts")
    return weave(stream, FIRST, watermark="40 seconds").start(sink=sink, checkpoint=folder / "state")


def die(spark: Any, servers: str, folder: Path) -> None:
    topics = Topics(spark, servers)
    topics.write("rows", as_json(rows(range(200), 1)))
    start(spark, servers, folder, DyingSink(f"kafka:{servers}/answers")).wait()


def go_on(spark: Any, servers: str, folder: Path) -> None:
    topics = Topics(spark, servers)
    run = start(spark, servers, folder, f"kafka:{servers}/answers")
    run.query.processAllAvailable()
    run.add(WHOLE, since="source")
    run.add(SOME, since="source", begin=SOME_BEGIN.isoformat())
    second = 200
    end = time.monotonic() + 120
    while second < 230 or run.metrics()["waiting"]:
        assert time.monotonic() < end, run.changes()
        topics.write("rows", as_json(rows(range(second, second + 10), second)))
        second += 10
        run.query.processAllAvailable()
    joined = [change["reason"] for change in run.changes() if "finished the backfill" in change["reason"]]
    run.drain()
    expect(topics, folder)
    found = find(topics, folder)
    (folder / "facts.json").write_text(json.dumps({"joined": joined, **found}))


def expect(topics: Topics, folder: Path) -> None:
    """What plain Spark gives over all that the topic holds."""
    spark = topics.spark
    read = topics.read("rows").selectExpr(f"from_json(CAST(value AS STRING), '{SCHEMA}') AS r").select("r.*")
    spark.createDataFrame(read.toArrow()).createOrReplaceTempView("stream")
    for query in parse(f"{FIRST}{WHOLE};{SOME}"):
        wanted = spark.sql(query.spark_sql)
        if query.name == "some":
            wanted = wanted.where(wanted["start"] >= SOME_BEGIN)
        pq.write_table(wanted.toArrow(), folder / f"wanted-{query.name}.parquet")
        (folder / f"{query.name}.ddl").write_text(wanted.schema.simpleString())


def find(topics: Topics, folder: Path) -> dict[str, Any]:
    """The newest record of each key, by query; and what the topic says of repeats."""
    topics.read("answers").selectExpr(
        "CAST(key AS STRING) AS key",
        "CAST(value AS STRING) AS value",
        "partition",
        "offset",
        "map_from_arrays(transform(headers, h -> h.key), transform(headers, h -> CAST(h.value AS STRING))) AS said",
    ).createOrReplaceTempView("answers")
    spark = topics.spark
    spark.sql(
        "SELECT key, max_by(value, offset) AS value, count(DISTINCT partition) AS partitions FROM answers GROUP BY key"
    ).createOrReplaceTempView("newest")
    for ddl in folder.glob("*.ddl"):
        of = f"get_json_object(key, '$.query') = '{ddl.stem}'"
        found = spark.sql(f"SELECT from_json(value, '{ddl.read_text()}') AS r FROM newest WHERE {of}").select("r.*")
        pq.write_table(found.toArrow(), folder / f"found-{ddl.stem}.parquet")
    repeats = spark.sql(
        "SELECT said.weft_batch AS batch, said.weft_job AS job, count(DISTINCT value) AS different, count(*) AS times "
        "FROM answers GROUP BY key, said.weft_batch, said.weft_job HAVING count(*) > 1"
    ).collect()
    return {
        "repeated": sorted({int(r["batch"]) for r in repeats}),
        "different": max((r["different"] for r in repeats), default=0),
        "times": max((r["times"] for r in repeats), default=0),
        "jobs": spark.sql("SELECT DISTINCT said.weft_job FROM answers").count(),
        "partitions": spark.sql("SELECT max(partitions) AS p FROM newest").first()["p"],
    }


COUNTED = "CREATE VIEW counted AS SELECT k, window.start AS start, count(*) AS n, sum(v) AS total \
FROM stream GROUP BY k, window(ts, '10 seconds')"


def formats(spark: Any, servers: str, folder: Path) -> None:
    topics = Topics(spark, servers)
    given = rows(range(20), 5)
    spark.createDataFrame(pa.Table.from_pylist(given)).selectExpr(
        "CAST(ts AS TIMESTAMP) AS ts", "k", "CAST(v AS INT) AS v"
    ).createOrReplaceTempView("stream")
    pq.write_table(spark.sql(parse(COUNTED)[0].spark_sql).toArrow(), folder / "wanted.parquet")
    bad: list[bytes | None] = [b"{", b"", b'{"k": "a", "v": 1}', b'{"ts": "2024-03-01T00:00:00Z", "v": "many"}', None]
    topics.write("json", as_json(given) + bad)
    topics.write("csv", [f"{r['ts']},{quoted(r['k'])},{r['v']}".encode() for r in given])
    schema, avro = in_avro(spark)
    topics.write("avro", [*avro, b"\x01", None])
    (folder / "rows.avsc").write_text(schema)
    facts: dict[str, Any] = {}
    facts["stopped"] = stopped(spark, servers)
    for format_, ddl in (("json", SCHEMA), ("csv", SCHEMA), ("avro", str(folder / "rows.avsc"))):
        source = f"kafka:{servers}/{format_}?format={format_}"
        stream = open_source(spark, source, schema=ddl, event_time="ts", corrupt="side")
        aside = folder / f"bad-{format_}"
        with drained(stream, COUNTED, corrupt_sink=f"parquet:{aside}") as run:
            pq.write_table(run.answers()["counted"], folder / f"found-{format_}.parquet")
            facts[format_] = {"bad": run.metrics()["bad"], "rows": run.metrics()["rows"], "aside": count(spark, aside)}
    recorded = COUNTED.replace("window(ts", "window(kafka_timestamp").replace("10 seconds", "1 hour")
    stream = open_source(spark, f"kafka:{servers}/csv?format=csv", schema=SCHEMA, event_time="kafka_timestamp")
    with drained(stream, recorded, event_time="kafka_timestamp") as run:
        facts["by_record"] = sum(run.answers()["counted"]["n"].to_pylist())
    (folder / "facts.json").write_text(json.dumps(facts))


def stopped(spark: Any, servers: str) -> str:
    stream = open_source(spark, f"kafka:{servers}/json", schema=SCHEMA, event_time="ts")
    try:
        weave(stream, COUNTED).start(available_now=True).wait()
    except RunFailed as error:
        return str(error)
    return "not at all"


def quoted(text: str | None) -> str:
    return "" if text is None else '"' + text.replace('"', '\\"') + '"'


def in_avro(spark: Any) -> tuple[str, list[bytes | None]]:
    from pyspark.sql.avro.functions import to_avro

    fields = [
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "k", "type": ["null", "string"]},
        {"name": "v", "type": "int"},
    ]
    schema = json.dumps({"type": "record", "name": "row", "fields": fields})
    frame = spark.table("stream").selectExpr("struct(ts, k, v) AS r")
    return schema, [bytes(r[0]) for r in frame.select(to_avro(frame["r"], schema)).collect()]


def count(spark: Any, folder: Path) -> int:
    return int(spark.read.parquet(str(folder)).count()) if folder.exists() else 0


@contextmanager
def drained(stream: Any, query: str, event_time: str = "ts", corrupt_sink: Any = None) -> Iterator[Any]:
    run = weave(stream, query, event_time=event_time).start(available_now=True, corrupt_sink=corrupt_sink)
    run.wait()
    run.drain()
    yield run


LIVES = {"die": die, "go_on": go_on, "formats": formats}


def main(life: str, servers: str, folder: str) -> None:
    spark = local_session({**connectors(f"kafka:{servers}/rows?format=avro"), "spark.driver.memory": "1g"})
    LIVES[life](spark, servers, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
