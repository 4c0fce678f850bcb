"""The page of the papers' figures says nothing else than the results that `weft bench report` has written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support import ROOT
from weft_bench.figures import FIGURES

FIGURES_PAGE = (ROOT / "docs" / "figures.md").read_text()
RESULTS_PAGE = (ROOT / "docs" / "results.md").read_text()
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?K?")
VERDICTS = ("agrees", "partly", "differs")


@dataclass(frozen=True)
class Comparison:
    """One row of the figures' page."""

    figures: tuple[str, ...]
    quick: str
    paper_size: str
    verdict: str

    def __str__(self) -> str:
        return f"{', '.join(self.figures)}: {self.quick}"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def figure_names(text: str) -> Iterator[str]:
    """`35 to 39, table6` and `schedule-7, 8` as the names that `weft bench figure` takes."""
    prefix = ""
    for item in text.split(", "):
        if between := re.fullmatch(r"(\d+) to (\d+)", item):
            yield from map(str, range(int(between[1]), int(between[2]) + 1))
        elif item.isdigit():
            yield prefix + item
        else:
            prefix = item.rpartition("-")[0] + "-" if "-" in item else ""
            yield item


def comparisons() -> list[Comparison]:
    rows: list[Comparison] = []
    header: list[str] = []
    for line in FIGURES_PAGE.splitlines():
        if not line.startswith("|"):
            header = []
        elif not header:
            header = cells(line)
        elif "quick" in header and line.startswith("| "):
            row = dict(zip(header, cells(line), strict=True))
            names = tuple(figure_names(row["figure"]))
            rows.append(Comparison(names, row["quick"], row.get("paper's size", ""), row["verdict"]))
    return rows


def sections() -> dict[str, str]:
    """What the results say of each figure: its heading and its claims."""
    by_heading = dict(part.split("\n", 1) for part in re.split(r"^## ", RESULTS_PAGE, flags=re.MULTILINE)[1:])
    headings = {name: f"{figure.title} ({figure.source})" for name, figure in FIGURES.items()}
    return {name: f"{heading}\n{by_heading[heading]}" for name, heading in headings.items()}


def claims(section: str) -> list[str]:
    """Whether each claim agrees: yes, no or -; weft's own notes are no claims."""
    lines = [cells(line) for line in section.splitlines() if line.startswith("| ")][1:]
    return [line[-1] for line in lines if line[0] != "-"]


def numbers(text: str) -> set[float]:
    return {
        float(number.rstrip("K").replace(",", "")) * (1000 if number.endswith("K") else 1)
        for number in NUMBER.findall(text)
    }


COMPARISONS = comparisons()
SECTIONS = sections()


def test_the_pages_are_read_as_they_are_written() -> None:
    assert len(COMPARISONS) > 50
    assert {name for row in COMPARISONS for name in row.figures} == set(FIGURES)


@pytest.mark.parametrize("row", COMPARISONS, ids=str)
def test_quick_numbers_are_those_of_the_results(row: Comparison) -> None:
    there = numbers(" ".join(SECTIONS[name] for name in row.figures)) | numbers(" ".join(row.figures))
    # The results have costs relative to Shared, the figures' page has what is saved.
    there |= {round(100 * (1 - number)) for number in there if number <= 1}
    assert numbers(row.quick) <= there


@pytest.mark.parametrize("row", [row for row in COMPARISONS if row.verdict], ids=str)
def test_a_verdict_is_one_of_three_and_fits_the_results(row: Comparison) -> None:
    assert row.verdict.startswith(VERDICTS)
    for name in row.figures:
        verdicts = claims(SECTIONS[name])
        if re.match(r"agrees\b(?! at the paper's size)", row.verdict):
            assert "yes" in verdicts, name
        if row.verdict.startswith("differs") and not row.paper_size:
            assert "no" in verdicts, name


@pytest.mark.parametrize("name", [name for name in FIGURES if "no" in claims(SECTIONS[name])])
def test_a_claim_that_does_not_agree_is_not_called_agreeing(name: str) -> None:
    verdicts = [row.verdict for row in COMPARISONS if name in row.figures]
    assert [v for v in verdicts if v.startswith(("partly", "differs", "agrees at"))], verdicts


def test_verdicts_point_to_explanations() -> None:
    referenced = {int(n) for row in COMPARISONS for n in re.findall(r", (\d+)(?=;|$)", row.verdict)}
    explained = {int(n) for n in re.findall(r"^(\d+)\. \*\*", FIGURES_PAGE, re.MULTILINE)}
    assert referenced <= explained


def test_the_results_count_their_own_claims() -> None:
    verdicts = [verdict for section in SECTIONS.values() for verdict in claims(section)]
    counted = re.search(r"claims (\d+) agree, (\d+) do not, and these sizes cannot decide (\d+)", RESULTS_PAGE)
    assert counted is not None
    assert [int(n) for n in counted.groups()] == [verdicts.count(v) for v in ("yes", "no", "-")]
