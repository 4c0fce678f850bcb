"""Records that could not be read: counted, and written to a side output."""

from __future__ import annotations

from pyspark.sql import DataFrame

from weft.model import SourceError
from weft.spark.connectors import CORRUPT_RECORD
from weft.spark.sinks.side_output import SideOutput, make_side_output

COLUMNS = ("kafka_partition", "kafka_offset", "kafka_key", CORRUPT_RECORD)


class BadSink(SourceError):
    """A side output for corrupt records that weft does not know, that would get nothing, or that is missing."""


def make_corrupt_sink(stream: DataFrame, spec: str | SideOutput | None) -> SideOutput | None:
    """`parquet:folder`, or a function of the batch's number and a DataFrame."""
    if CORRUPT_RECORD not in stream.columns:
        if spec is not None:
            raise BadSink(
                f"a stream without {CORRUPT_RECORD} has no corrupt records; open the source with corrupt='side'"
            )
        return None
    if spec is None:
        raise BadSink(
            f"records in {CORRUPT_RECORD} would be lost: start with corrupt_sink='parquet:FOLDER', "
            "or open with corrupt='stop'"
        )
    return make_side_output(spec, "corrupt records", BadSink)


def divert_corrupt_records(batch: int, rows: DataFrame, sink: SideOutput) -> int:
    """Write the corrupt records of the batch to the sink; returns how many. It takes one more pass over the batch."""
    corrupt = rows.where(f"{CORRUPT_RECORD} IS NOT NULL").select(*COLUMNS)
    count = int(corrupt.count())
    if count:
        sink(batch, corrupt)
    return count
