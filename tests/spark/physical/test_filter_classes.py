"""Many filters: more than a word of bits, and in classes where all together would tell nearly every row apart."""

from __future__ import annotations

from typing import Any

import pytest

from weft.spark import weave
from weft.spark.physical.signature import WORD_BITS

pytestmark = pytest.mark.spark

ROWS = """
SELECT timestamp_millis(id * 40) AS ts, id % 2 AS k, nullif(pmod(xxhash64(id, 1), 100), 13) AS price,
  pmod(xxhash64(id, 2), 100) AS size, concat('kind', pmod(xxhash64(id, 3), 5)) AS kind
FROM range(3000)
"""

ALIKE = ROWS.replace("xxhash64(id, 1)", "id").replace("xxhash64(id, 2)", "id * 53").replace("xxhash64(id, 3)", "id")
"""The columns say the same about a row: a hundred different rows come again and again."""

FILTERS = [
    *(f"price = {i}" for i in range(WORD_BITS + 3)),
    *(f"price > {i}" for i in range(20)),
    *(f"kind = 'kind2' AND size <= {i}" for i in range(9, 99, 9)),
    *(f"size BETWEEN {i} AND {i + 30}" for i in range(10)),
    *(f"kind = 'kind{i}' AND price <= 50" for i in range(5)),
    "kind IN ('kind1', 'kind9') OR size IS NULL",
    "k >= 0",
]


@pytest.mark.parametrize(("rate", "split"), [(1e9, False), (50, True)])
def test_every_query_counts_the_rows_that_pass_its_filter(spark: Any, rate: float, split: bool) -> None:
    """Filters are in classes where slices are so short that the signatures seen in the table would hardly repeat."""
    window = "window(ts, '20 seconds', '10 seconds')"
    counted = "SELECT k, window.start AS w, count(*) AS n FROM stream"
    texts = [f"CREATE VIEW q{i} AS {counted} WHERE {where} GROUP BY k, {window}" for i, where in enumerate(FILTERS)]
    everything = f"CREATE VIEW everything AS {counted} GROUP BY k, {window}"
    job = weave(spark.sql(ROWS), [*texts, everything], rate=rate, phantoms="never")
    feeds = job.physical.feeds
    classes = len(feeds)
    assert (classes > 1) == split
    if split:
        assert len(weave(spark.sql(ALIKE), [*texts, everything], rate=rate).physical.feeds) == 1
    assert max(len(feed.layout.words) for feed in feeds) == 2
    assert (f"  passes by k  {classes}, with" in job.explain()) == split
    # 20 thresholds are one number of 5 bits, 10 beside a kind another of 4, and 10 ranges one of 5.
    assert sum(feed.signature.width for feed in feeds) == len(FILTERS) - 20 - 10 - 10 + 5 + 4 + 5
    numbers = [tree.number for tree in job.physical.layout.trees]
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
