"""The side output of late rows; `engine.final.lateness` says which those are."""

from __future__ import annotations

from pyspark.sql import DataFrame

from weft.aggregates import EVENT_TIME
from weft.engine import Layout
from weft.engine.final.lateness import late_condition
from weft.model import SinkError
from weft.spark.options import Late
from weft.spark.sinks.side_output import SideOutput, make_side_output


class BadLateSink(SinkError):
    """A sink for late rows that is unknown, that would get no rows, or that is missing."""


def make_late_sink(late: Late, spec: str | SideOutput | None) -> SideOutput | None:
    """`parquet:folder`, or a function of the batch's number and a DataFrame."""
    if late != "side":
        if spec is not None:
            raise BadLateSink(f"no late row comes to a sink with late={late!r}; weave with late='side'")
        return None
    if spec is None:
        raise BadLateSink("late='side' needs a sink for the late rows: start with late_sink='parquet:FOLDER'")
    return make_side_output(spec, "late rows", BadLateSink)


def late_rows(rows: DataFrame, event_micros: str, layout: Layout, watermark: int) -> DataFrame:
    """The rows that are late for a query; `event_micros` is the event time in microseconds, as SQL."""
    timed = rows.selectExpr("*", f"{event_micros} AS {EVENT_TIME}")
    return timed.where(late_condition(layout, watermark, EVENT_TIME)).drop(EVENT_TIME)
