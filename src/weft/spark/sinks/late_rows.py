"""Rows that came too late for a window: which they are, and the sink of their own that may take them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from weft.aggregates import EVENT_TIME
from weft.engine import QueryLayout
from weft.model import SinkError
from weft.spark.options import Late
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.sinks.side_output import SideOutput, make_side_output


class BadLateSink(SinkError):
    """A sink for late rows that weft does not know, or that nothing would come to, or that is missing."""


def make_late_sink(late: Late, spec: str | SideOutput | None) -> SideOutput | None:
    """`parquet:folder`, or a function of the batch's number and a DataFrame."""
    if late != "side":
        if spec is not None:
            raise BadLateSink(f"no late row comes to a sink with late={late!r}; weave with late='side'")
        return None
    if spec is None:
        raise BadLateSink("late='side' needs a sink for the late rows: start with late_sink='parquet:FOLDER'")
    return make_side_output(spec, "late rows", BadLateSink)


def late_rows(rows: DataFrame, physical: PhysicalPlan, watermark: int, answered: Mapping[str, int]) -> DataFrame:
    """The rows that missed a window of a query which had ended by the watermark and whose filter they pass; `answered`
    is the end of the last one of those that are not answered for every window."""
    missed = sorted({_missed(query, watermark, answered) for query in physical.layout.queries})
    timed = rows.selectExpr("*", f"{physical.event_micros} AS {EVENT_TIME}").where(f"{EVENT_TIME} < {watermark}L")
    return timed.where(" OR ".join(missed)).drop(EVENT_TIME)


def _missed(query: QueryLayout, watermark: int, answered: Mapping[str, int]) -> str:
    """Whether the earliest window of the query that covers the row has ended."""
    w = query.window
    passes = "" if query.filter is None else f" AND ({query.filter})"
    if query.asked is not None:
        end = answered.get(query.name)
        return "false" if end is None else f"({EVENT_TIME} >= {end - w.length}L AND {EVENT_TIME} < {end}L{passes})"
    begin = f"({EVENT_TIME} - pmod({EVENT_TIME} - {w.offset + w.length}L, {w.slide}L) + {w.slide - w.length}L)"
    if query.since is not None:
        begin = f"greatest({begin}, {w.begin(w.first_begun(query.since))}L)"
    last = w.begin(w.last_ended(watermark if query.until is None else min(watermark, query.until)))
    return f"({begin} <= {last}L AND {begin} <= {EVENT_TIME}{passes})"
