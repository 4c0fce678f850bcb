"""The documentation: its links lead somewhere, its SQL is served, and its Python runs in the order it stands in."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import weft
from tests.support import ROOT
from tools.reference import pages
from weft.cli import app

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text()) if found == language]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if re.match(r"https?://", target):
            continue
        file, _, heading = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), f"{target} leads nowhere"
        if heading:
            headings = re.findall(r"^#+ (.+)$", there.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "sql")], ids=named)
def test_sql_is_served(page: Path) -> None:
    for text in blocks(page, "sql"):
        assert weft.parse(text)


PLAIN = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:SPARK_MASTER=\S+ )?weft [^`]+)`")
COMMANDS = get_command(app)


def command_lines(page: Path) -> list[str]:
    text = page.read_text()
    typed = [line for block in PLAIN.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in [*typed, *INLINE.findall(text)] if re.match(r"(SPARK_MASTER=\S+ )?weft [a-z-]", line)]


def options_of(words: list[str]) -> set[str]:
    """The options of the command that is named there, which must be one."""
    command: Any = COMMANDS
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        found = command.get_command(None, words[0])
        if found is None:
            assert words[0].isupper(), f"{words[0]} is no command"  # a name to be filled in
            break
        command, words = found, words[1:]
    return {"--help", "--debug"} | {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("page", [p for p in PAGES if command_lines(p)], ids=named)
def test_commands_and_their_options_are_there(page: Path) -> None:
    for line in command_lines(page):
        words = shlex.split(line)
        words = words[words.index("weft") + 1 :]
        unknown = {w for w in words if re.match(r"--\w", w)} - options_of(words)
        assert not unknown, f"{line}: no such options"


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "mkdocs.yml").read_text()
    missing = [
        named(p) for p in PAGES if p.is_relative_to(ROOT / "docs") and str(p.relative_to(ROOT / "docs")) not in contents
    ]
    assert not missing


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
SOURCE_PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*(?:/|\.py))`")
ARCHITECTURE = ROOT / "docs" / "architecture.md"


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", ARCHITECTURE, *DECISIONS], ids=named)
def test_files_and_folders_that_a_page_names_are_there(page: Path) -> None:
    paths = SOURCE_PATH.findall(page.read_text())
    assert [path for path in paths if not any((base / path).exists() for base in (ROOT, ROOT / "src" / "weft"))] == []


def test_contributors_are_told_where_at_least_a_dozen_things_are() -> None:
    rows = re.findall(r"^\| (?:where|the|idle|state) [^|]+\|.*$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert len([row for row in rows if SOURCE_PATH.search(row)]) >= 12


@pytest.mark.parametrize("folder", ["src/weft", "src/weft/spark"])
def test_the_tree_that_is_shown_is_the_tree(folder: str) -> None:
    shown = re.search(rf"^{folder}/\n((?:  .*\n)+)", ARCHITECTURE.read_text(), re.MULTILINE)
    assert shown is not None
    # Names come first in a line, before two spaces and what they hold.
    names = {name.rstrip("/") for line in shown[1].splitlines() for name in re.split(r" {2,}", line.strip())[0].split()}
    there = {path for path in (ROOT / folder).iterdir() if path.name != "__pycache__" and not path.name.startswith("_")}
    assert {path.name for path in there if path.is_dir()} <= names
    assert names <= {path.name for path in there}


@pytest.mark.parametrize("record", DECISIONS, ids=named)
def test_a_decision_record_fits_on_a_screen_and_has_its_parts(record: Path) -> None:
    text = record.read_text()
    assert len(text.splitlines()) <= 45
    title, *headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    assert headings[:2] == ["Context", "Decision"]
    assert headings[-1] == "Consequence"
    assert f'- "{title.replace("`", "")}": decisions/{record.name}' in (ROOT / "mkdocs.yml").read_text()


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_reference_is_as_the_code_is(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == pages()[name], "run `make docs`"


def run_apart(script: str, folder: Path, *arguments: str) -> str:
    """In a process of its own that begins in this folder, as its JVM does: paths in the pages are relative."""
    there = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=folder, env=there, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.spark
@pytest.mark.slow
def test_the_ten_minutes_run(tmp_path: Path) -> None:
    script = "\n".join(blocks(ROOT / "docs" / "index.md", "python"))
    assert "['last_minute', 'burst']" in run_apart(script, tmp_path)


README = """
import numpy as np
from weft.spark import local_session

spark = local_session()
rows = "timestamp_millis(1700000000000 + id * 10) AS ts", "'AAPL' AS symbol", "100D + id % 7 AS price"
spark.range(600).selectExpr(*rows).write.parquet("trades")
trades = spark.readStream.schema("ts TIMESTAMP, symbol STRING, price DOUBLE").parquet("trades")
other = "CREATE VIEW other AS SELECT window, count(*) AS n FROM trades GROUP BY window(ts, '1 minute', '5 seconds')"
{}
run.query.processAllAvailable()
print(run.queries())
run.stop()
print(weft.parse("SELECT geometric_mean(price) AS mean FROM trades [RANGE 1 HOUR]")[0].calls[0].function)
"""


@pytest.mark.spark
@pytest.mark.slow
def test_the_readme_runs(tmp_path: Path) -> None:
    shown = run_apart(README.format("\n".join(blocks(ROOT / "README.md", "python"))), tmp_path)
    assert shown.splitlines()[-2:] == ["['last_minute', 'burst', 'other']", "geometric_mean"]


SHOWN = """
import json, sys
from pathlib import Path
from tools.notebooks import run_notebook

cells = run_notebook(Path(sys.argv[1]))["cells"]
print(json.dumps([[output["output_type"] for output in cell.get("outputs", ())] for cell in cells]))
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("story", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_stories_run_and_show_what_they_showed(story: Path, tmp_path: Path) -> None:
    kept = [[o["output_type"] for o in cell.get("outputs", ())] for cell in json.loads(story.read_text())["cells"]]
    assert json.loads(run_apart(SHOWN, tmp_path, str(story)).splitlines()[-1]) == kept, "make examples keeps them"
