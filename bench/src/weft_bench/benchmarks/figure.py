"""`weft bench figure NAME`: run a figure of the papers, and print and draw it beside what the papers say."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft_bench.benchmark import BadSetting, Benchmark, Report, Say, integer, option
from weft_bench.figures import FIGURES
from weft_bench.figures.figure import Claim, Figure, Scale
from weft_bench.machine import describe_machine, load
from weft_bench.output.charts import to_file, to_page, to_text
from weft_bench.output.tables import show_rows

if TYPE_CHECKING:
    from rich.console import Console

SIZES = ("quick", "full")

SUMMARY = {
    "figure": "its number in the papers",
    "title": "what it shows",
    "source": "where it stands in the papers",
    "claims": "what the papers say, what we see, and whether the two agree (null: the sizes that were run cannot tell)",
    "agree": "claims that agree",
    "differ": "claims that do not agree; docs/figures.md says why",
    "load": "load average at the start: above the number of cores, other processes affect the times",
    "drawn": "the file that the drawing was written to",
}


def a_figure(text: str) -> str:
    if text not in FIGURES:
        raise BadSetting(f"there is no figure {text!r}; choose one of {', '.join(FIGURES)}")
    return text


def a_size(text: str) -> str:
    if text not in SIZES:
        raise BadSetting(f"sizes are quick or full, not {text!r}")
    return text


def a_file(text: str) -> str:
    if Path(text).suffix not in (".svg", ".html"):
        raise BadSetting(f"{text!r} is neither an .svg nor an .html file")
    return text


@dataclass(frozen=True, slots=True)
class FigureSettings:
    name: str = option("4", "Which figure.", parse=a_figure, metavar="NAME", argument=True)
    sizes: str = option("full", "The papers' sizes, or small ones.", quick="quick", parse=a_size, metavar="SIZES")
    repeat: int = option(3, "Workloads per point, which shows their mean.", quick=2)
    budget: int = option(60, "Seconds that one way of counting may take at one point.", quick=3)
    seed: int = option(1, "Seed of the first workload; the others have the next numbers.", parse=integer)
    draw: str = option("", "Write the drawing to this .svg or .html file.", parse=a_file, metavar="FILE")


def run(settings: FigureSettings, say: Say) -> Report:
    figure, busy = FIGURES[settings.name], load()
    scale = Scale(settings.sizes == "quick", settings.repeat, settings.seed, settings.budget)
    rows = figure.rows(scale, say)
    claims = figure.claims(rows)
    if settings.draw:
        _draw(figure, rows, claims, Path(settings.draw))
    summary = {
        "figure": figure.name,
        "title": figure.title,
        "source": figure.source,
        "claims": [asdict(claim) for claim in claims],
        "agree": sum(claim.agrees is True for claim in claims),
        "differ": sum(claim.agrees is False for claim in claims),
        "load": busy,
        "drawn": settings.draw or None,
    }
    return Report("figure", describe_machine(), asdict(settings), rows, summary)


def _draw(figure: Figure, rows: list[dict[str, Any]], claims: list[Claim], file: Path) -> None:
    charts = figure.charts(rows)
    if file.suffix == ".svg" and not charts:
        raise BadSetting(f"{figure.source} is a table; draw it to an .html file")
    table = [("the papers", "here", "agrees"), *((c.paper, c.ours, agrees_in_words(c.agrees)) for c in claims)]
    title = f"{figure.title} ({figure.source})"
    # One file holds one picture; the page holds all.
    text = to_file(charts[0]) if file.suffix == ".svg" else to_page(title, charts, table)
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadSetting(f"{file}: {error.strerror}; name a file that can be written") from error


def agrees_in_words(agrees: bool | None) -> str:
    return "-" if agrees is None else "yes" if agrees else "no"


def show(report: Report, console: Console) -> None:
    from rich.table import Table

    figure = FIGURES[report.summary["figure"]]
    console.print(f"{figure.title}   ({figure.source})", style="bold", highlight=False)
    show_rows(report.rows, console)
    for chart in figure.charts(report.rows):
        console.print()
        console.print(to_text(chart), highlight=False, markup=False)
    console.print()
    beside = Table("the papers", "here", "agrees", box=None, pad_edge=False)
    for claim in report.summary["claims"]:
        beside.add_row(claim["paper"], claim["ours"], agrees_in_words(claim["agrees"]))
    console.print(beside)


FIGURE = Benchmark(
    name="figure",
    about="one figure of the papers, printed and drawn beside what they say: " + ", ".join(FIGURES),
    summary=SUMMARY,
    settings=FigureSettings,
    run=run,
    show=show,
)
