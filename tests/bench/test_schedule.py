"""`weft bench schedule`: every bar is in the summary, and the workload is the paper's."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from weft.cli.app import app
from weft_bench.benchmarks.schedule import SUMMARY
from weft_bench.figures import FIGURES, Scale
from weft_bench.figures.schedule.setting import FIELDS, HIGH, LOW, Counters, draw, play


def test_every_bar_is_in_the_summary() -> None:
    words = ["--queries", "5,12", "--repeat", "1", "--seconds", "60", "--json"]
    done = CliRunner().invoke(app, ["bench", "schedule", *words])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["summary"]) == set(SUMMARY)
    assert len(found["rows"]) == 2 * 2 * 6
    assert found["summary"]["hybrid_over_conservative_throughput"] > 1
    assert found["summary"]["late_pending_over_hybrid_throughput"] > 1
    for gain in ("hybrid_over_conservative_throughput", "conservative_over_hybrid_latency"):
        by_queries = found["summary"][f"{gain}_by_queries"]
        assert list(by_queries) == ["40", "96"]
        assert by_queries["96"] == found["summary"][gain]
    assert found["summary"]["hybrid_over_conservative_cost"] <= 1
    assert found["summary"]["greedy_over_optimum_cost_most"] >= 1


def test_the_workload_is_that_of_section_5() -> None:
    queries = draw(30, seed=3)
    assert queries == draw(30, seed=3)
    assert (len(queries), len(FIELDS)) == (240, 8)
    assert all(20 <= q.window <= 100 and 1 <= q.period <= q.window // 2 for q in queries)


def test_the_high_rate_costs_more_and_one_time_queries_are_answered() -> None:
    low, high = (Counters(rate).scan("source", 20) for rate in (LOW, HIGH))
    assert high > 1.9 * low
    found = play("late_pending", 5, LOW, seed=1, seconds=40)
    assert found.one_time_answers >= 38
    assert found == play("late_pending", 5, LOW, seed=1, seconds=40)


def test_figures_5_and_6_draw_the_same_runs_and_say_what_the_paper_says() -> None:
    scale = Scale(quick=True, repeat=1, seed=1, budget=1)
    heard: list[str] = []
    for name, claims in (("schedule-5", 5), ("schedule-6", 4)):
        figure = FIGURES[name]
        rows = figure.rows(scale, heard.append)
        assert {row["series"] for row in rows} == {"No-S", "AS", "CS", "HS", "H-LS", "H-LP"}
        found = figure.claims(rows)
        assert len(found) == claims
        assert found[0].agrees
        (chart,) = figure.charts(rows)
        assert all(len(points) == 2 for points in chart.series.values())
    assert heard == 2 * ["40 queries at 1500 rows/s", "160 queries at 1500 rows/s"]
