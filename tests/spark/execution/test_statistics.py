"""What the stream is like moves while the job runs: classes of filters and phantoms follow, with a reason."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.compare import assert_same_rows
from tests.support.streams import BEGIN, settle, wait_for_threads
from weft.spark import weave
from weft.spark.options import LEAST_MEMORY
from weft.spark.physical.filter_classes import FilterClasses, better_classes
from weft.spark.physical.statistics import SignatureCounts
from weft.sql import parse

pytestmark = pytest.mark.spark

RATE = 40
ROWS = 30 * RATE
"""Half a minute in a file: enough for counts to tell."""
SCHEMA = "ts TIMESTAMP, k INT, a INT, b INT"
TOLERANCE = Fraction(1, 10)
CUTS = [*(f"a = {i}" for i in range(12)), *(f"b BETWEEN {5 * i} AND {5 * i + 30}" for i in range(6))]


class Columns:
    """Files whose columns a and b are made by the test: what passes which filter, and what comes after what."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.written, self.rows = spark, folder / "rows", 0, 0
        self.folder.mkdir()
        self.random = np.random.default_rng(3)

    def write(self, a: Any, b: Any) -> None:
        number, ids = self.written, self.rows + np.arange(len(a))
        table = pa.table(
            {
                "ts": pa.array(BEGIN + ids * (1_000_000 // RATE), pa.timestamp("us", "UTC")),
                "k": pa.array(ids % 2, pa.int32()),
                "a": pa.array(a, pa.int32()),
                "b": pa.array(b, pa.int32()),
            }
        )
        beside = self.folder.parent / f"{number:04d}.parquet"
        pq.write_table(table, beside)
        os.utime(beside, (1_700_000_000 + number, 1_700_000_000 + number))
        beside.rename(self.folder / beside.name)
        self.written, self.rows = number + 1, self.rows + len(a)

    def start(self, queries: list[str], **settings: Any) -> Any:
        stream = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.folder))
        job = weave(stream, queries, watermark="1 second", rate=RATE, **settings)
        return job.start(sink="memory", checkpoint=self.folder.parent / "state")

    def assert_answers(self, run: Any, queries: list[str]) -> None:
        self.spark.read.schema(SCHEMA).parquet(str(self.folder)).createOrReplaceTempView("stream")
        answers = run.answers()
        for query in parse("; ".join(queries)):
            expected = self.spark.sql(query.spark_sql).toArrow()
            assert_same_rows(answers[query.name], expected, key=(0, 1), text=query.text)


@pytest.fixture
def columns(spark: Any, tmp_path: Path) -> Columns:
    return Columns(spark, tmp_path)


def signatures(a: Any, b: Any) -> SignatureCounts:
    numbers = np.random.default_rng(1).integers(1, 2**63, len(CUTS)).astype(np.uint64)
    passes = [*(a == i for i in range(12)), *((b >= 5 * i) & (b <= 5 * i + 30) for i in range(6))]
    passed = {f: np.where(p, n, np.uint64(0)) for f, p, n in zip(CUTS, passes, numbers, strict=True)}
    return SignatureCounts((np.arange(len(a)) % 2).astype(np.uint64), passed)


def test_filters_move_to_other_classes_only_where_that_is_cheaper_by_more_than_the_tolerance() -> None:
    random = np.random.default_rng(1)
    a = random.integers(0, 20, 2000)
    alike, unlike = signatures(a, a * 53 % 100), signatures(a, random.integers(0, 100, 2000))
    filters = sorted(CUTS)
    together = FilterClasses.of(("k",), filters, 400.0, lambda f, keys: alike)
    apart = FilterClasses.of(("k",), filters, 400.0, lambda f, keys: unlike)
    assert [len(found.classes) for found in (together, apart)] == [1, 2]
    said = better_classes([together], lambda f, keys: unlike, TOLERANCE)
    assert said is not None
    assert said.startswith("signatures were counted again: 18 filters by k in 2 passes of 12 and 6, not one pass, a ")
    assert better_classes([together], lambda f, keys: unlike, Fraction(10)) is None, "not by so much"
    assert better_classes([together], lambda f, keys: alike, TOLERANCE) is None, "they are right"
    assert better_classes([together], lambda f, keys: None, TOLERANCE) is None, "nothing was counted"


@pytest.mark.slow
def test_filters_are_in_other_classes_when_other_signatures_come(
    columns: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.spark.partial.statistics.RECOUNT", 2)
    counted = "SELECT k, window.start AS start, count(*) AS n, sum(a) AS x FROM stream"
    window = "window(ts, '20 seconds', '10 seconds')"
    queries = [f"CREATE VIEW q{i} AS {counted} WHERE {f} GROUP BY k, {window}" for i, f in enumerate(CUTS)]
    random, run, passes = columns.random, columns.start(queries), []
    for alike in (True, True, False, False, False):
        a = random.integers(0, 20, ROWS)
        columns.write(a, a * 53 % 100 if alike else random.integers(0, 100, ROWS))
        settle(run)
        wait_for_threads("weft-planner")  # a plan is made beside the job
        passes.append(len(run.passes()))
    assert passes == [2, 1, 1, 2, 2]
    changes = run.changes()
    reasons = [c["reason"] for c in changes]
    assert [r.partition(", a row costs")[0] for r in reasons] == [
        "woven",
        "signatures were counted again: 18 filters by k in one pass, not 2 passes of 12 and 6",
        "signatures were counted again: 18 filters by k in 2 passes of 12 and 6, not one pass",
    ]
    assert all(c["cost_before"] == c["cost_after"] for c in changes[1:]), "the trees are the plan's, and stay"
    run.drain()
    columns.assert_answers(run, queries)


@pytest.mark.slow
def test_what_was_counted_of_groupings_that_left_is_forgotten(columns: Columns) -> None:
    """One grouping is left, so nothing is to be chosen: the choice for two must not be taken for it."""
    counted = "window.start AS start, count(*) AS n FROM stream GROUP BY"
    window = "window(ts, '20 seconds', '10 seconds')"
    queries = [f"CREATE VIEW by_{c} AS SELECT {c}, {counted} {c}, {window}" for c in "ab"]
    run = columns.start(queries)
    columns.write(*(columns.random.integers(0, n, ROWS) for n in (20, 30)))
    settle(run)
    run.drop("by_b")
    columns.write(*(columns.random.integers(0, n, ROWS) for n in (20, 30)))
    settle(run)
    assert len(run.passes()) == 1
    run.drain()
    columns.assert_answers(run, queries[:1])


@pytest.mark.slow
def test_other_phantoms_are_chosen_when_rows_come_in_longer_flows(
    columns: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All groups of either key come before and after: what moves is how long rows of a group stay together."""
    monkeypatch.setattr("weft.spark.partial.statistics.RECOUNT", 2)
    summed = "count(*) AS n FROM stream GROUP BY"
    window = "window(ts, '4 hours', '2 hours')"
    queries = [f"CREATE VIEW by_{c} AS SELECT {c}, window.start AS start, {summed} {c}, {window}" for c in "ab"]
    random = columns.random
    for length in (1, 1, 10, 10, 10):
        columns.write(*(np.repeat(random.integers(0, n, 30 * ROWS // length), length) for n in (20, 30)))
    run = columns.start(queries, groupings="lfta", table_memory=4 * LEAST_MEMORY)
    settle(run)
    (said,) = [c["reason"] for c in run.changes()][1:]
    assert said.startswith("groups were counted again, in flows of "), said
    assert said.endswith(" in bounded tables, not a b in bounded tables"), said
    assert {tuple(p["phantom"] or ()) for p in run.passes()} == {("a", "b")}
    run.drain()
    columns.assert_answers(run, queries)
