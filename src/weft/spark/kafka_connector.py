"""Where a topic is: `kafka:HOST:PORT[,HOST:PORT...]/TOPIC[?option=value&...]`, for sources and sinks alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from weft.model import SourceError

KIND = "kafka"


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
        rest = spec.removeprefix(f"{KIND}:").removeprefix("//")
        place, _, asked = rest.partition("?")
        servers, _, topic = place.partition("/")
        if not servers or not topic or "/" in topic:
            raise BadAddress(
                f"{KIND}:{place} names no topic; write kafka:HOST:PORT/TOPIC, with options as ?name=value&name=value"
            )
        return cls(servers, topic, dict(parse_qsl(asked, keep_blank_values=True)))

    def for_spark(self, *own: str) -> dict[str, str]:
        """What Spark's connector is told: where the brokers are, and every option that is not weft's `own`."""
        passed = {name: value for name, value in self.options.items() if name not in own}
        return {**passed, "kafka.bootstrap.servers": self.servers}
