"""The documentation: its links lead somewhere, its SQL is served, and its Python runs in the order it stands in."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from reference import pages

import weft

ROOT = Path(__file__).parents[2]
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


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "mkdocs.yml").read_text()
    missing = [
        named(p) for p in PAGES if p.is_relative_to(ROOT / "docs") and str(p.relative_to(ROOT / "docs")) not in contents
    ]
    assert not missing


@pytest.mark.parametrize("name", ["cards.md", "sql.md", "api.md"])
def test_the_reference_is_as_the_code_is(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == pages()[name], "make docs writes it anew"


def run_apart(script: str, folder: Path, *arguments: str) -> str:
    """In a process of its own that begins in this folder, as its JVM does: paths in the pages are relative."""
    there = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}
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


SHOWN = """
import json, sys
from pathlib import Path
from notebooks import run_notebook

cells = run_notebook(Path(sys.argv[1]))["cells"]
print(json.dumps([[output["output_type"] for output in cell.get("outputs", ())] for cell in cells]))
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("story", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_stories_run_and_show_what_they_showed(story: Path, tmp_path: Path) -> None:
    kept = [[o["output_type"] for o in cell.get("outputs", ())] for cell in json.loads(story.read_text())["cells"]]
    assert json.loads(run_apart(SHOWN, tmp_path, str(story)).splitlines()[-1]) == kept, "make examples keeps them"
