"""State written per batch: it should grow with the batch, not with the window."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, option
from weft_bench.machine import PeakMemory, describe_machine, load

if TYPE_CHECKING:
    from weft.calibration.measure.events import Events
    from weft.spark import Run

LONG, SHORT = "1 hour", "1 minute"
SLIDE = "1 second"
LOOK_SECONDS = 0.1
WARM_BATCHES = 2

SUMMARY = {
    "state_bytes_per_row_first_quarter": "bytes of state and records written for a row, 1-hour range, first quarter",
    "state_bytes_per_row_last_quarter": "the same for the last quarter",
    "growth": "last quarter over first: 1 if the bytes written do not depend on the state that is kept",
    "growth_mean": "last half over first, means: they include what is not written in every batch",
    "hour_over_minute": "bytes written per batch for a 1-hour range over those for a 1-minute range, medians",
    "hour_over_minute_mean": "the same of the means",
    "kept_bytes_hour": "state kept after the last batch, 1-hour range",
    "kept_bytes_minute": "state kept after the last batch, 1-minute range",
    "batch_seconds_hour_first_quarter": "median time of a batch, 1-hour range",
    "batch_seconds_hour_last_quarter": "the same for the last quarter",
    "batch_seconds_minute_last_quarter": "the same for a 1-minute range",
    "peak_memory_bytes": "peak memory of the driver (Python and JVM) and the Python workers",
}


@dataclass(frozen=True, slots=True)
class StateSettings:
    batches: int = option(72, "Micro-batches; with the default step, one hour and a fifth of event time.", quick=16)
    step: int = option(60, "Seconds of event time in a batch.", quick=8)
    rate: int = option(5_000, "Rows per second of event time.", quick=1_000)
    keys: int = option(10_000, "Different group keys.")
    seed: int = option(1, "Of the rows.", parse=integer)


def run(settings: StateSettings, say: Say) -> Report:
    from weft.calibration.measure.events import make_events
    from weft.spark import local_session

    spark = local_session()
    folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    rows: list[Row] = []
    memory: list[dict[str, int | None]] = []
    try:
        a_batch = settings.step * settings.rate
        say(f"making {a_batch * settings.batches:,} rows with {settings.keys:,} keys")

        def events(name: str, batches: int) -> Events:
            made = {"keys": settings.keys, "rate": settings.rate, "files": batches, "seed": settings.seed}
            return make_events(spark, folder / name, rows=a_batch * batches, **made)

        small, all_rows = events("small", WARM_BATCHES), events("all", settings.batches)
        say("warming up")
        _stream(spark, small, LONG, folder / "warm", lambda _: None)
        for length in (LONG, SHORT):
            say(f"range {length}, slide {SLIDE}")
            with PeakMemory() as peak:
                rows += _stream(spark, all_rows, length, folder / length.replace(" ", "-"), say)
            memory.append(peak.as_row())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    peaks = [sum(v for v in m.values() if v is not None) for m in memory if None not in m.values()]
    summary = {**summarise(rows), "peak_memory_bytes": max(peaks, default=None)}
    return Report("state", describe_machine(), asdict(settings), rows, summary)


def _stream(spark: Any, events: Events, length: str, checkpoint: Path, say: Say) -> list[Row]:
    """One batch per file. Not drained: open windows are not answered at the end."""
    from weft.spark import weave

    sql = f"SELECT k, window, sum(v) AS x FROM events GROUP BY k, window(ts, '{length}', '{SLIDE}')"
    stream = events.stream(spark, batches=events.files)
    busy = load()
    running = weave(stream, [sql], rate=events.rate).start(sink="noop", checkpoint=checkpoint, available_now=True)
    kept = _watch(running, say)
    return [
        {
            "range": length,
            "batch": m.batch,
            "rows": m.rows,
            "partials": m.partials,
            "answers": m.answers,
            "state_bytes": m.state_bytes + m.record_bytes,
            "record_bytes": m.record_bytes,
            "state_bytes_per_row": (m.state_bytes + m.record_bytes) / m.rows if m.rows else None,
            "kept_bytes": kept.get(m.batch),
            "seconds": m.seconds,
            "load": busy,
        }
        for m in running.batches()
    ]


def _watch(running: Run, say: Say) -> dict[int, int]:
    """Bytes of state that are kept after each batch, read from its record while the run goes on."""
    kept: dict[int, int] = {}
    reported = time.monotonic()
    while True:
        ended = running.wait(LOOK_SECONDS)
        record = running.checkpoint.batches.newest()
        if not record.is_initial:
            kept[record.batch] = sum(s.bytes for segments in record.segments.values() for s in segments)
            if time.monotonic() - reported > 5:
                say(f"  batch {record.batch}  {record.state_bytes:,} bytes written  {kept[record.batch]:,} kept")
                reported = time.monotonic()
        if ended:
            return kept


def ends(rows: Sequence[Row], parts: int) -> tuple[list[Row], list[Row]]:
    """The first and the last of equal parts of the batches, at least one batch each.

    Some things are written every few batches: a quarter may have none of them, a half has its share.
    """
    size = max(1, len(rows) // parts)
    return list(rows[:size]), list(rows[-size:])


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    hour, minute = ([r for r in rows if r["range"] == length and r["rows"]] for length in (LONG, SHORT))
    first, last = ends(hour, 4)
    first_half, last_half = ends(hour, 2)
    _, last_minute = ends(minute, 4)

    def middle(some: Sequence[Row], what: str) -> float:
        return float(median(r[what] for r in some))

    def mean(some: Sequence[Row], what: str) -> float:
        return fmean(r[what] for r in some)

    per_row = "state_bytes_per_row"
    return {
        "state_bytes_per_row_first_quarter": middle(first, per_row),
        "state_bytes_per_row_last_quarter": middle(last, per_row),
        "growth": middle(last, per_row) / middle(first, per_row),
        "growth_mean": mean(last_half, per_row) / mean(first_half, per_row),
        "hour_over_minute": middle(hour, "state_bytes") / middle(minute, "state_bytes"),
        "hour_over_minute_mean": mean(hour, "state_bytes") / mean(minute, "state_bytes"),
        "kept_bytes_hour": hour[-1]["kept_bytes"],
        "kept_bytes_minute": minute[-1]["kept_bytes"],
        "batch_seconds_hour_first_quarter": middle(first, "seconds"),
        "batch_seconds_hour_last_quarter": middle(last, "seconds"),
        "batch_seconds_minute_last_quarter": middle(last_minute, "seconds"),
    }


STATE = Benchmark(
    name="state",
    about="bytes of state written per batch for a 1-hour range in 1-second slices, and for a 1-minute range",
    summary=SUMMARY,
    settings=StateSettings,
    run=run,
)
