"""`weft bench report`: every figure of the papers, run and drawn into a folder, with what the papers say beside."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from weft_bench.benchmark import BadSetting, Benchmark, Report, Row, Say, integer, option, words
from weft_bench.benchmarks.figure import a_figure, a_size, agrees_in_words
from weft_bench.figures import FIGURES
from weft_bench.figures.figure import Claim, Figure, Scale
from weft_bench.machine import describe_machine, load
from weft_bench.output.charts import to_file

PAGE = "results.md"
PICTURES = "results"

SUMMARY = {
    "figures": "figures and tables that were run",
    "claims": "what the papers say of them",
    "agree": "claims that agree",
    "differ": "claims that do not agree; docs/figures.md says why",
    "undecided": "claims that the sizes that were run cannot tell",
    "page": "the page that was written",
}


def some_figures(text: str) -> tuple[str, ...]:
    return tuple(map(a_figure, words(text)))


@dataclass(frozen=True, slots=True)
class ReportSettings:
    out: str = option("report", "The folder that page and pictures are written to.", parse=str, metavar="DIR")
    only: tuple[str, ...] = option((), "Some figures, with commas between them.", parse=some_figures, metavar="NAMES")
    sizes: str = option("full", "The papers' sizes, or small ones.", quick="quick", parse=a_size, metavar="SIZES")
    repeat: int = option(3, "Workloads per point, which shows their mean.", quick=1)
    budget: int = option(60, "Seconds that one way of counting may take at one point.", quick=2)
    seed: int = option(1, "Seed of the first workload; the others have the next numbers.", parse=integer)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure with its result."""

    figure: Figure
    claims: Sequence[Claim]
    pictures: Sequence[str]
    seconds: float

    def count(self, agrees: bool | None) -> int:
        return sum(claim.agrees is agrees for claim in self.claims if not claim.is_note)


def run(settings: ReportSettings, say: Say) -> Report:
    folder = Path(settings.out)
    try:
        (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSetting(f"{folder}: {error.strerror}; name a folder that can be written") from error
    scale = Scale(settings.sizes == "quick", settings.repeat, settings.seed, settings.budget)
    figures: list[Drawn] = []
    rows: list[Row] = []
    for name in settings.only or tuple(FIGURES):
        say(f"{FIGURES[name].source}: {FIGURES[name].title}")
        drawn = _draw(FIGURES[name], scale, folder, say)
        figures.append(drawn)
        rows.append(
            {"figure": name, "source": drawn.figure.source, "agree": drawn.count(True), "differ": drawn.count(False),
             "undecided": drawn.count(None), "seconds": drawn.seconds, "load": load()}
        )  # fmt: skip
        # After each figure, so that a report that is stopped has the figures so far.
        (folder / PAGE).write_text(to_markdown(figures, settings), encoding="utf-8")
    total = {word: sum(row[word] for row in rows) for word in ("agree", "differ", "undecided")}
    summary = {"figures": len(figures), "claims": sum(total.values()), **total, "page": str(folder / PAGE)}
    return Report("report", describe_machine(), asdict(settings), rows, summary)


def _draw(figure: Figure, scale: Scale, folder: Path, say: Say) -> Drawn:
    begun = time.monotonic()
    rows = figure.rows(scale, say)
    pictures = []
    for number, chart in enumerate((chart for chart in figure.charts(rows) if chart.drawable), 1):
        name = f"{PICTURES}/{figure.name}{'' if number == 1 else f'-{number}'}.svg"
        (folder / name).write_text(to_file(chart), encoding="utf-8")
        pictures.append(name)
    return Drawn(figure, figure.claims(rows), pictures, time.monotonic() - begun)


def to_markdown(figures: Sequence[Drawn], settings: ReportSettings) -> str:
    """The page: all figures in a table, then each with its pictures and what the papers say beside the result."""
    agree, differ, unclear = (sum(drawn.count(which) for drawn in figures) for which in (True, False, None))
    lines = [
        "# Results",
        "",
        f"Figures and tables of the papers as weft draws them, with {settings.sizes} sizes, seed {settings.seed}, and "
        f"{'one workload' if settings.repeat == 1 else f'the mean of {settings.repeat} workloads'} per point. Of the "
        f"papers' claims {agree} agree, {differ} do not, and these sizes cannot decide {unclear}; "
        "[the papers' figures](figures.md) gives the reasons. "
        f"`weft bench report{' --quick' if settings.sizes == 'quick' else ''} --out docs` writes this page; "
        "`weft bench figure NAME` runs one figure.",
        "",
        "| figure | what it shows | agrees | differs | cannot tell |",
        "|---|---|---|---|---|",
    ]
    for drawn in figures:
        counts = " | ".join(str(drawn.count(which)) for which in (True, False, None))
        lines.append(f"| {drawn.figure.source} | {drawn.figure.title} | {counts} |")
    for drawn in figures:
        lines += ["", f"## {drawn.figure.title} ({drawn.figure.source})", ""]
        lines += [f"![{drawn.figure.title}]({picture})\n" for picture in drawn.pictures]
        lines += ["| the papers | here | agrees |", "|---|---|---|"]
        lines += [f"| {_cell(c.paper)} | {_cell(c.ours)} | {agrees_in_words(c.agrees)} |" for c in drawn.claims]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


REPORT = Benchmark(
    name="report",
    about="every figure of the papers on one page, drawn, with theirs beside",
    summary=SUMMARY,
    settings=ReportSettings,
    run=run,
)
