"""What a bucket reports, on its way from an executor to the driver; no Spark needed."""

from __future__ import annotations

from dataclasses import fields

import pyarrow as pa

from weft.spark.checkpoint.state_store import Segment, SegmentPart
from weft.spark.final.report import BucketReport, KeptTreeState, Reports, answers_row, report_row

FULL = BucketReport(
    bucket=3,
    segments=(Segment("segments/0003/a.arrow", 5, 7, 1, {0: SegmentPart(0, 10, 42), 12: SegmentPart(10, 5, -3)}, 15),),
    state_bytes=15,
    answers={"q": 2},
    late={"q": 1},
    matched={"q": 9},
    trees={0: KeptTreeState(4, 20)},
    value_bytes=8,
    scans={"sum(v)": 0.5},
    refreshes={"q": 0.25},
    seconds={"load": 0.125},
    memory=1 << 20,
    failed={"p": "division by zero"},
)


def test_a_report_is_the_same_after_it_travelled() -> None:
    assert all(getattr(FULL, field.name) for field in fields(BucketReport)), "or a field is not tested"
    assert BucketReport.decode(FULL.encode()) == FULL
    assert BucketReport.decode(BucketReport(0).encode()) == BucketReport(0)


def test_reports_and_parts_of_answers_arrive_in_one_stream_of_rows() -> None:
    parts = [pa.table({"a": [1, 2]}), pa.table({"a": [3]})]
    sent = [report_row(BucketReport(0)), answers_row(0, "q", parts[0]), report_row(FULL), answers_row(3, "q", parts[1])]
    reports = Reports.of([row for batch in sent for row in batch.to_pylist()])
    assert reports.buckets == (BucketReport(0), FULL)
    assert reports.answers == {"q": pa.table({"a": [1, 2, 3]})}
    assert (reports.failed, reports.value_bytes) == ({"p": "division by zero"}, 8)
