"""What Prometheus reads, by its own parser, against what plain Spark counts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.serving import SCHEMA, Served

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def samples(served: Served) -> dict[tuple[str, ...], float]:
    served.write()
    response = served.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {}
    for family in text_string_to_metric_families(response.text):
        assert family.documentation
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter"), sample.name
            assert re.fullmatch(r"weft_[a-z_]+", sample.name)
            found[(sample.name, *sample.labels.values())] = sample.value
    return found


def test_rows_and_matched_rows_are_those_that_spark_counts(
    spark: Any, served: Served, samples: dict[tuple[str, ...], float]
) -> None:
    rows = spark.read.schema(SCHEMA).parquet(str(served.folder / "rows"))
    assert samples["weft_rows_total",] == samples["weft_query_matched_rows_total", "by_key"] == rows.count()
    assert samples["weft_query_matched_rows_total", "high"] == rows.where("v > 50").count()


def test_answers_are_those_in_the_sink(spark: Any, served: Served, samples: dict[tuple[str, ...], float]) -> None:
    for name in ("by_key", "high"):
        assert (
            samples["weft_query_answers_total", name]
            == spark.read.parquet(str(served.folder / "answers" / name)).count()
        )


def test_every_query_tree_and_phase_has_its_samples(served: Served, samples: dict[tuple[str, ...], float]) -> None:
    assert (samples["weft_up",], samples["weft_queries",]) == (1, len(served.run.queries()))
    shares = [value for key, value in samples.items() if key[0] == "weft_query_cost_ratio"]
    assert sum(shares) == pytest.approx(1)
    for tree in served.run.trees():
        of_tree = {key[0]: value for key, value in samples.items() if key[1:] == (str(tree["tree"]),)}
        assert of_tree.keys() == {"weft_tree_slices", "weft_tree_partials", "weft_tree_state_bytes"}
        assert of_tree["weft_tree_partials"] >= of_tree["weft_tree_slices"]
    assert samples["weft_bad_rows_total",] == samples["weft_failed_queries",] == 0
    assert samples["weft_batch_phase_seconds_total", "native"] > 0
    assert samples["weft_batch_phase_seconds_total", "bucket_advance"] > 0
    assert samples["weft_watermark_timestamp_seconds",] == served.run.watermark / 1e6
    assert samples["weft_query_lag_seconds", "high"] >= samples["weft_lag_seconds",]
    assert samples["weft_batches_total",] == served.run.metrics()["batch"] + 1
