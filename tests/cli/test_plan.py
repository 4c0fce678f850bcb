"""`weft plan` from a file of queries to text, JSON and a page."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from weft.calibration.file import Calibration, calibration_file, save_calibration
from weft.calibration.weights import Weights
from weft.cli import app

QUERIES = """
CREATE VIEW high AS
  SELECT max(price) FROM trades GROUP BY window(ts, '16 seconds', '4 seconds');
CREATE VIEW low AS
  SELECT min(price) FROM trades GROUP BY window(ts, '8 seconds', '4 seconds');
SELECT sum(size) FROM trades GROUP BY window(ts, '10 seconds', '5 seconds');
"""


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    file = tmp_path / "queries.sql"
    file.write_text(QUERIES)
    return file


def plan(*words: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, words)], input=stdin)


def test_the_text_names_every_query(queries: Path) -> None:
    result = plan(queries, "--rate", "1.2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Plan  ")
    assert all(name in result.stdout for name in ("high", "low", "q"))


def test_json_is_one_object_with_each_query_in_one_tree(queries: Path) -> None:
    result = plan(queries, "--json")
    trees = json.loads(result.stdout)["trees"]
    names = [json.dumps(tree) for tree in trees]
    assert sum('"high"' in tree for tree in names) == 1
    assert sum('"low"' in tree for tree in names) == 1


def test_nodes_place_every_query_and_say_what_each_has_to_do(queries: Path) -> None:
    result = plan(queries, "--rate", "1.2", "--nodes", "2")
    assert result.exit_code == 0, result.stderr
    assert "Placed  knee  2 nodes  total " in result.stdout
    placed = json.loads(plan(queries, "--rate", "1.2", "--nodes", "2", "--json").stdout)["placement"]
    names = sorted(name for node in placed["nodes"] for tree in node["trees"] for name in tree["queries"])
    assert names == ["high", "low", "q3"]
    assert placed["total"] == pytest.approx(sum(node["cost"] for node in placed["nodes"]))
    assert plan(queries, "--nodes", "0").exit_code == 2


def test_the_page_is_written_and_the_text_still_printed(queries: Path, tmp_path: Path) -> None:
    result = plan(queries, "--html", tmp_path / "plan.html")
    assert result.stdout.startswith("Plan  ")
    assert "<html" in (tmp_path / "plan.html").read_text().lower()


def test_a_page_that_cannot_be_written_is_refused(queries: Path, tmp_path: Path) -> None:
    result = plan(queries, "--html", tmp_path / "missing" / "plan.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "plan.html: No such file or directory" in result.stderr


def test_a_dash_reads_standard_input(queries: Path) -> None:
    assert plan("-", stdin=QUERIES).stdout == plan(queries).stdout


def test_sharing_nothing_gives_a_tree_a_query(queries: Path) -> None:
    result = plan(queries, "--strategy", "no_share", "--json")
    assert len(json.loads(result.stdout)["trees"]) == 3


def test_an_unknown_strategy_is_refused(queries: Path) -> None:
    result = plan(queries, "--strategy", "guess")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "guess" in result.stderr


@pytest.mark.parametrize("rate", ["0", "-1", "many", "1/0", "nan"])
def test_a_rate_that_is_no_number_above_zero_is_refused(queries: Path, rate: str) -> None:
    result = plan(queries, f"--rate={rate}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--rate" in result.stderr


def test_a_query_that_cannot_be_served_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "refused.sql"
    file.write_text("SELECT collect_list(price)\nFROM trades GROUP BY window(ts, '1 minute')")
    result = plan(file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "line 1, column 8" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    result = plan(tmp_path / "none.sql")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "none.sql: No such file or directory" in result.stderr


def test_a_file_without_a_query_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.sql"
    file.write_text("-- nothing yet\n")
    assert plan(file).exit_code == 2


def test_a_file_that_is_not_text_is_refused_with_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "latin1.sql"
    file.write_bytes("SELECT 'é'".encode("latin-1"))
    result = plan(file)
    assert result.exit_code == 2
    assert "not UTF-8 at byte 8" in result.stderr


def test_planning_loads_neither_spark_nor_compilers_and_starts_no_jvm(queries: Path) -> None:
    script = """
import subprocess, sys
import weft.cli

def refuse(*_, **__):
    raise AssertionError("weft plan starts another process")

subprocess.Popen.__init__ = refuse
weft.cli.app(sys.argv[1:], standalone_mode=False)
slow = {"pyspark", "py4j", "pyarrow", "pandas", "numba", "datasketches", "fastapi", "sqlglot"}
print(sorted(slow & {name.partition(".")[0] for name in sys.modules}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "plan", str(queries)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_measured_machine_gives_the_plan_in_seconds(
    queries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "on this machine" not in plan(queries).stdout
    save_calibration(Calibration(Weights(0.5, 1e-3, 1e-6, 1e-6, 1e-7, 1e-9, 1e-7)), calibration_file())
    assert " s of work for each second of stream" in plan(queries).stdout
    few, many = (json.loads(plan(queries, "--json", "--groups", n).stdout)["seconds"] for n in ("1", "1000"))
    assert 0 < few < many
    calibration_file().write_text("{}")
    result = plan(queries)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "run `weft calibrate` again" in result.stderr


def test_seconds_are_compared_where_the_machine_was_measured(
    queries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    refused = plan(queries, "--cost", "seconds")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "weft calibrate" in refused.stderr
    save_calibration(Calibration(Weights(0.5, 1e-3, 1e-7, 2e-6, 5e-8, 2e-9, 1e-7)), calibration_file())
    found = plan(queries, "--cost", "seconds", "--groups", "1000", "--selectivity", "0.5", "--width", "2")
    assert "the least of" in found.stdout
    assert "operations, seconds" in plan(queries, "--cost", "money").stderr
    assert "width of a stream must be above 0" in plan(queries, "--width", "0").stderr
