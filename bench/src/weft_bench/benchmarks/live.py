"""Queries that join and leave a running job: how long a change takes, how good the amended plan stays, how soon a
stopped job answers again.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

from weft.model import ACQ
from weft.optimizer import TECHNIQUES, Cost, optimize
from weft.sql import parse
from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, option
from weft_bench.data.queries import BenchQuery, make_queries
from weft_bench.incremental_planning import IncrementalPlan, add, begin, delete
from weft_bench.machine import describe_machine, load

if TYPE_CHECKING:
    from weft.calibration.measure.events import Events

SUMMARY = {
    "add_milliseconds": "from adding a query until its plan and physical plan are ready, median",
    "add_milliseconds_most": "the longest",
    "batches_until_seen": "batches from then until one has taken the query up; 1: the next one",
    "change_over_plain": "seconds of a batch that takes up a change over one that does not, medians",
    "mended_over_scratch": "cost of the plan after all changes over that of one made from scratch",
    "mended_over_scratch_most": "the greatest on the way, where both were made",
    "made_from_scratch": "how often the tolerance had all queries replanned on the way",
    "mend_milliseconds": "planning a change alone, median over all of them",
    "kept_gigabytes": "state in the checkpoint that a job begins again from",
    "recovery_seconds": "from `start` until its first batch is answered, Spark's own start of the stream in it",
}


@dataclass(frozen=True, slots=True)
class LiveSettings:
    queries: int = option(1_000, "Queries in the job that one more is added to.", quick=50)
    changes: int = option(12, "Changes of the running job.", quick=3)
    keys: int = option(100, "Different group keys.")
    rate: int = option(10_000, "Rows per second of event time.", quick=2_000)
    mended: int = option(1_000, "Queries that are added one by one; half of them are dropped again.", quick=100)
    tolerance: str = option(
        "0.1", "By what share an amended plan may cost above the curve.", parse=str, metavar="SHARE"
    )
    gigabytes: str = option("1", "State to begin again from.", quick="0.02", parse=str, metavar="GIB")
    seed: int = option(1, "Of rows, queries and changes.", parse=integer)


def run(settings: LiveSettings, say: Say) -> Report:
    folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    summary: dict[str, Any] = dict.fromkeys(SUMMARY)
    rows: list[Row] = []
    try:
        for measure in (_amending, _changes, _recovery):
            for row in measure(settings, folder, summary, say):
                rows.append({**row, "load": load()})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Report("live", describe_machine(), asdict(settings), rows, summary)


def _amending(settings: LiveSettings, folder: Path, summary: dict[str, Any], say: Say) -> Iterator[Row]:
    """The optimizer alone: queries are added one by one, then half of them dropped at random."""
    random, tolerance = Random(settings.seed), Fraction(settings.tolerance)
    cost, rate = Cost(TECHNIQUES["auto"]), Fraction(settings.rate)
    queries = [_acq(q) for q in make_queries(settings.mended, settings.seed)]
    first, rest = queries[:10], queries[10:]
    leaving = [q.name for q in random.sample(queries, len(queries) // 2)]
    current, seconds, replans, worst = begin(first, rate, cost, "tri_weave"), [], 0, 1.0
    say(f"adding {len(rest)} queries to a plan one by one, and dropping {len(leaving)}")
    steps: list[tuple[Callable[..., IncrementalPlan], ACQ | str]] = [
        *((add, q) for q in rest),
        *((delete, n) for n in leaving),
    ]
    for number, (change, query) in enumerate(steps, 1):
        begun = time.perf_counter()
        current = change(current, [query], cost, tolerance)
        seconds.append(time.perf_counter() - begun)
        replans += current.replanned
        if number % max(1, len(steps) // 10) == 0 or number == len(steps):
            scratch = optimize(current.plan.workload, rate=rate, strategy="tri_weave").cost
            ratio = float(current.plan.cost / scratch)
            worst = max(worst, ratio)
            yield {"what": "mended", "changes": number, "queries": len(current.plan.workload), "over_scratch": ratio,
                   "made_from_scratch": replans, "milliseconds": 1e3 * median(seconds)}  # fmt: skip
    summary |= {"mended_over_scratch": ratio, "mended_over_scratch_most": worst, "made_from_scratch": replans,
                "mend_milliseconds": 1e3 * median(seconds)}  # fmt: skip


def _changes(settings: LiveSettings, folder: Path, summary: dict[str, Any], say: Say) -> Iterator[Row]:
    """A real job: every other batch takes up a query that was added just before it."""
    from weft.calibration.measure.events import make_events
    from weft.spark import local_session, weave

    spark, batches = local_session(), 2 * settings.changes + 2
    say(f"a job of {settings.queries:,} queries, {settings.changes} more added while it runs")
    events = make_events(
        spark, folder / "made", rows=10 * settings.rate * batches, keys=settings.keys, rate=settings.rate,
        files=batches, seed=settings.seed,
    )  # fmt: skip
    queries = make_queries(settings.queries + settings.changes, settings.seed)
    files = _FileFeed(events, folder / "live")
    running = weave(
        files.stream(spark), [_named(q) for q in queries[: settings.queries]], rate=settings.rate,
        tolerance=float(settings.tolerance),
    ).start(sink="noop", checkpoint=folder / "changes")  # fmt: skip
    plain: list[float] = []
    changed: list[float] = []
    added: list[float] = []
    waited: list[int] = []
    for number in range(batches):
        change = queries[settings.queries + (number - 2) // 2] if number >= 2 and number % 2 else None
        if change is not None:
            added.append(_add(running, change))
        before = running.metrics()["batch"]
        files.next()
        running.query.processAllAvailable()
        seconds = running.query.lastProgress["durationMs"]["addBatch"] / 1e3
        if change is not None:
            running.since(change.name)  # refused where no batch has taken it up
            waited.append(running.metrics()["batch"] - before)
        if number >= 2:  # the first ones start workers and load what is compiled
            (plain if change is None else changed).append(seconds)
        yield {"what": "batch", "batch": number, "added": change and change.name, "seconds": seconds,
               "add_milliseconds": change and 1e3 * added[-1]}  # fmt: skip
    running.stop()
    summary |= {"add_milliseconds": 1e3 * median(added), "add_milliseconds_most": 1e3 * max(added),
                "batches_until_seen": max(waited), "change_over_plain": median(changed) / median(plain)}  # fmt: skip


def _add(running: Any, query: BenchQuery) -> float:
    """Seconds until the run has taken the query."""
    begun = time.perf_counter()
    running.add(_named(query))
    return time.perf_counter() - begun


def _recovery(settings: LiveSettings, folder: Path, summary: dict[str, Any], say: Say) -> Iterator[Row]:
    """A job with much state is stopped, and started again in the same session."""
    from weft.calibration.measure.events import make_events
    from weft.spark import local_session, weave

    spark = local_session()
    wanted = int(float(settings.gigabytes) * 2**30)
    rows = max(200_000, wanted // BYTES_A_ROW)
    say(f"making {rows:,} rows for {settings.gigabytes} GiB of state")
    a_file = min(1_000_000, rows // 10)
    events = make_events(
        spark, folder / "many", rows=rows + a_file, keys=10_000, rate=rows // 3_600, files=rows // a_file + 1,
        seed=settings.seed,
    )  # fmt: skip
    files = _FileFeed(events, folder / "state-rows")
    sums = ", ".join(f"sum({f}(v)) AS {f}" for f in ("sqrt", "sin", "cos", "log1p"))
    sql = f"SELECT k, window, {sums} FROM events GROUP BY k, window(ts, '2 hours', '1 second')"
    job = weave(files.stream(spark, 1), [sql], rate=events.rate)
    running = job.start(sink="noop", checkpoint=folder / "recovery")
    for number in range(events.files - 1):
        files.next()
        if number % 10 == 9 or number == events.files - 2:
            running.query.processAllAvailable()
            record = running.checkpoint.batches.newest()
            kept = sum(s.bytes for segments in record.segments.values() for s in segments)
            say(f"  {kept / 2**30:.2f} GiB kept after {number + 1} of {events.files - 1} files")
    running.stop()
    # Python workers remember the state of a folder that they have seen; under another name they must read it.
    moved = (folder / "recovery").rename(folder / "recovered")
    files.next()
    begun = time.perf_counter()
    again = weave(files.stream(spark, 1), [sql], rate=events.rate).start(sink="noop", checkpoint=moved)
    while not again.batches():
        again.wait(0.02)
    seconds = time.perf_counter() - begun
    phases = again.batches()[0].phases
    again.stop()
    summary |= {"kept_gigabytes": kept / 2**30, "recovery_seconds": seconds}
    yield {"what": "recovery", "kept_bytes": kept, "seconds": seconds, **{f"phase {k}": v for k, v in phases.items()}}


BYTES_A_ROW = 26
"""Bytes of state per row, if nearly every row has its own slice and group."""


class _FileFeed:
    """Rows that are made already come to a stream file by file."""

    def __init__(self, events: Events, folder: Path) -> None:
        folder.mkdir()
        self._events = events
        self._folder = folder
        self._left = sorted(events.folder.glob("part-*.parquet"))

    def stream(self, spark: Any, files_a_batch: int = 1) -> Any:
        from weft.calibration.measure.events import SCHEMA

        return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files_a_batch).parquet(str(self._folder))

    def next(self) -> None:
        self._left[0].rename(self._folder / self._left[0].name)
        del self._left[0]


def _named(query: BenchQuery) -> str:
    return f"CREATE VIEW {query.name} AS {query.sql}"


def _acq(query: BenchQuery) -> ACQ:
    return parse(query.sql, name=query.name)[0]


LIVE = Benchmark(
    name="live",
    about="queries added to a running job of a thousand, plans amended a thousand times, and recovery",
    summary=SUMMARY,
    settings=LiveSettings,
    run=run,
)
