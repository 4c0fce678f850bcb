"""Connectors that Spark does not bring along: their jars, from Maven Central or from a folder, and Kafka's addresses.

PySpark is imported where it is used: `weft.spark` offers `connectors`, and must not wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from weft.model import SourceError, WeftError

KAFKA = "kafka"

CORRUPT_RECORD = "kafka_bad"
"""The column with the value of a record that could not be read, in streams that are opened with `corrupt="side"`."""

JARS = "WEFT_CONNECTOR_JARS"
"""A folder of jars that is used instead of Maven Central: without a network, or for another release."""


class MissingConnector(WeftError):
    """A connector that could not be fetched, or that the session was made without."""


def connectors(*specs: str | None) -> dict[str, str]:
    """The settings of a session that can read and write these sources and sinks."""
    wanted = dict.fromkeys(name for spec in specs if spec for name in _needed(spec))
    if not wanted:
        return {}
    folder = os.environ.get(JARS)
    if folder is None:
        return {"spark.jars.packages": ",".join(map(_coordinates, wanted))}
    jars = sorted(Path(folder).glob("*.jar"))
    if not jars:
        raise MissingConnector(
            f"{JARS} names {folder}, and there is no jar in it; put {' and '.join(map(_coordinates, wanted))} there, "
            "with what they need, or unset it to have them from Maven Central"
        )
    return {"spark.jars": ",".join(str(jar.absolute()) for jar in jars)}


def _needed(spec: str) -> Iterator[str]:
    if spec.partition(":")[0] == KAFKA:
        yield "spark-sql-kafka-0-10"
        if KafkaAddress.of(spec).options.get("format") == "avro":
            yield "spark-avro"


def _coordinates(name: str) -> str:
    import pyspark

    return f"org.apache.spark:{name}_2.13:{pyspark.__version__}"


@contextmanager
def resolving(settings: Mapping[str, str]) -> Iterator[None]:
    """A session that does not start because a connector could not be resolved says so."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        packages = settings.get("spark.jars.packages")
        if packages is None or error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise MissingConnector(
            f"Spark did not start with {packages}; what it printed says whether that could not be resolved from Maven "
            f"Central. Check the network and the proxy, or set {JARS} to a folder with these jars and what they need; "
            "docs/kafka.md has releases that run together, and `make kafka` in a clone fetches them"
        ) from error


@contextmanager
def connected(name: str) -> Iterator[None]:
    """A session that was made without the connector says so."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        said = str(error)
        if not any(word in said for word in ("Failed to find data source", "DATA_SOURCE_NOT_FOUND", "AVRO_NOT_LOADED")):
            raise
        raise MissingConnector(
            f"this Spark session was made without {_coordinates(name)}; make it with "
            f'.config("spark.jars.packages", "{_coordinates(name)}"), or with weft.spark.local_session(connectors(...))'
        ) from error


class BadAddress(SourceError):
    """A topic that is not written as one."""


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """Brokers, a topic, and options: weft's own, all others for Spark's connector under its own names.

    >>> KafkaAddress.of("kafka:one:9092,two:9092/trades?format=csv&failOnDataLoss=false")
    KafkaAddress(servers='one:9092,two:9092', topic='trades', options={'format': 'csv', 'failOnDataLoss': 'false'})
    """

    servers: str
    topic: str
    options: Mapping[str, str]

    @classmethod
    def of(cls, spec: str) -> KafkaAddress:
        rest = spec.removeprefix(f"{KAFKA}:").removeprefix("//")
        place, _, options = rest.partition("?")
        servers, _, topic = place.partition("/")
        if not servers or not topic or "/" in topic:
            raise BadAddress(
                f"{KAFKA}:{place} names no topic; write kafka:HOST:PORT/TOPIC, with options as ?name=value&name=value"
            )
        return cls(servers, topic, dict(parse_qsl(options, keep_blank_values=True)))

    def for_spark(self, *own: str) -> dict[str, str]:
        """The options of Spark's connector: the brokers, and every option that is not weft's `own`."""
        passed = {name: value for name, value in self.options.items() if name not in own}
        return {**passed, "kafka.bootstrap.servers": self.servers}
