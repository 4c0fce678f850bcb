"""The comparison of percentiles, distinct counts and top-k with plain Spark: its queries and its summary."""

from __future__ import annotations

import pytest

from weft.sql import parse
from weft_bench.benchmarks.holistic import FORMS, SUMMARY, in_turn, make_queries, same_value, summarise


def test_both_forms_ask_over_the_same_windows_and_are_served() -> None:
    exact, approximate = (make_queries(form, 24, 1) for form in FORMS)
    assert [(q.slide, q.overlap) for q in exact] == [(q.slide, q.overlap) for q in approximate]
    assert {q.aggregate for q in exact} == set(FORMS["exact"])
    for query in (*exact, *approximate):
        assert len(parse(query.sql)[0].calls) == 1


def test_the_queries_that_plain_spark_runs_are_of_each_aggregate_in_turn() -> None:
    queries = make_queries("exact", 22, 1)
    order = in_turn(queries)
    assert sorted(q.name for q in order) == sorted(q.name for q in queries)
    for begin in range(0, 20, 4):
        assert {q.aggregate for q in order[begin : begin + 4]} == set(FORMS["exact"])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1.0, 1.001, False),
        ([{"item": 3, "count": 2}], [{"item": 4, "count": 2}], True),
        ([{"item": 3, "count": 2}], [{"item": 3, "count": 1}], False),
    ],
)
def test_answers_are_alike_where_values_or_how_common_they_are_agree(one: object, other: object, same: bool) -> None:
    assert same_value(one, other) is same


def test_the_ratio_scales_plain_spark_from_the_queries_that_it_ran_to_all() -> None:
    def row(engine: str, form: str, rate: float) -> dict[str, object]:
        memory = {"peak_memory_driver_bytes": 3, "peak_memory_workers_bytes": 4}
        return {"engine": engine, "form": form, "rows_per_second": rate, "synopsis_bytes": 5, **memory}

    rows = [row(e, f, r) for f in FORMS for e, r in (("weft", 500.0), ("spark", 10.0))]
    found = summarise(rows)
    assert found["exact_ratio"] == found["approximate_ratio"] == 50
    assert found["peak_memory_bytes"] == 7
    assert found.keys() == SUMMARY.keys() - {"answers_checked"}
