"""`weft bench plan`: its rivals are right, and every bar is in the summary."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from weft.cli.app import app
from weft.model import Edges
from weft.optimizer.edge_counting import exact
from weft_bench import BENCHMARKS
from weft_bench.benchmarks.plan import SUMMARY, people, random_classes
from weft_bench.rivals.planners import prototype_density


def test_the_prototype_counts_what_the_exact_counter_counts() -> None:
    for seed in range(10):
        classes = random_classes(12, 300, seed)
        assert prototype_density(classes) == exact.density(Edges.of_classes(classes))


def test_windows_that_people_use_are_all_different() -> None:
    windows = [query.window for query in people(200, seed=1)]
    assert len(set(windows)) == 200
    assert any(w.offset for w in windows)
    assert any(w.length % w.slide for w in windows)


def test_every_bar_is_in_the_summary() -> None:
    small = {"seeds": 1, "counts": 1, "merged": 12, "queries": 500, "others": 20, "people": 40, "random": 10}
    options = [word for name, value in small.items() for word in (f"--{name}", str(value))]
    done = CliRunner().invoke(app, ["bench", "plan", "--quick", "--json", *options])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["summary"]) == set(SUMMARY)
    assert found["summary"]["lazy_same_merges"] is True
    assert found["summary"]["experiments_finished"] == 5
    assert all(row["equal"] for row in found["rows"] if "equal" in row)


def test_the_command_itself_is_timed() -> None:
    done = CliRunner().invoke(app, ["bench", "command", "--json", "--queries", "20", "--times", "1"])
    assert done.exit_code == 0, done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert set(summary) == set(BENCHMARKS["command"].summary)
    assert summary["trees"] >= 1
    assert summary["help_seconds"] > 0
    assert summary["plan_cpu_seconds"] > 0
