"""What benchmarks are made of: settings, samples, memory, and the arithmetic of their summaries. No Spark."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from weft.sql import parse
from weft_bench import BENCHMARKS
from weft_bench.benchmark import BadSetting, integer, make_settings, numbers, part, positive
from weft_bench.benchmarks.soak import SUMMARY as SOAK_SUMMARY
from weft_bench.benchmarks.soak import WHAT, SoakSettings
from weft_bench.benchmarks.soak import summarise as summarise_soak
from weft_bench.benchmarks.spark import SUMMARY, SparkSettings, summarise
from weft_bench.benchmarks.state import LONG, SHORT, ends
from weft_bench.benchmarks.state import summarise as summarise_state
from weft_bench.data.queries import AGGREGATES, make_queries, sample_order, spread
from weft_bench.machine import (
    PeakMemory,
    Process,
    describe_machine,
    family,
    load,
    memory_now,
    processes,
    two_over_one,
)
from weft_bench.output.tables import cell

MIB = 1 << 20


def test_the_registry_has_all_and_says_what_their_summaries_mean() -> None:
    assert {"spark", "state", "figure", "auto"} <= set(BENCHMARKS)
    for name, benchmark in BENCHMARKS.items():
        assert benchmark.name == name
        assert benchmark.about
        assert all(benchmark.summary.values())


def test_what_is_written_on_the_command_line_goes_before_quick_and_quick_before_defaults() -> None:
    assert make_settings(SparkSettings, {}, quick=False) == SparkSettings()
    quick = make_settings(SparkSettings, {"rows": "2e4", "queries": "2,1"}, quick=True)
    assert (quick.rows, quick.queries, quick.repeat) == (20_000, (1, 2), 1)


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "many", ""])
def test_a_number_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadSetting, match="number"):
        positive(text)


def test_one_wrong_number_in_a_list_is_refused() -> None:
    with pytest.raises(BadSetting, match="'x'"):
        numbers("1,x")


def test_a_seed_may_be_negative_but_not_a_word() -> None:
    assert integer("-1") == -1
    with pytest.raises(BadSetting):
        integer("one")


def test_a_time_may_be_a_part_of_a_minute_but_not_nothing() -> None:
    assert make_settings(SoakSettings, {"minutes": "0.5"}, quick=False).minutes == 0.5
    for text in ("0", "-1", "inf", "nan", "half"):
        with pytest.raises(BadSetting, match="number"):
            part(text)


def test_a_soak_is_flat_by_the_medians_of_two_quarters_and_not_by_its_begin_or_one_look() -> None:
    held = [900, 300, 100, 100, 101, 99, 100, 50, 150, 150, 150, 700]
    rows = [{**dict.fromkeys(WHAT, value), "seconds": 5.0 * (i + 1), "rows": 10 * (i + 1), "batch": i, "lag_seconds": 1}
            for i, value in enumerate(held)]  # fmt: skip
    found = summarise_soak(rows)
    assert set(found) | {"changes"} == set(SOAK_SUMMARY)
    assert found["driver_heap_bytes_growth"] == 1.5
    assert found["driver_heap_bytes"] == 700
    assert found["rows_per_second"] == 2
    assert summarise_soak([{**row, "workers_bytes": None} for row in rows])["workers_bytes_growth"] is None


def test_one_query_is_the_one_with_overlap_20() -> None:
    (query,) = make_queries(1, seed=5)
    assert (query.aggregate, query.range, query.slide) == ("sum(v)", 60, 3)


def test_queries_are_seeded_and_within_their_bounds() -> None:
    queries = make_queries(100, seed=1)
    assert queries == make_queries(100, seed=1) != make_queries(100, seed=2)
    assert {q.slide for q in queries} <= set(range(1, 61))
    assert {q.overlap for q in queries} <= set(range(2, 21))
    assert set(Counter(q.aggregate for q in queries)) == set(AGGREGATES)
    assert queries[:10] == make_queries(10, seed=1)


def test_weft_reads_every_query() -> None:
    for query in make_queries(30, seed=3):
        (acq,) = parse(query.sql)
        assert (acq.window.length, acq.window.slide) == (query.range * 1_000_000, query.slide * 1_000_000)


def test_every_beginning_of_a_sample_is_spread_over_the_overlaps() -> None:
    queries = make_queries(100, seed=1)
    order = sample_order(queries)
    assert sorted(q.name for q in order) == sorted(q.name for q in queries)
    mean = sum(q.overlap for q in queries) / 100
    for size in (1, 3, 7, 15):
        assert abs(sum(q.overlap for q in order[:size]) / size - mean) < 2


def test_spreading_nothing_is_nothing() -> None:
    assert spread([]) == []


def test_the_machine_is_described_and_its_load_known() -> None:
    machine = describe_machine()
    assert machine["cores"] >= 1
    assert machine["processor"]
    assert set(machine) >= {"weft", "pyspark", "python", "system", "memory_bytes"}
    assert load() >= 0


# root(1) - shell(2) - java(3) - python(4) - python(5)       somebody else's: java(8) - python(9)
#                          \- chmod(6), java(7)
FAMILY = [
    Process(1, 0, "python3.11"),
    Process(2, 1, "spark-class"),
    Process(3, 2, "java"),
    Process(4, 3, "python"),
    Process(5, 4, "python"),
    Process(6, 3, "chmod"),
    Process(7, 3, "java"),
    Process(8, 0, "java"),
    Process(9, 8, "python"),
]


def test_the_driver_is_everything_down_to_the_jvm_and_workers_are_the_pythons_below_it() -> None:
    assert family(1, FAMILY) == ({1, 2, 3}, {4, 5})


def test_memory_is_summed_over_the_processes_of_each_side(tmp_path: Path) -> None:
    for process in FAMILY:
        folder = tmp_path / str(process.pid)
        folder.mkdir()
        (folder / "stat").write_text(f"{process.pid} ({process.name}) S {process.parent} 1 1")
        (folder / "status").write_text(f"Name:\t{process.name}\nVmRSS:\t  {process.pid * 1024} kB\n")
    (tmp_path / "self").mkdir()
    assert sorted(processes(tmp_path), key=lambda p: p.pid) == FAMILY
    memory = memory_now(1, tmp_path)
    assert memory is not None
    assert (memory.driver, memory.workers) == (6 * MIB, 9 * MIB)


def test_a_process_whose_name_has_brackets_and_spaces_is_read(tmp_path: Path) -> None:
    (tmp_path / "12").mkdir()
    (tmp_path / "12" / "stat").write_text("12 (a (b) c) S 3 1 1")
    assert processes(tmp_path) == [Process(12, 3, "a (b) c")]


def test_without_proc_memory_is_unknown(tmp_path: Path) -> None:
    assert memory_now(1, tmp_path / "nothing") is None


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="memory is read from /proc")
def test_the_peak_remembers_what_was_given_back() -> None:
    before = memory_now(os.getpid())
    assert before is not None
    least = before.driver + 48 * MIB
    with PeakMemory() as peak:
        block = bytearray(os.urandom(1)) * (64 * MIB)
        deadline = time.monotonic() + 10
        while (peak.as_row()["peak_memory_driver_bytes"] or 0) < least and time.monotonic() < deadline:
            time.sleep(0.01)
        del block
    assert (peak.as_row()["peak_memory_driver_bytes"] or 0) >= least


def row(engine: str, queries: int, keys: int = 1000, **values: Any) -> dict[str, Any]:
    usual = {"seconds": 2.0, "rows_per_second": 100.0, "answers_per_second": 7.0, "peak_memory_driver_bytes": 3}
    return {"engine": engine, "queries": queries, "keys": keys, "peak_memory_workers_bytes": 2} | usual | values


def test_ratios_are_rates_over_all_turns_and_times_over_times() -> None:
    rows = [
        row("weft", 1, rows_per_second=400.0, peak_memory_driver_bytes=10),
        row("spark", 1, rows_per_second=100.0, peak_memory_driver_bytes=99),
        row("weft", 100, rows_per_second=300.0),
        row("weft", 100, rows_per_second=300.0),
        # A turn of 2 seconds at 1 row a second and one of 1 second at 4: two rows a second.
        row("spark", 100, rows_per_second=1.0, seconds=2.0),
        row("spark", 100, rows_per_second=4.0, seconds=1.0),
        row("spark_one_job", 100, rows_per_second=30.0),
        row("weft_parquet", 100, seconds=3.0),
        row("weft", 1, keys=100, seconds=4.0),
        row("weft", 100, keys=100, seconds=5.0),
    ]
    found = summarise(rows, keys=1000)
    assert set(SUMMARY) - {"answers_checked"} <= set(found)
    assert (found["ratio_1"], found["ratio_10"], found["ratio_100"]) == (4.0, None, 150.0)
    assert (found["one_job_ratio_100"], found["parquet_over_noop_100"]) == (10.0, 1.5)
    assert found["wall_100_over_1_at_100_keys"] == 1.25
    assert (found["rows_per_second_100"], found["answers_per_second_100"]) == (300.0, 7.0)
    assert found["peak_memory_bytes"] == 12


def test_other_numbers_of_queries_have_the_same_names() -> None:
    found = summarise([row("weft", 7), row("spark", 7, rows_per_second=10.0)], keys=1000)
    assert (found["ratio_7"], found["ratio_100"], found["wall_100_over_1_at_100_keys"]) == (10.0, None, None)


def test_quarters_have_at_least_one_batch() -> None:
    batches = [{"batch": i} for i in range(9)]
    assert [[b["batch"] for b in quarter] for quarter in ends(batches, 4)] == [[0, 1], [7, 8]]
    assert ends(batches[:1], 4) == (batches[:1], batches[:1])


def test_growth_compares_quarters_by_median_and_halves_by_mean() -> None:
    def batches(length: str, written: list[int]) -> list[dict[str, Any]]:
        usual = {"range": length, "rows": 10, "seconds": 1.0}
        return [usual | {"state_bytes": w, "state_bytes_per_row": w / 10, "kept_bytes": w} for w in written]

    # A merge at the end: the median of the last quarter does not see it, the mean of the last half does.
    hour = batches(LONG, [20] * 9 + [20, 20, 80])
    found = summarise_state(hour + batches(SHORT, [20] * 12))
    assert set(found) | {"peak_memory_bytes"} == set(BENCHMARKS["state"].summary)
    assert (found["growth"], found["growth_mean"]) == (1.0, 1.5)
    assert (found["hour_over_minute"], found["hour_over_minute_mean"]) == (1.0, 1.25)
    assert (found["kept_bytes_hour"], found["state_bytes_per_row_last_quarter"]) == (80, 2.0)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("rows", 0, "0"),
        ("rows_per_second", 1234.5, "1,234"),
        ("peak_memory_bytes", 5 << 30, "5.0 GiB"),
        ("state_bytes_per_row", 24.16, "24.16"),
        ("queries", (1, 10), "1,10"),
        ("kept_bytes", 12, "12 B"),
    ],
)
def test_cells_are_for_people(name: str, value: Any, shown: str) -> None:
    assert cell(name, value) == shown


def test_two_processes_are_counted_against_one() -> None:
    assert two_over_one(seconds=0.1, times=1) > 0, "each got something done"
