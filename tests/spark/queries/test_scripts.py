"""Any script of joins, from the source too, leaves, stops and crashes: each query gives the rows of plain Spark for the
windows of its time, once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.compare import assert_same_rows
from tests.support.soak import SOAK
from tests.support.streams import BEGIN, Stream, expected, first_window, settle
from weft.spark.queries.validate import CannotChange

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FIRST = "CREATE VIEW first AS SELECT k, window.start AS start, count(*) AS n, sum(v) AS total \
FROM stream GROUP BY k, window(ts, '30 seconds', '7 seconds')"
TEXTS = (
    "SELECT k, window.start AS start, max(v) AS top, sum(v) AS total \
FROM stream GROUP BY k, window(ts, '20 seconds', '4 seconds')",
    "SELECT k, window.start AS start, count(*) AS n FROM stream GROUP BY k, window(ts, '14 seconds', '7 seconds')",
    "SELECT k, window.start AS start, avg(v) AS mean FROM stream WHERE v > 10 GROUP BY k, window(ts, '1 minute')",
    "SELECT v % 3 AS third, window.start AS start, count(*) AS n, min(v) AS least \
FROM stream GROUP BY v % 3, window(ts, '21 seconds', '7 seconds')",
)
PATIENCE = 300.0


@dataclass
class Registered:
    """A query, and the windows that it is to answer."""

    name: str
    text: str
    how: str = "now"
    begin: int | None = None
    answered: bool = True
    """Whether a batch has taken it up, with its past."""
    until: int | None = None


@dataclass
class Script:
    """A job, and who is and was in it."""

    stream: Stream
    run: Any = None
    present: dict[str, Registered] = field(default_factory=dict)
    gone: list[Registered] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def start(self) -> None:
        self.run = self.stream.start(FIRST)

    def rows(self, files: int) -> None:
        self.stream.write(files)
        settle(self.run)

    def join(self, text: int, how: str, seconds: int | None) -> None:
        name = f"q{next(self.numbers)}"
        begin = None if seconds is None or how != "source" else BEGIN + seconds * 1_000_000
        said = None if begin is None else f"2024-03-01 00:{seconds // 60:02d}:{seconds % 60:02d}"
        self.run.add(f"CREATE VIEW {name} AS {TEXTS[text]}", since=how, begin=said)
        self.present[name] = Registered(name, TEXTS[text], how, begin)

    def leave(self, place: int) -> None:
        names = [name for name in self.present if name != "first"]
        if not names:
            return
        settle(self.run)  # what it has answered by now is all
        left = self.present.pop(names[place % len(names)])
        self._look(left)
        left.until = self.run.checkpoint.batches.newest().watermark
        self.run.drop(left.name)
        self.gone.append(left)

    def stop(self) -> None:
        self.run.stop()
        self.start()

    def crash(self, files: int) -> None:
        """In the middle of a batch, most often: nothing is waited for, and nobody says goodbye."""
        self.stream.write(files)
        time.sleep(0.3)
        self.run.query.stop()
        self.run.stop()  # its threads would not outlive a process
        self.start()

    def _look(self, registered: Registered) -> None:
        """What it sees, as the job says; one from the source sees what was asked for."""
        try:
            since = first_window(self.run, registered.name)
            registered.answered = registered.name not in self.run.metrics()["waiting"]
        except CannotChange:
            registered.answered = False
        else:
            if registered.how != "source":
                registered.begin = since

    def end(self) -> None:
        begun = time.monotonic()
        self.rows(1)
        while self.run.metrics()["waiting"]:
            assert time.monotonic() - begun < PATIENCE, self.run.changes()
            self.rows(1)
        for registered in self.present.values():
            self._look(registered)
            assert registered.answered
        self.run.drain()
        for registered in (*self.present.values(), *self.gone):
            found = self.stream.answers(registered.name)
            wanted = expected(self.stream, registered.text, since=registered.begin, until=registered.until)
            wanted = wanted if registered.answered else wanted.slice(0, 0)
            assert_same_rows(found, wanted, key=(0, 1), text=f"{registered}, {self.run.changes()}")


joins = st.tuples(
    st.just("join"), st.integers(0, len(TEXTS) - 1), st.sampled_from(["source", "source", "state", "now"]),
    st.none() | st.integers(0, 90),
)  # fmt: skip
leaves = st.tuples(st.just("leave"), st.integers(0, 5))
stops = st.tuples(st.just("stop"))
crashes = st.tuples(st.just("crash"), st.integers(0, 2))
rows = st.tuples(st.just("rows"), st.integers(1, 2))


@settings(
    derandomize=True, deadline=None, max_examples=3 * SOAK, phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(st.lists(joins | leaves | stops | crashes | rows, min_size=6, max_size=9))
def test_any_script_with_joins_from_the_source_gives_the_rows_of_plain_spark(spark: Any, script: list[Any]) -> None:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        job = Script(Stream(spark, Path(folder)))
        job.present["first"] = Registered("first", FIRST)
        job.start()
        job.rows(2)
        try:
            for what, *arguments in script:
                getattr(job, what)(*arguments)
            job.end()
        finally:
            if job.run.active:
                job.run.stop()
