"""Many filters: more than a word of bits, and in classes where all together would tell nearly every row apart."""

from __future__ import annotations

from typing import Any

import pytest

from weft.spark import weave
from weft.spark.signature import WORD_BITS

pytestmark = pytest.mark.spark

ROWS = """
SELECT timestamp_millis(id * 40) AS ts, id % 2 AS k, nullif(id * 37 % 100, 13) AS price, id * 53 % 100 AS size,
  concat('kind', id * 7 % 5) AS kind
FROM range(3000)
"""

FILTERS = [
    *(f"price > {i}" for i in range(WORD_BITS + 3)),
    *(f"size BETWEEN {i} AND {i + 30}" for i in range(10)),
    *(f"kind = 'kind{i}' AND price <= 50" for i in range(5)),
    "kind IN ('kind1', 'kind9') OR size IS NULL",
    "k >= 0",
]


@pytest.mark.parametrize(("rate", "classes"), [(1e9, 1), (50, 4)])
def test_every_query_counts_the_rows_that_pass_its_filter(spark: Any, rate: float, classes: int) -> None:
    window = "window(ts, '20 seconds', '10 seconds')"
    counted = "SELECT k, window.start AS w, count(*) AS n FROM stream"
    texts = [
        f"CREATE VIEW q{i} AS {counted} WHERE {where} GROUP BY k, {window}"
        for i, where in enumerate(FILTERS)
    ]
    everything = f"CREATE VIEW everything AS {counted} GROUP BY k, {window}"
    job = weave(spark.sql(ROWS), [*texts, everything], rate=rate, phantoms="never")
    feeds = job.binding.feeds
    assert len(feeds) == classes
    assert max(len(feed.layout.words) for feed in feeds) == 2
    assert ("  passes by k  4, with" in job.explain()) == (classes == 4)
    numbers = [tree.number for tree in job.binding.layout.trees]
    assert len(set(numbers)) == len(numbers) == classes
    found: dict[str, dict[Any, int]] = {}

    def take(batch: int, answers: Any) -> None:
        for name, table in answers.items():
            rows = table.to_pylist()
            found.setdefault(name, {}).update({(row["k"], row["w"]): row["n"] for row in rows})

    job.run_bounded(take)
    spark.sql(ROWS).createOrReplaceTempView("stream")
    counts = ", ".join(f"count(*) FILTER (WHERE {where}) AS q{i}" for i, where in enumerate(FILTERS))
    expected = spark.sql(
        f"SELECT k, window.start AS w, count(*) AS everything, {counts} FROM stream GROUP BY k, {window}"
    ).toArrow()
    for name in ("everything", *(f"q{i}" for i in range(len(FILTERS)))):
        wanted = {(row["k"], row["w"]): row[name] for row in expected.to_pylist() if row[name]}
        assert found.get(name, {}) == wanted, name
