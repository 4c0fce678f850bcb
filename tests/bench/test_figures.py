"""The papers' figures: which there are, what they refuse, and that a small one runs, prints and draws."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from weft.cli import app
from weft.optimizer.edge_counting import exact
from weft.optimizer.placement import OPTIMIZERS
from weft_bench.benchmark import Row
from weft_bench.benchmarks.auto import AutoSettings
from weft_bench.benchmarks.auto import run as run_auto
from weft_bench.figures import FIGURES, Scale, placement
from weft_bench.figures.edge_counting import EXPERIMENTS, counters, weave
from weft_bench.figures.placement import Ran, breakdown_claims, experiments, quality, quality_claims
from weft_bench.figures.sharing import draw, plan
from weft_bench.output.charts import Chart, to_page, to_svg, to_text

runner = CliRunner()
TINY = Scale(quick=True, repeat=1, seed=1, budget=1)


def quiet(text: str) -> None:
    pass


def test_every_figure_of_the_papers_is_there() -> None:
    paper_1 = [str(n) for n in (*range(4, 12), 14)]
    dissertation = [str(n) for n in (*range(34, 40), *range(42, 49))]
    paper_5 = [f"phantoms-{n}" for n in (7, 8, 11, *range(15, 28))]
    paper_4 = [f"schedule-{n}" for n in range(5, 9)]
    chapter_6 = ["p3-40", "p3-41", "table9", "table10"]
    tables = ["table6", "table12", "table13", *chapter_6]
    assert sorted(FIGURES) == sorted([*paper_1, *dissertation, *tables, *paper_4, *paper_5])


@pytest.mark.parametrize("name", ["7", "14", "34", "43", "47", "p3-41", "phantoms-8", "phantoms-17", "phantoms-22"])
def test_a_figure_has_points_and_says_what_the_papers_say(name: str) -> None:
    figure = FIGURES[name]
    rows = figure.rows(TINY, quiet)
    assert all(figure.x in row and figure.y in row for row in rows)
    claims = figure.claims(rows)
    assert claims
    assert all(claim.paper and claim.ours for claim in claims)
    for chart in figure.charts(rows):
        assert to_svg(chart).count("<polyline") == len(chart.series)


def test_the_command_prints_the_papers_beside_ours_and_draws(tmp_path: Path) -> None:
    page = tmp_path / "figure.html"
    done = runner.invoke(app, ["bench", "figure", "34", "--quick", "--draw", str(page)])
    assert done.exit_code == 0, done.stderr
    assert "Operations to count edges, by number of slides   (dissertation, figure 34)" in done.stdout
    assert "the bit set's operations grow as e**n" in done.stdout
    assert "o bit set   x F1" in done.stdout
    assert "<svg" in page.read_text()
    assert "http" not in page.read_text().replace("http://www.w3.org/2000/svg", "")
    found = json.loads(runner.invoke(app, ["bench", "figure", "34", "--quick", "--json"]).stdout)
    assert (found["summary"]["figure"], found["summary"]["differ"], found["summary"]["drawn"]) == ("34", 0, None)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["99"], "there is no figure '99'; choose one of 4, 5, 6"),
        (["34", "--sizes", "huge"], "sizes are quick or full"),
        (["34", "--draw", "figure.png"], "neither an .svg nor an .html file"),
        (["34", "--draw", "missing/figure.svg"], "name a file that can be written"),
    ],
)
def test_what_cannot_be_drawn_is_refused(words: list[str], reason: str) -> None:
    refused = runner.invoke(app, ["bench", "figure", *words])
    assert refused.exit_code == 2
    assert reason in refused.stderr


def test_weaving_with_any_counter_gives_the_trees_of_weave_share() -> None:
    workload = draw(3, 15)
    expected = len(plan("weave_share", workload, 40).trees)
    assert 1 < expected < 15
    for density in (*counters().values(), exact.density):
        assert weave(workload, plan("no_share", workload, 40).rate, density, seconds=60) == expected


def test_the_experiments_are_those_of_table_5() -> None:
    found = [(e.shape.number, e.shape.maximum_slide, float(e.shape.rate), e.shape.slides) for e in EXPERIMENTS[1:]]
    assert found == [
        (1000, 100, 1, "diverse"),
        (1000, 100, 1, "normal"),
        (50, 500, 0.1, "normal"),
        (1000, 600, 1, "diverse"),
    ]


def test_a_cell_of_table_9_agrees_where_both_of_its_numbers_are_near() -> None:
    def row(series: str, name: str, best: float, behind: float, beats: float = 50, behind_rival: float = 50) -> Row:
        cells = {"best": best, "behind": behind, "beats_rival": beats, "behind_rival": behind_rival, "quality": 0.0}
        return {"series": series, "optimizer": name, **{f"{name}_percent": number for name, number in cells.items()}}

    rows = [row("maximum", "wg_i", 60, 7, 72, 4), row("maximum", "wg_tn", 12, 171), row("maximum", "knee", 0, 0)]
    rows += [row("total", "wg_i", 20, 9), row("total", "wg_tn", 100, 0), row("total", "knee", 0, 0)]
    assert [claim.agrees for claim in breakdown_claims(rows)] == [True, False, False, True]
    said = {claim.paper: claim.ours for claim in quality_claims(rows)}
    against = "60 %, else 7.0 % behind; better than WG_TN in 72 %, else 4.0 % behind"
    assert said["WG_I is best in maximum cost in 80 %, else 3 % behind"] == against


def test_of_wg_i_and_wg_tn_the_cheaper_wins_and_behind_is_a_share_of_ones_own_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ran(wg_i: float, wg_tn: float) -> tuple[Ran, ...]:
        costs = {"wg_i": wg_i, "wg_tn": wg_tn}
        return tuple(Ran(name, 2 - (name == "g_rr"), costs.get(name, 10), 0) for name in (*OPTIMIZERS, "knee"))

    maxima = [ran(1, 4), ran(2, 2), ran(1, 2), ran(4, 3)]
    monkeypatch.setattr(placement, "experiments", lambda scale, say: maxima)
    rows = {row["optimizer"]: row for row in quality(TINY, quiet) if row["series"] == "maximum"}
    one, other = rows["wg_i"], rows["wg_tn"]
    assert (one["best_percent"], one["behind_percent"]) == (75, 25)
    assert (one["beats_rival_percent"], one["behind_rival_percent"]) == (50, 12.5)  # a tie is no win, and 0 % behind
    assert (other["best_percent"], other["behind_percent"]) == (50, 62.5)
    assert (other["beats_rival_percent"], other["behind_rival_percent"]) == (25, pytest.approx(125 / 3))


@pytest.mark.slow
def test_costs_of_placements_are_means_over_workloads() -> None:
    def of(seed: int, repeat: int) -> list[float]:
        found = experiments(Scale(quick=True, repeat=repeat, seed=seed, budget=1), quiet)
        return [one.maximum for one in found[0]]

    each = [of(seed, 1) for seed in (1, 2)]
    assert of(1, 2) == [pytest.approx((one + other) / 2) for one, other in zip(*each, strict=True)]
    assert each[0] != each[1]


def test_auto_is_never_worse_and_the_summary_says_so() -> None:
    report = run_auto(AutoSettings(workloads=3, small=3, most=16), quiet)
    summary: dict[str, Any] = dict(report.summary)
    assert (summary["worse"], summary["workloads"], summary["small_workloads"]) == (0, 3, 3)
    assert summary["auto_optima_percent"] == 100
    assert summary["mean_gain_percent"] >= summary["mean_gain_own_percent"] >= 0
    assert 0 <= summary["weave_share_gap_percent"] <= summary["weave_share_worst_percent"]


# Charts.


def test_a_chart_in_letters_has_its_points_in_place() -> None:
    text = to_text(Chart("Title", "x", "y", {"up": [(0, 0), (10, 10)], "flat": [(0, 5), (10, 5)]}))
    lines = text.splitlines()
    assert lines[0] == "Title"
    assert lines[2].rstrip().endswith("o")
    assert "       10 |" in lines[2]
    assert text.splitlines()[-1] == "  o up   x flat"


def test_what_a_logarithm_cannot_show_is_left_out() -> None:
    chart = Chart("t", "x", "y", {"some": [(0, 1), (10, 0), (10, 100)], "none": [(0, 0)]}, log_x=True, log_y=True)
    assert to_svg(chart).count("<circle") == 1
    assert "nothing to draw" in to_svg(Chart("t", "x", "y", {}))
    assert "nothing to draw" in to_text(Chart("t", "x", "y", {}))


def test_a_page_escapes_what_it_shows() -> None:
    page = to_page("<b>", [Chart("<i>", "<x>", "<y>", {"<s>": [(1, 1), (2, 2)]})], [["<h>"], ["<d>"]])
    assert not any(tag in page for tag in ("<b>", "<i>", "<x>", "<y>", "<s>", "<d>"))


def test_the_report_has_a_picture_and_the_papers_words_for_each_figure(tmp_path: Path) -> None:
    done = runner.invoke(app, ["bench", "report", "--quick", "--json", "--only", "34,p3-41", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    summary = found["summary"]
    assert (summary["figures"], [row["figure"] for row in found["rows"]]) == (2, ["34", "p3-41"])
    assert summary["claims"] == summary["agree"] + summary["differ"] + summary["undecided"] > 0
    page = Path(summary["page"]).read_text()
    assert page.startswith("# Results")
    pictures = re.findall(r"!\[.*\]\((.+)\)", page)
    assert "results/34.svg" in pictures
    assert all((tmp_path / picture).read_text().startswith("<svg") for picture in pictures)
    assert "the bit set's operations grow as e\\*\\*n" in page


def test_a_report_of_a_figure_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = runner.invoke(app, ["bench", "report", "--only", "34,none", "--out", str(tmp_path / "made")])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no figure 'none'" in done.stderr
    assert not (tmp_path / "made").exists()
