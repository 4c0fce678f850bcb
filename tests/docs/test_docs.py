"""The documentation: its links lead somewhere, its SQL is served, and its Python runs in the order it stands in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from notebooks import run_notebook

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


@pytest.mark.spark
@pytest.mark.slow
def test_the_ten_minutes_run(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for text in blocks(ROOT / "docs" / "index.md", "python"):
        exec(compile(text, "docs/index.md", "exec"), names)
    assert names["run"].queries() == ["last_minute", "burst"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("story", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_stories_run_and_show_what_they_showed(
    spark: Any, story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    book = run_notebook(story)
    kept = json.loads(story.read_text())
    assert kept["cells"]
    for cell, before in zip(book["cells"], kept["cells"], strict=True):
        kinds = [output["output_type"] for output in cell.get("outputs", ())]
        assert kinds == [output["output_type"] for output in before.get("outputs", ())], "make examples keeps them"
