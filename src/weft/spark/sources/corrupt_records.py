"""Records that could not be read: counted, and written to a sink of their own."""

from __future__ import annotations

from pyspark.sql import DataFrame

from weft.model import SourceError
from weft.spark.sinks.side_output import SideOutput, make_aside_sink
from weft.spark.sources.kafka import BAD

PLACE = ("kafka_partition", "kafka_offset", "kafka_key", BAD)


class BadSink(SourceError):
    """A sink for bad records that weft does not know, or that nothing would come to, or that is missing."""


def make_bad_sink(stream: DataFrame, spec: str | SideOutput | None) -> SideOutput | None:
    """`parquet:folder`, or a function of the batch's number and a DataFrame."""
    if BAD not in stream.columns:
        if spec is not None:
            raise BadSink(f"no bad record comes from a stream without {BAD}; open the source with corrupt='side'")
        return None
    if spec is None:
        raise BadSink(
            f"records in {BAD} would be lost: start with corrupt_sink='parquet:FOLDER', or open with corrupt='stop'"
        )
    return make_aside_sink(spec, "bad records", BadSink)


def set_aside(batch: int, rows: DataFrame, sink: SideOutput) -> int:
    """How many records of the batch are bad; they are in the sink. One more look at the batch."""
    bad = rows.where(f"{BAD} IS NOT NULL").select(*PLACE)
    found = int(bad.count())
    if found:
        sink(batch, bad)
    return found
