"""Sinks by name."""

from __future__ import annotations

from collections.abc import Callable

from weft.model import SinkError
from weft.spark.connectors import KAFKA
from weft.spark.sinks.base import Answers, BucketSink, DriverSink, Sink
from weft.spark.sinks.parquet import ParquetSink
from weft.spark.sinks.simple import CallbackSink, ConsoleSink, MemorySink, NoopSink


class UnknownSink(SinkError):
    """A sink that weft does not know."""


def make_sink(spec: str | Sink | Callable[[int, Answers], object]) -> Sink:
    """`parquet:folder`, `kafka:host:port/topic`, `postgresql://host/database`, `memory`, `console`, `noop`, a function,
    or a sink of your own.
    """
    if isinstance(spec, BucketSink | DriverSink):
        return spec
    if callable(spec):
        return CallbackSink(spec)
    kind, _, rest = spec.partition(":")
    if kind == "parquet" and rest:
        return ParquetSink(rest)
    if kind == KAFKA and rest:
        from weft.spark.sinks.kafka import KafkaSink

        return KafkaSink(spec)
    if kind in ("postgresql", "postgres") and rest:
        from weft.spark.sinks.postgres import PostgresSink

        return PostgresSink(spec)
    simple: dict[str, Callable[[], Sink]] = {"memory": MemorySink, "console": ConsoleSink, "noop": NoopSink}
    if kind in simple and not rest:
        return simple[kind]()
    raise UnknownSink(
        f"unknown sink {spec!r}; use parquet:FOLDER, kafka:HOST:PORT/TOPIC, postgresql://HOST/DATABASE, memory, "
        "console, noop, or a Python function(batch, answers)"
    )
