"""Write golden checkpoints with the weft that is installed: `python write_checkpoint.py FOLDER`.

    rows/0000.parquet ...       the rows that every life reads, a file for each batch
    LIFE/queries.sql            the queries that the life was started with
    LIFE/life.json              its settings, how many files it has read, and what its answers must be compared with
    LIFE/state/                 its checkpoint, as the run left it, without Spark's checksums and trials
    LIFE/answers/               what it had answered by then

Only what users have is called here, so that the script runs with any version whose checkpoints are wanted. Spark notes
the full path of each file that it has read, and weft a digest of those notes. So that no path of the machine gets into
them, rows are read from `viewfs://golden/rows`, which each session mounts where its copy of the rows lies.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import weft

SOURCE = "viewfs://golden/rows"
SCHEMA = "ts TIMESTAMP, k STRING, region STRING, v INT, x DOUBLE, amount DECIMAL(9, 2), ok BOOLEAN"
BEGIN = 1_709_251_200_000_000
"""2024-03-01 00:00:00 UTC, in microseconds."""
SECONDS = 15
"""Of event time in a file; its rows are up to fifteen seconds late."""
FILES = 12
ROWS = 10

CHANGES = """
CREATE VIEW by_key AS SELECT k, window.start AS start, count(*) AS n, sum(v) AS total, avg(amount) AS mean,
    sum(amount) AS money, max(k) AS name FROM stream GROUP BY k, window(ts, '40 seconds', '30 seconds');
CREATE VIEW high AS SELECT k, window.start AS start, count(*) AS n, min(x) AS least FROM stream WHERE v > 60
    GROUP BY k, window(ts, '40 seconds', '30 seconds');
CREATE VIEW middle AS SELECT k, window.start AS start, count(*) AS n FROM stream WHERE v > 30 AND region = 'north'
    GROUP BY k, window(ts, '40 seconds', '30 seconds') HAVING count(*) > 1;
CREATE VIEW exact AS SELECT region, window.start AS start, median(v) AS half, percentile(v, 0.9) AS most,
    count(DISTINCT k) AS different, top_k_sum(k, v, 2) AS best
    FROM stream GROUP BY region, window(ts, '1 minute');
CREATE VIEW dropped AS SELECT region, window.start AS start, count(*) AS n FROM stream
    GROUP BY region, window(ts, '30 seconds');
CREATE VIEW replaced AS SELECT window.start AS start, count(*) AS n FROM stream WHERE v > 10
    GROUP BY window(ts, '50 seconds', '25 seconds');
CREATE VIEW lived AS SELECT k, window.start AS start, sum(v) AS total FROM stream
    GROUP BY k, window(ts, '40 seconds', '30 seconds') FOR 2 MINUTES;
CREATE VIEW ended AS SELECT region, window.start AS start, count(*) AS n FROM stream
    GROUP BY region, window(ts, '1 minute') UNTIL '2024-03-01 00:00:30';
"""
REPLACEMENT = "SELECT window.start AS start, count(*) AS n FROM stream WHERE v > 50 GROUP BY \
window(ts, '50 seconds', '25 seconds') HAVING count(*) > 6"
JOINED = "SELECT k, region, window.start AS start, max(v) AS top FROM stream WHERE ok = true \
GROUP BY k, region, window(ts, '20 seconds', '10 seconds')"
REACHING = (
    "SELECT k, window.start AS start, count(*) AS n FROM stream GROUP BY k, window(ts, '70 seconds', '30 seconds')"
)
PAST = "SELECT k, window.start AS start, sum(v) AS total, median(v) AS half FROM stream \
GROUP BY k, window(ts, '60 seconds', '30 seconds')"
WAITING = "SELECT window.start AS start, avg(v) AS mean FROM stream WHERE v > 10 \
GROUP BY window(ts, '40 seconds', '20 seconds')"
PENDING = (
    "SELECT k, window.start AS start, sum(v) AS total FROM stream GROUP BY k, window(ts, '40 seconds', '30 seconds')"
)
BRIEF = "SELECT region, window.start AS start, count(*) AS n FROM stream \
GROUP BY region, window(ts, '10 seconds', '5 seconds')"
KINDS = """
CREATE VIEW moments AS SELECT region, window.start AS start, stddev(x) AS spread, corr(x, v) AS together,
    skewness(x) AS skew, kurtosis(x) AS peak FROM stream
    GROUP BY region, window(ts, '1 minute', '30 seconds', '5 seconds');
CREATE VIEW sketched AS SELECT window.start AS start, approx_count_distinct(v) AS different,
    percentile_approx(v, 0.5) AS half, percentile_approx(x, 0.5) AS centre, approx_top_k(v * 0, 1) AS zeros,
    approx_top_k(abs(x * 0), 1) AS nothing, approx_top_k(substr(region, 1, 0), 1) AS empty
    FROM stream GROUP BY window(ts, '50 seconds', '25 seconds');
CREATE VIEW bits AS SELECT window.start AS start, bit_and(v) AS a, bit_or(v) AS b, bit_xor(v) AS c, bool_and(ok) AS d,
    first(v) AS e, last(region) AS f, max_by(k, x) AS g, count_if(ok) AS h FROM stream WHERE x > 0
    GROUP BY window(ts, '50 seconds', '25 seconds');
"""
UPDATES = """
CREATE VIEW by_key AS SELECT k, window.start AS start, count(*) AS n, sum(x) AS total FROM stream
    GROUP BY k, window(ts, '45 seconds');
CREATE VIEW few AS SELECT window.start AS start, count(*) AS n, median(v) AS half FROM stream
    GROUP BY window(ts, '20 seconds') HAVING count(*) < 13;
"""
AT_MOST = """
CREATE VIEW often AS SELECT k, window.start AS start, count(*) AS n, median(v) AS half
    FROM stream [RANGE 30 SECONDS SLIDE AT MOST 15 SECONDS] GROUP BY k;
CREATE VIEW seldom AS SELECT window.start AS start, max(v) AS top
    FROM stream [RANGE 45 SECONDS SLIDE AT MOST 30 SECONDS PRIORITY 2] WHERE v > 10;
"""
FAILED = """
CREATE VIEW mean AS SELECT region, window.start AS start, golden_mean(x * x + 1) AS mean FROM stream
    GROUP BY region, window(ts, '30 seconds', '15 seconds');
"""
SAME = {
    "golden_mean(x * x + 1)": "exp(avg(ln(x * x + 1)))",
    "approx_count_distinct(": "count(DISTINCT ",
    "first(v)": "min_by(v, ts)",
    "last(region)": "max_by(region, ts)",
}
"""What plain Spark is asked instead: sketches of so few values are exact, and its own `first` goes by no time."""
SPARK = {
    "exact": """SELECT region, start, half, most, different, best FROM (
  SELECT region, window.start AS start, median(v) AS half, percentile(v, 0.9) AS most, count(DISTINCT k) AS different
  FROM stream GROUP BY region, window(ts, '1 minute')) JOIN (
  SELECT region, start, slice(array_sort(collect_list(if(sum IS NULL OR item IS NULL, NULL, struct(item, sum))),
    (x, y) -> CASE WHEN x.sum > y.sum OR (x.sum = y.sum AND x.item < y.item) THEN -1 ELSE 1 END), 1, 2) AS best FROM (
    SELECT region, window.start AS start, k AS item, sum(v) AS sum FROM stream
    GROUP BY region, k, window(ts, '1 minute')) GROUP BY region, start) USING (region, start)""",
    "often": """SELECT k, window.start AS start, count(*) AS n, median(v) AS half FROM stream
  GROUP BY k, window(ts, '30 seconds', '15 seconds')""",
    "seldom": """SELECT window.start AS start, max(v) AS top FROM stream WHERE v > 10
  GROUP BY window(ts, '45 seconds', '15 seconds')""",
}
"""What plain Spark has no words for; of SLIDE AT MOST, all windows that may have been chosen."""

TOLD = (
    *("batch", "rows", "watermark", "late_by_query", "answers_by_query", "matched_by_query", "state_bytes_written"),
    *("refreshes", "refresh_runs", "refresh_shared_runs", "refreshes_by_query"),
)
"""Metrics that a restart finds in the checkpoint."""


class GoldenMean:
    """The geometric mean, as a user would bring it."""

    lift = ("sum(ln({0}))", "count({0})")
    identity = (0.0, 0.0)

    @staticmethod
    def combine(older: Any, newer: Any) -> Any:
        return older[0] + newer[0], older[1] + newer[1]

    @staticmethod
    def lower(logarithms: Any, count: Any) -> Any:
        return np.exp(logarithms / count)


class NamedSink:
    """Keeps the job's name and a file for each query and batch; fails instead where it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.job, self.fails = folder, "", False

    def begin(self, job: str) -> None:
        self.job = job

    def open(self, layout: Any) -> None:
        return

    def take(self, batch: int, answers: Mapping[str, pa.Table]) -> None:
        if self.fails:
            raise OSError("this sink is full")
        for name, table in answers.items():
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(table, self.folder / name / f"part-{batch:08d}.parquet", compression="lz4")


def mount(spark: Any, rows: Path) -> None:
    """Let `SOURCE` be the folder `rows`, for streams that this session begins from here on."""
    spark.conf.set("fs.viewfs.impl.disable.cache", "true")  # another life has its rows elsewhere
    spark.conf.set("fs.viewfs.mounttable.golden.link./rows", rows.as_uri())


def publish(file: Path, rows: Path) -> None:
    """A file appears among the rows whole, and aged by its number: Spark reads the oldest first."""
    beside, number = rows.parent / file.name, int(file.stem)
    shutil.copyfile(file, beside)
    os.utime(beside, (1_700_000_000 + number, 1_700_000_000 + number))
    beside.rename(rows / file.name)


def write_rows(folder: Path) -> None:
    folder.mkdir(parents=True)
    random = Random(3)
    for i in range(FILES):
        span = range((i - 1) * SECONDS * 1_000_000, (i + 1) * SECONDS * 1_000_000)
        table = pa.table(
            {
                "ts": pa.array([BEGIN + random.choice(span) for _ in range(ROWS)], pa.timestamp("us", "UTC")),
                "k": [random.choice(["ada", "bob", "käthe", "", None]) for _ in range(ROWS)],
                "region": [random.choice(["north", "south"]) for _ in range(ROWS)],
                "v": pa.array([random.choice([None, *range(100)]) for _ in range(ROWS)], pa.int32()),
                "x": [random.choice([None, *(random.gauss(2, 5) for _ in range(9))]) for _ in range(ROWS)],
                "amount": pa.array(
                    [Decimal(random.randrange(-999, 99_999)) / 100 for _ in range(ROWS)], pa.decimal128(9, 2)
                ),
                "ok": [random.choice([True, True, False, None]) for _ in range(ROWS)],
            }
        )
        pq.write_table(table, folder / f"{i:04d}.parquet", store_schema=False, write_statistics=False)


def latest(rows: Path) -> int:
    """The greatest event time of files that were published."""
    files = sorted(rows.glob("*.parquet"))
    return max(pc.max(pq.read_table(file).column("ts").cast(pa.int64())).as_py() for file in files)


@dataclass
class Life:
    """A run of some queries that is fed file by file. `notes` is what a test must know of it."""

    spark: Any
    golden: Path
    name: str
    queries: str
    settings: Mapping[str, Any]
    notes: dict[str, Any] = field(default_factory=dict)
    run: Any = None
    given: int = 0

    def __post_init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="weft-golden-"))
        self.rows, self.state, self.answers = (self.folder / part for part in ("rows", "state", "answers"))
        self.rows.mkdir()
        agreed = {n: v for n, v in self.settings.items() if n != "idle_timeout"}
        pieces = {q.name: [piece(q.name, q.text)] for q in weft.parse(self.queries)}
        self.notes |= {"settings": agreed, "answers": pieces}

    def start(self, sink: Any = None, **more: Any) -> None:
        mount(self.spark, self.rows)
        stream = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(SOURCE)
        job = weft.weave(stream, self.queries, **{**self.settings, **more})
        self.run = job.start(sink=sink or f"parquet:{self.answers}", checkpoint=self.state)

    def feed(self, files: int = 1) -> None:
        for _ in range(files):
            publish(self.golden / "rows" / f"{self.given:04d}.parquet", self.rows)
            self.given += 1
            self.run.query.processAllAvailable()

    def add(self, name: str, sql: str, **how: Any) -> None:
        self.run.add(f"CREATE VIEW {name} AS {sql}", **how)
        self.notes["answers"][name] = [piece(name, sql)]

    def bound(self, name: str, **limits: int | None) -> None:
        self.notes["answers"][name][-1].update(limits)

    def wait(self, done: Callable[[], Any]) -> None:
        begun = time.monotonic()
        while not done():
            if time.monotonic() - begun > 120:
                raise TimeoutError(f"{self.name} waits for what does not come")
            time.sleep(0.05)

    def read_past(self, name: str) -> None:
        self.wait(lambda: list(self.state.glob(f"replays/{name}-*/done.json")))

    def keep(self, read: int) -> None:
        """Put it with the golden files; `read` files more will be there when it goes on."""
        metrics = self.run.metrics()
        self.notes |= {
            "files": self.given + read,
            "read": self.given,
            "latest": latest(self.rows),
            "metrics": {name: metrics[name] for name in TOLD},
            "changes": self.run.changes(),
        }
        target = self.golden / self.name
        target.mkdir()
        for part in (self.state, self.answers):
            shutil.copytree(part, target / part.name, ignore=shutil.ignore_patterns(".*.crc", "_SUCCESS", "spark-*"))
        (target / "queries.sql").write_text(self.queries.lstrip())
        (target / "life.json").write_text(json.dumps(self.notes, indent=1, ensure_ascii=False) + "\n")
        shutil.rmtree(self.folder)


def changes(spark: Any, golden: Path) -> None:
    """Queries that come, go, and wait for their past; stopped with changes that no batch has taken up."""
    life = Life(spark, golden, "changes", CHANGES, {"watermark": "50 seconds", "retain": "30 seconds", "buckets": 2})
    life.start()
    life.feed(5)
    for name in ("lived", "ended"):
        life.bound(name, until=micros(life.run.until(name)))
    life.bound("dropped", until=life.run.watermark)
    life.bound("replaced", until=life.run.watermark)
    life.run.drop("dropped")
    life.run.replace("replaced", REPLACEMENT)
    life.notes["answers"]["replaced"].append(piece("replaced", REPLACEMENT))
    life.feed()
    life.bound("replaced", since=micros(life.run.since("replaced")))
    life.add("joined", JOINED)
    life.add("reaching", REACHING, since="state")
    life.feed()
    for name in ("joined", "reaching"):
        life.bound(name, since=micros(life.run.since(name)))
    life.add("past", PAST, since="source")
    life.feed()
    life.read_past("past")
    life.feed()
    life.add("waiting", WAITING, since="source", begin="2024-03-01 00:00:20")
    life.bound("waiting", since=BEGIN + 20_000_000)
    life.feed()
    life.read_past("waiting")
    life.bound("high", until=life.run.watermark)
    life.run.drop("high")
    life.add("pending", PENDING, since="state")
    life.add("brief", BRIEF, for_="40 seconds")
    life.bound("brief", since=latest(life.rows) + 1, until=latest(life.rows) + 1 + 40_000_000)
    life.run.stop()
    life.notes["members"] = life.run.queries()
    life.keep(read=2)


def kinds(spark: Any, golden: Path) -> None:
    """What each kind of aggregate keeps."""
    life = Life(spark, golden, "kinds", KINDS, {"watermark": "20 seconds", "buckets": 2})
    life.start()
    life.feed(2)
    life.run.stop()
    life.notes["members"] = life.run.queries()
    life.keep(read=2)


def updates(spark: Any, golden: Path) -> None:
    """Late rows change answers that were given, and batches without rows came while the stream was idle."""
    settings = {"watermark": "0 seconds", "late": "update", "lateness": "1 minute", "idle_timeout": "1 second"}
    life = Life(spark, golden, "updates", UPDATES, {**settings, "buckets": 2})
    life.start()
    life.feed(3)
    life.wait(lambda: life.run.metrics()["batch"] > 2)
    life.feed()
    life.run.stop()
    life.notes["members"] = life.run.queries()
    life.keep(read=2)


def at_most(spark: Any, golden: Path) -> None:
    """Queries that weft chooses the moments of, and state that was moved to other buckets."""
    life = Life(spark, golden, "at_most", AT_MOST, {"watermark": "20 seconds"})
    life.start(buckets=1)
    life.feed(2)
    life.run.stop()
    life.start(buckets=2)
    life.feed(5)
    life.run.stop()
    life.notes["members"] = life.run.queries()
    life.keep(read=2)


def failed(spark: Any, golden: Path) -> None:
    """Its sink failed in the batch that took in one query's past and a second query; it has a plan, and no record."""
    weft.register("golden_mean", GoldenMean)
    life = Life(spark, golden, "failed", FAILED, {"watermark": "20 seconds", "buckets": 2})
    sink = NamedSink(life.answers)
    life.start(sink)
    life.feed(2)
    life.add("past", PAST, since="source")
    life.feed()
    life.read_past("past")
    life.add("unread", WAITING, since="source")
    sink.fails = True
    try:
        life.feed()
    except Exception as error:
        if "this sink is full" not in str(error):
            raise
    else:
        raise AssertionError("the sink has not failed")
    for replay in life.state.glob("replays/unread-*"):  # as if it had been stopped before its past was read
        (replay / "done.json").unlink(missing_ok=True)
        shutil.rmtree(replay / "partials", ignore_errors=True)
    life.notes |= {"members": life.run.queries(), "job": sink.job}
    life.keep(read=2)


def piece(name: str, sql: str) -> dict[str, Any]:
    """A query that gives answers of this name, and what plain Spark is asked for them."""
    (query,) = weft.parse(sql)
    plain = SPARK.get(name, query.spark_sql)
    for ours, theirs in SAME.items():
        plain = plain.replace(ours, theirs)
    at_most = {"at_most": query.window.slide} if query.refresh != "exact" else {}
    return {"spark": plain, "length": query.window.length, **at_most}


def micros(instant: str | None) -> int | None:
    """Of a time as a run tells it, such as 2024-03-01T00:00:20.000000Z."""
    return None if instant is None else int(np.datetime64(instant.rstrip("Z"), "us").astype(int))


def main(folder: str) -> None:
    from weft.spark import local_session

    golden = Path(folder).resolve()
    write_rows(golden / "rows")
    # Spark's notes of batches that nobody will repeat are most of what it writes.
    settings = {"spark.driver.memory": "1g", "spark.sql.streaming.minBatchesToRetain": "2"}
    spark = local_session({"spark.master": "local[2]", **settings})
    for write in (changes, kinds, updates, at_most, failed):
        write(spark, golden)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
