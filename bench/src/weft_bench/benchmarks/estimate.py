"""`weft bench estimate`: plans of dissertation section 7.3.3, their estimated and their actual time on Spark.

One plan for each optimizer and technique, over the queries of table 13: the middle of all experiments of table 12. The
papers estimate by operations per second, weft also by seconds, with weights that are measured in the same run (--quick
takes those of `weft calibrate`). Only batches after the longest range count: before, windows are not full and cost
less than any formula says.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.calibration.file import load_weights
from weft.calibration.weights import Weights
from weft.optimizer.cost.seconds import Stream, estimate
from weft.optimizer.paper_workloads import Shape, generate
from weft_bench.benchmark import BadSetting, Benchmark, Report, Row, Say, integer, option
from weft_bench.figures.techniques import COMPARED, MIDDLE, OPTIMIZERS
from weft_bench.machine import describe_machine, load
from weft_bench.output.charts import Chart, to_page, to_svg, to_text
from weft_bench.output.tables import show_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from weft.calibration.measure.events import Events
    from weft.model import Workload

PAPER = {"weave_share": 31, "tri_weave": 14}
"""Percent by which estimated and actual throughput of figures 47 and 48 differ on average, the largest made equal."""

AGGREGATES = {"slick_deque_non_inv": "max(v)"}
"""SlickDeque (Inv) wants something that can be subtracted, SlickDeque (Non-Inv) something that selects."""

MEASURED = 4
"""Batches that count, after the longest window is full."""

SUMMARY = {
    "plans": "that were run",
    **{f"{name}_operations_deviation_percent":
       f"{name}: 1 / operations against actual throughput, the largest made equal; the dissertation: {paper}"
       for name, paper in PAPER.items()},
    **{f"{name}_seconds_deviation_percent": f"{name}: the same where seconds are estimated" for name in PAPER},
    "seconds_error_percent": "by how much estimated and actual seconds differ, on average, nothing made equal",
    "same_fastest": "whether the optimizer and technique that seconds call fastest is among the three fastest",
    "weights": "seconds that a batch, a query, a row, a partial, a kept one, an operation and an answer took",
    "weights_off": "by how much the batches that they were read from differ from what they say; null: they were kept",
    "drawn": "the file that the drawing was written to",
}  # fmt: skip


def a_drawing(text: str) -> str:
    if Path(text).suffix not in (".svg", ".html"):
        raise BadSetting(f"{text!r} is neither an .svg nor an .html file")
    return text


def a_way(text: str) -> str:
    if text not in ("measured", "kept"):
        raise BadSetting(f"weights are measured or kept, not {text!r}")
    return text


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    queries: int = option(MIDDLE.number, "Queries of table 13.", quick=30)
    overlap: int = option(
        1_000, "Range over slide at most; table 13 has 10,000, which fills in 10 million s.", quick=50
    )
    slide: int = option(MIDDLE.maximum_slide, "The longest slide, in seconds.", quick=200)
    rate: int = option(1, "Rows per second.")
    batch: int = option(50_000, "Seconds of stream per batch.", quick=2_000)
    seed: int = option(1, "Of the queries and the rows.", parse=integer)
    weights: str = option(
        "measured",
        "Measured in this run, or those kept by `weft calibrate`, measured where there are none.",
        quick="kept",
        parse=a_way,
        metavar="WAY",
    )
    draw: str = option("", "Write the drawing to this .svg or .html file.", parse=a_drawing, metavar="FILE")

    @property
    def shape(self) -> Shape:
        return Shape(
            number=self.queries,
            maximum_slide=self.slide,
            rate=Fraction(self.rate),
            skew=MIDDLE.skew,
            maximum_overlap=self.overlap,
            slides=MIDDLE.slides,
            seed=self.seed,
        )


def run(settings: EstimateSettings, say: Say) -> Report:
    from weft.calibration.measure.events import make_events
    from weft.spark import local_session

    spark = local_session()
    weights, off = find_weights(spark, settings, say)
    workload = generate(settings.shape)
    longest = max(query.window.length for query in workload) // 1_000_000
    batches = -(-longest // settings.batch) + MEASURED
    folder = Path(tempfile.mkdtemp(prefix="weft-estimate-"))
    rows: list[Row] = []
    try:
        made = {"keys": 1, "rate": settings.rate, "files": batches, "seed": settings.seed}
        say(f"making {batches} batches of {settings.batch * settings.rate:,} rows")
        events = make_events(spark, folder / "rows", rows=settings.batch * settings.rate * batches, **made)
        for optimizer in OPTIMIZERS:
            for technique in COMPARED:
                say(f"{optimizer}, {technique}")
                rows.append(_run(settings, workload, events, weights, (optimizer, technique)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if settings.draw:
        _draw(rows, Path(settings.draw))
    read = {"weights": asdict(weights), "weights_off": off, "drawn": settings.draw or None}
    summary = summarise(rows) | read
    return Report("estimate", describe_machine(), asdict(settings), rows, summary)


def find_weights(spark: SparkSession, settings: EstimateSettings, say: Say) -> tuple[Weights, dict[str, float] | None]:
    """The weights, and how far off they are where they are measured here."""
    from weft.calibration.measure.weights import calibrate

    kept = load_weights() if settings.weights == "kept" else None
    if kept is not None:
        return kept, None
    fitted = calibrate(spark, say, of_values=())
    return fitted.weights, dict(fitted.mean_errors)


def _run(settings: EstimateSettings, workload: Workload, events: Events, weights: Weights, way: tuple[str, str]) -> Row:
    """`way` is an optimizer and a technique."""
    from weft.spark import local_session, weave

    (optimizer, technique), busy = way, load()
    aggregate = AGGREGATES.get(technique, "count(v)")
    queries = [
        f"SELECT window, {aggregate} AS x FROM events GROUP BY "
        f"window(ts, '{q.window.length} microseconds', '{q.window.slide} microseconds')"
        for q in workload
    ]
    stream = events.stream(local_session(), events.files)
    job = weave(stream, queries, rate=settings.rate, strategy=optimizer, technique=technique)
    checkpoint = events.folder.parent / f"{optimizer}-{technique}"
    job_run = job.start(sink="noop", checkpoint=checkpoint, available_now=True)
    job_run.wait()
    shutil.rmtree(checkpoint, ignore_errors=True)
    batches = job_run.batches()[-MEASURED:]
    taken = sum(m.seconds for m in batches) / (len(batches) * settings.batch)
    expected = estimate(job.plan, weights, Stream(batch_seconds=settings.batch))
    return {
        "optimizer": optimizer,
        "series": technique,
        "trees": len(job.plan.trees),
        "operations": float(job.plan.cost),
        "estimated_seconds": expected.seconds,
        "actual_seconds": taken,
        "answers_a_second": sum(m.answers for m in batches) / sum(m.seconds for m in batches),
        "operations_a_second": float(job.plan.cost) / taken,
        "load": busy,
    }


def deviation(estimated: Sequence[float], actual: Sequence[float]) -> float:
    """By how many percent two lines of throughputs differ on average, after their largest are made equal.

    >>> deviation([4.0, 2.0], [100.0, 25.0])      # 1 and 1/2 against 1 and 1/4: off by 0 and by 100 %
    50.0
    """
    pairs = zip([e / max(estimated) for e in estimated], [a / max(actual) for a in actual], strict=True)
    return 100 * sum(abs(e / a - 1) for e, a in pairs) / len(actual)


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    summary: dict[str, Any] = {"plans": len(rows)}
    for name in PAPER:
        of = [row for row in rows if row["optimizer"] == name]
        actual = [1 / row["actual_seconds"] for row in of]
        for kind, term in (("operations", "operations"), ("seconds", "estimated_seconds")):
            summary[f"{name}_{kind}_deviation_percent"] = deviation([1 / row[term] for row in of], actual)
    off = [abs(row["estimated_seconds"] / row["actual_seconds"] - 1) for row in rows]
    summary["seconds_error_percent"] = 100 * sum(off) / len(off)
    fastest = min(rows, key=lambda row: row["estimated_seconds"])
    summary["same_fastest"] = fastest in sorted(rows, key=lambda row: float(row["actual_seconds"]))[:3]
    return summary


def charts(rows: Sequence[Row]) -> list[Chart]:
    """For each optimizer throughput over the techniques, in their order, the largest of each line as 1."""
    drawn = []
    for name in dict.fromkeys(row["optimizer"] for row in rows):
        of = [row for row in rows if row["optimizer"] == name]
        lines = {"actual": "actual_seconds", "by operations": "operations", "by seconds": "estimated_seconds"}
        series = {}
        for line, term in lines.items():
            least = min(row[term] for row in of)
            series[line] = [(float(i), least / row[term]) for i, row in enumerate(of, 1)]
        order = ", ".join(f"{i} {row['series']}" for i, row in enumerate(of, 1))
        drawn.append(Chart(f"{name}: throughput, the largest is 1", order, "throughput", series))
    return drawn


def _draw(rows: Sequence[Row], file: Path) -> None:
    drawn = charts(rows)
    # One file holds one picture; the page holds all.
    text = to_svg(drawn[0]) if file.suffix == ".svg" else to_page("Estimated and actual throughput", drawn, [])
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadSetting(f"{file}: {error.strerror}; name a file that can be written") from error


def show(report: Report, console: Console) -> None:
    show_rows(report.rows, console)
    for chart in charts(report.rows):
        console.print()
        console.print(to_text(chart), highlight=False, markup=False)
    console.print()
    for name, value in report.summary.items():
        shown = f"{value:.1f}" if isinstance(value, float) else value
        console.print(f"{name}  {shown}  {SUMMARY[name]}", highlight=False, markup=False)


ESTIMATE = Benchmark(
    name="estimate",
    about="plans run on Spark, and what they were estimated to take (dissertation, section 7.3.3)",
    summary=SUMMARY,
    settings=EstimateSettings,
    run=run,
    show=show,
)
