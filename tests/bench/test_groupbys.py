"""`weft bench groupbys` and `filters`: what is drawn, and the arithmetic of their summaries. No Spark."""

from __future__ import annotations

from weft_bench.benchmarks.filters import SUMMARY as FILTERS_SUMMARY
from weft_bench.benchmarks.filters import make_filters, make_queries
from weft_bench.benchmarks.filters import summarise as summarise_filters
from weft_bench.benchmarks.groupbys import SUMMARY, summarise
from weft_bench.data.packets import independent


def test_two_attributes_by_themselves_have_nearly_a_group_a_row() -> None:
    packets = independent(20_000, seed=3)
    assert packets.count("AB") > 0.99 * len(packets)
    assert packets.count("A") < 20_000


def test_filters_are_all_different_and_windows_as_many_as_asked_for() -> None:
    assert len(set(make_filters(200, seed=1))) == 200
    queries = make_queries(200, windows=30, seed=1)
    assert len({(q.slide, q.overlap) for q in queries}) == 30
    assert queries == make_queries(200, windows=30, seed=1)


def test_ratios_are_of_the_fastest_turns() -> None:
    seconds = {"weft": (2.0, 4.0), "grouping_sets": (12.0, 10.0), "weft_rows": (6.0, 8.0), "separate": (20.0, 30.0)}
    seconds["weft_lfta"] = (14.0, 16.0)
    rows = [
        {"data": data, "engine": engine, "turn": turn, "seconds": taken, "answers": 7, "configuration": "ab(a b)"}
        for data in ("clustered", "uniform")
        for engine, turns in seconds.items()
        for turn, taken in enumerate(turns)
    ]
    found = summarise(rows)
    assert found["clustered_over_grouping_sets"] == 5
    assert found["uniform_over_separate"] == 10
    assert (found["uniform_over_rows"], found["uniform_over_lfta"]) == (3, 7)
    assert found["answers_checked"]
    assert {*found, "load"} == set(SUMMARY)
    assert not summarise([*rows, {**rows[0], "answers": 8}])["answers_checked"]


def test_growth_is_of_most_filters_over_fewest() -> None:
    rows = [
        {"filters": 50, "engine": "weft", "seconds": 2.0, "measured": 50},
        {"filters": 200, "engine": "weft", "seconds": 5.0, "measured": 200, "bits": 90},
        {"filters": 200, "engine": "one_job", "seconds": 50.0, "measured": 7},
        {"filters": 200, "engine": "separate", "seconds": 150.0, "measured": 12},
    ]
    found = summarise_filters(rows)
    assert (found["growth"], found["filters_growth"]) == (2.5, 4)
    assert (found["over_separate"], found["over_one_job"], found["separate_measured"]) == (30, 10, 12)
    assert (found["one_job_measured"], found["signature_bits"]) == (7, 90)
    assert {*found, "answers_checked", "load"} == set(FILTERS_SUMMARY)
