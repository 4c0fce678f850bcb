"""Workloads as the papers draw them: what the parameters do, and that what is written reads back."""

from __future__ import annotations

from statistics import mean

import pytest
from typer.testing import CliRunner

from weft.cli import app
from weft.optimizer.paper_workloads import SLIDES, InvalidShape, Shape, generate, to_sql
from weft.sql import parse

SECOND = 1_000_000


@pytest.mark.parametrize("slides", SLIDES)
@pytest.mark.parametrize("unit", [SECOND, 100_000])
def test_what_is_written_reads_back(slides: str, unit: int) -> None:
    workload = generate(Shape(number=40, maximum_slide=500, slides=slides, unit=unit))
    assert parse(to_sql(workload)) == tuple(workload)


def test_the_seed_decides() -> None:
    assert to_sql(generate(Shape(seed=5))) == to_sql(generate(Shape(seed=5))) != to_sql(generate(Shape(seed=6)))


def test_slides_are_all_numbers_primes_or_factors() -> None:
    assert list(SLIDES["normal"](4)) == [4, 3, 2, 1]
    assert list(SLIDES["diverse"](12)) == [11, 7, 5, 3, 2]
    assert list(SLIDES["factors"](12)) == [12, 6, 4, 3, 2, 1]


def test_skew_makes_long_slides_frequent_and_below_zero_short_ones() -> None:
    def middle(skew: float) -> float:
        return mean(q.window.slide for q in generate(Shape(number=500, maximum_slide=1000, skew=skew, slides="normal")))

    assert middle(-1) < middle(0) < middle(1) < middle(100) == 1000 * SECOND
    assert middle(0) == pytest.approx(500 * SECOND, rel=0.1)


def test_overlap_is_between_one_and_its_maximum() -> None:
    overlaps = [q.window.length / q.window.slide for q in generate(Shape(number=500, maximum_overlap=20))]
    assert min(overlaps) >= 1
    assert max(overlaps) <= 20.5  # ranges are whole seconds
    assert mean(overlaps) == pytest.approx(10.5, rel=0.1)
    assert all(q.window.length == q.window.slide for q in generate(Shape(maximum_overlap=1)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"number": 0}, "number must be at least 1, got 0"),
        ({"maximum_slide": -3}, "maximum slide must be at least 1"),
        ({"maximum_overlap": 0.5}, "maximum overlap must be at least 1"),
        ({"rate": -1}, "rate must be at least 0"),
        ({"slides": "odd"}, "no 'odd' slides; choose one of normal, diverse, factors"),
        ({"slides": "diverse", "maximum_slide": 1}, "give a maximum slide of at least 2"),
    ],
)
def test_what_no_workload_can_have_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidShape, match=reason):
        Shape(**changes)  # type: ignore[arg-type]


def test_the_command_prints_a_file_that_can_be_planned() -> None:
    printed = CliRunner().invoke(app, ["generate", "--number", "5", "--rate", "2.5", "--slides", "diverse"])
    assert printed.exit_code == 0
    assert printed.stdout.startswith("-- 5 queries, diverse slides to 3600 s")
    assert len(parse(printed.stdout)) == 5
    planned = CliRunner().invoke(app, ["plan", "-", "--rate", "2.5", "--strategy", "auto"], input=printed.stdout)
    assert planned.stdout.startswith("Plan  auto  ")
    refused = CliRunner().invoke(app, ["generate", "--number", "0"])
    assert (refused.exit_code, refused.stderr) == (2, "number must be at least 1, got 0\n")
