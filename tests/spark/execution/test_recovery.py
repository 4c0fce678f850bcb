"""Killed, refused by a disk or a sink: after a restart every answer is there, once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.compare import assert_same_rows
from tests.support.killing import assert_answers, live, plain
from tests.support.resumable import JOINING, JOINING_BEGIN, QUERIES, SCHEMA
from tests.support.soak import KILLS, SOAK
from tests.support.streams import write_rows
from weft.spark import RunFailed, weave
from weft.spark.checkpoint.checkpoint import CHECKPOINT_VERSION
from weft.spark.checkpoint.files import CheckpointFileError, CheckpointMismatch
from weft.spark.checkpoint.verify import check_checkpoint
from weft.spark.sinks.base import OtherColumns
from weft.sql import parse

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.timeout(120 * KILLS)
def test_killed_at_random_moments_the_sink_holds_every_row_once(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=5 * KILLS, rows=40)
    random = Random(11)
    kills = sum(not live(tmp_path, random.randint(1, 4), random.uniform(0, 1)) for _ in range(KILLS))
    assert kills == KILLS, "a life that was not cut short tested nothing"
    assert live(tmp_path, None, 0)
    assert_answers(spark, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1200 * SOAK)
def test_killed_at_random_moments_while_queries_read_the_source_again_they_hold_every_row_once(
    spark: Any, tmp_path: Path
) -> None:
    kills = 3 * SOAK
    write_rows(tmp_path / "rows", files=6 * kills, rows=40)
    random = Random(13)
    lives = [live(tmp_path, random.randint(2, 4), random.uniform(0, 1.5), "source") for _ in range(kills)]
    assert not any(lives), "a life that was not cut short tested nothing"
    assert live(tmp_path, None, 0, "source")
    assert_answers(spark, tmp_path)
    for name, text in JOINING.items():
        begin = JOINING_BEGIN[name]
        wanted = plain(spark, tmp_path).sql(parse(text)[0].spark_sql).where(f"start >= '{begin or '2000-01-01'}'")
        found = spark.read.parquet(str(tmp_path / "answers" / name)).toArrow()
        assert_same_rows(found, wanted.toArrow(), key=(0, 1) if name == "past" else (0,), text=text)


def start(spark: Any, folder: Path, sink: Any = None, queries: str = QUERIES, watermark: str = "20 seconds") -> Any:
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    job = weave(stream, queries, watermark=watermark)
    return job.start(sink=sink or f"parquet:{folder / 'answers'}", checkpoint=folder / "state", available_now=True)


def test_a_sink_that_fails_stops_the_run_and_a_restart_repeats_the_batch(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=6, rows=30)
    taken: dict[int, int] = {}

    def take(batch: int, answers: Any) -> None:
        taken[batch] = sum(t.num_rows for t in answers.values())

    def broken(batch: int, answers: Any) -> None:
        if batch == 3:
            raise OSError("the cable is out")
        take(batch, answers)

    for ended in ("wait", "drain"):
        run = start(spark, tmp_path, broken)
        with pytest.raises(RunFailed, match="the cable is out"):
            getattr(run, ended)()
        assert sorted(taken) == [0, 1, 2]
    run = start(spark, tmp_path, take)
    run.wait()
    run.drain()
    assert sorted(taken) == [0, 1, 2, 3, 4, 5, 6]
    assert sum(taken.values()) == run.metrics()["answers"]


def test_a_folder_that_cannot_be_written_stops_the_run_and_a_restart_repairs_it(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=5, rows=30)
    run = start(spark, tmp_path)
    by_key = tmp_path / "answers" / "by_key"
    by_key.rename(tmp_path / "aside")
    by_key.write_text("a file stands where the folder was")
    with pytest.raises(RunFailed, match=r"by_key.* could not be written.*start again, nothing is lost"):
        run.wait()
    by_key.unlink()
    (tmp_path / "aside").rename(by_key)
    run = start(spark, tmp_path)
    run.wait()
    run.drain()
    assert_answers(spark, tmp_path)


PAGE = 4096
MakeDisk = Callable[[Path, int], None]


@pytest.fixture
def make_disk() -> Iterator[MakeDisk]:
    """A disk of so many pages at a folder; made again at the same one, it has other room and what was on it."""
    mounted: list[Path] = []

    def make(folder: Path, pages: int) -> None:
        size, again = f"size={pages * PAGE}", folder in mounted
        folder.mkdir(exist_ok=True)
        command = ["-o", f"remount,{size}", str(folder)] if again else ["-t", "tmpfs", "-o", size, "tmpfs", str(folder)]
        done = subprocess.run(["mount", *command], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip("the tests with a full disk mount a small one: run as root with CAP_SYS_ADMIN")
        if not again:
            mounted.append(folder)

    yield make
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


MAKE_ROOM = "the disk is full.*; make room and start again, nothing is lost"


def test_a_full_disk_stops_the_run_with_a_clear_error_and_a_restart_repairs_it(
    spark: Any, tmp_path: Path, make_disk: MakeDisk
) -> None:
    write_rows(tmp_path / "rows", files=12, rows=60)
    make_disk(tmp_path / "answers", 10)
    with pytest.raises(RunFailed, match=MAKE_ROOM):
        start(spark, tmp_path).wait()
    make_disk(tmp_path / "answers", 2000)
    run = start(spark, tmp_path)
    run.wait()
    run.drain()
    assert_answers(spark, tmp_path)


def test_a_disk_without_room_for_late_rows_stops_the_run_too(spark: Any, tmp_path: Path, make_disk: MakeDisk) -> None:
    write_rows(tmp_path / "rows", files=3, rows=30)
    late, aside = tmp_path / "rows" / "0002.parquet", tmp_path / "aside"
    pq.write_table(pa.concat_tables([pq.read_table(tmp_path / "rows" / "0000.parquet")] * 200), late)
    os.utime(late, (1_700_000_009, 1_700_000_009))
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "rows"))
    job = weave(stream, QUERIES, watermark="1 second", late="side")

    def ended() -> None:
        job.start(sink="noop", checkpoint=tmp_path / "state", late_sink=f"parquet:{aside}", available_now=True).wait()

    make_disk(aside, 1)
    with pytest.raises(RunFailed, match=MAKE_ROOM):
        ended()
    make_disk(aside, 2000)
    ended()
    assert spark.read.parquet(str(aside)).count() > 0


@pytest.mark.slow
def test_whatever_write_to_the_checkpoint_finds_its_disk_full_a_restart_with_more_room_goes_on(
    spark: Any, tmp_path: Path, make_disk: MakeDisk
) -> None:
    """A few pages more of room for each life: one after another, other files are the first without any."""
    write_rows(tmp_path / "rows", files=3, rows=30)
    stopped: list[str] = []
    for pages in range(2, 500, 3 if SOAK == 1 else 1):
        make_disk(tmp_path / "state", pages)
        try:
            run = start(spark, tmp_path)
            run.wait()
            run.drain()
        except (RunFailed, CheckpointFileError) as error:
            stopped.append(str(error))
        else:
            break
    assert [said for said in stopped if not re.search(MAKE_ROOM, said)] == []
    assert [kind for kind in ("batches/", "Spark") if not any(kind in said for said in stopped)] == []
    assert_answers(spark, tmp_path)
    assert check_checkpoint(str(tmp_path / "state"), CHECKPOINT_VERSION).sound


def pages_taken(disk: Path) -> int:
    found = os.statvfs(disk)
    return (found.f_blocks - found.f_bfree) * found.f_frsize // PAGE


@pytest.mark.slow
def test_a_segment_without_room_stops_the_run_and_a_restart_with_more_goes_on(
    spark: Any, tmp_path: Path, make_disk: MakeDisk
) -> None:
    state, rows = tmp_path / "state", tmp_path / "rows"
    make_disk(state, 2000)
    write_rows(rows, files=2, rows=30)
    later = (rows / "0001.parquet").rename(tmp_path / "0001.parquet")
    start(spark, tmp_path).wait()
    many = pa.concat_tables([pq.read_table(later)] * 200)  # each row with a key of its own
    keys = pa.array([f"key {i}" for i in range(many.num_rows)])
    pq.write_table(many.set_column(1, "k", keys), rows / later.name)
    make_disk(state, pages_taken(state) + 40)  # Spark's notes take a few of them, the plan that goes on another few
    with pytest.raises(RunFailed, match=rf"{state}/segments/.* could not be written: {MAKE_ROOM}"):
        start(spark, tmp_path).wait()
    make_disk(state, 2000)
    run = start(spark, tmp_path)
    run.wait()
    run.drain()
    assert_answers(spark, tmp_path)


LONG = f"v NOT IN ({', '.join(str(n) for n in range(1000, 3000))})"  # its text alone takes three pages
MANY = ";".join(
    f"CREATE VIEW more{i} AS SELECT k, window.start AS start, sum(v) AS total FROM stream "
    f"WHERE {LONG} AND v <> {100 + i} GROUP BY k, window(ts, '{10 + i} seconds')"
    for i in range(6)
)


@pytest.mark.slow
def test_a_plan_without_room_keeps_the_job_from_starting_and_with_more_it_starts(
    spark: Any, tmp_path: Path, make_disk: MakeDisk
) -> None:
    write_rows(tmp_path / "rows", files=2, rows=30)
    make_disk(tmp_path / "state", 10)
    with pytest.raises(CheckpointFileError, match=rf"state/plans/00000000.json could not be written: {MAKE_ROOM}"):
        start(spark, tmp_path, queries=QUERIES + MANY)
    make_disk(tmp_path / "state", 2000)
    run = start(spark, tmp_path, queries=QUERIES + MANY)
    run.wait()
    run.drain()
    assert_answers(spark, tmp_path)


def start_and_go_on(spark: Any, folder: Path) -> Any:
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    run = weave(stream, QUERIES, watermark="20 seconds").start(
        sink=f"parquet:{folder / 'answers'}", checkpoint=folder / "state"
    )
    run.query.processAllAvailable()
    return run


@pytest.mark.slow
def test_a_plan_of_those_who_join_without_room_stops_the_run_and_a_restart_has_them_all(
    spark: Any, tmp_path: Path, make_disk: MakeDisk
) -> None:
    state = tmp_path / "state"
    write_rows(tmp_path / "rows", files=3, rows=30)
    last = (tmp_path / "rows" / "0002.parquet").rename(tmp_path / "0002.parquet")
    make_disk(state, 2000)
    run = start_and_go_on(spark, tmp_path)
    names = run.add(MANY)
    make_disk(state, pages_taken(state) + 10)
    last.rename(tmp_path / "rows" / last.name)
    with pytest.raises(RunFailed, match=rf"state/plans/00000002.json could not be written: {MAKE_ROOM}"):
        run.wait(60)
    make_disk(state, 2000)
    run = start_and_go_on(spark, tmp_path)
    assert run.queries()[3:] == names
    run.drain()
    assert_answers(spark, tmp_path)


def test_a_query_that_a_full_disk_keeps_from_joining_joins_when_there_is_room(
    spark: Any, tmp_path: Path, make_disk: MakeDisk
) -> None:
    state, query = tmp_path / "state", f"CREATE VIEW past AS {JOINING['past']}"
    write_rows(tmp_path / "rows", files=4, rows=30)
    last = (tmp_path / "rows" / "0003.parquet").rename(tmp_path / "0003.parquet")
    make_disk(state, 2000)
    run = start_and_go_on(spark, tmp_path)
    there = run.queries()
    make_disk(state, pages_taken(state))
    with pytest.raises(CheckpointFileError, match=rf"state/asked/00000001.json could not be written: {MAKE_ROOM}"):
        run.add(query, since="source")
    assert (run.queries(), run.metrics()["waiting"], run.checkpoint.files.names("asked")) == (there, [], [])
    make_disk(state, 2000)
    last.rename(tmp_path / "rows" / last.name)
    run.query.processAllAvailable()
    assert [c["reason"] for c in run.changes()] == ["woven"]
    assert run.add(query, since="source") == ["past"]
    run.drain()
    assert_answers(spark, tmp_path)
    found = spark.read.parquet(str(tmp_path / "answers" / "past")).toArrow()
    wanted = plain(spark, tmp_path).sql(parse(query)[0].spark_sql).toArrow()
    assert wanted.num_rows
    assert_same_rows(found, wanted, key=(0, 1), text=query)


def test_another_watermark_on_a_checkpoint_is_refused(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=1, rows=10)
    start(spark, tmp_path).wait()
    with pytest.raises(CheckpointMismatch, match="was made with watermark 20000000, not 30000000"):
        start(spark, tmp_path, watermark="30 seconds")


def test_a_query_with_other_columns_under_an_old_name_is_refused(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=1, rows=10)
    start(spark, tmp_path).wait()
    with pytest.raises(OtherColumns, match=r"answers/overall.* holds answers of other columns.*another name"):
        start(spark, tmp_path, queries=QUERIES.replace("avg(v) AS mean", "avg(v) AS middle"))


def test_rows_after_a_drain_are_refused(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=2, rows=10)
    run = start(spark, tmp_path)
    run.wait()
    run.drain()
    again = start(spark, tmp_path)
    again.wait()
    again.drain()
    time.sleep(0.01)
    pq.write_table(pq.read_table(tmp_path / "rows" / "0000.parquet"), tmp_path / "rows" / "9999.parquet")
    with pytest.raises(RunFailed, match="was drained"):
        start(spark, tmp_path).wait()


@pytest.mark.slow
def test_the_state_that_a_batch_writes_does_not_grow_with_the_window(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=24, rows=50)
    queries = "SELECT k, count(*) AS n FROM stream GROUP BY k, window(ts, '1 hour', '1 second')"
    run = start(spark, tmp_path, "noop", queries)
    run.wait()
    named = {s.path for found in run.checkpoint.batches.newest().segments.values() for s in found}
    there = {str(path.relative_to(tmp_path / "state")) for path in (tmp_path / "state" / "segments").rglob("*.arrow")}
    assert there == named, "a file that no record names is never read again"
    written = [batch.state_bytes for batch in run.batches()]
    plain = sorted(written)[: len(written) * 3 // 4]  # a batch in eight also merges small segments
    assert max(plain) < 2 * min(plain)


@pytest.mark.parametrize(
    ("removed", "said"),
    [("spark", "goes on with batch 0, but the records .* end with batch 2"), ("batches", "batch 3, .* end with none")],
)
def test_a_checkpoint_that_lost_a_folder_is_refused(spark: Any, tmp_path: Path, removed: str, said: str) -> None:
    write_rows(tmp_path / "rows", files=3, rows=10)
    start(spark, tmp_path).wait()
    shutil.rmtree(tmp_path / "state" / removed)
    pq.write_table(pq.read_table(tmp_path / "rows" / "0000.parquet"), tmp_path / "rows" / "9999.parquet")
    with pytest.raises(RunFailed, match=said):
        start(spark, tmp_path).wait()


def test_notes_of_spark_that_a_power_cut_tore_are_made_anew(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=7, rows=30)
    last = (tmp_path / "rows" / "0006.parquet").rename(tmp_path / "0006.parquet")
    start(spark, tmp_path).wait()
    notes = tmp_path / "state" / "spark"
    for name in ("commits/3", "commits/4", "commits/5", "sources/0/6", "offsets/.6.crc"):  # a checksum alone, as well
        (notes / name).write_bytes(b"")
    last.rename(tmp_path / "rows" / last.name)
    assert check_checkpoint(str(tmp_path / "state"), CHECKPOINT_VERSION).sound
    run = start(spark, tmp_path)
    run.wait()
    assert [batch.batch for batch in run.batches()] == [6]
    run.drain()
    assert_answers(spark, tmp_path)


def test_a_first_note_that_was_not_finished_does_not_keep_the_job_from_starting(spark: Any, tmp_path: Path) -> None:
    """Spark itself takes such a checkpoint for that of another query, and never starts on it again."""
    write_rows(tmp_path / "rows", files=1, rows=10)
    offsets = tmp_path / "state" / "spark" / "offsets"
    offsets.mkdir(parents=True)
    for name in (".0.4b1c.tmp", "..0.4b1c.tmp.crc"):
        (offsets / name).write_bytes(b"v1")
    start(spark, tmp_path, "noop").wait()
    assert sorted(path.name for path in offsets.iterdir()) == [".0.crc", "0"]


def test_a_batch_that_spark_would_repeat_with_other_rows_is_refused(spark: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows", files=3, rows=30)
    start(spark, tmp_path).wait()
    for name in ("commits/2", "offsets/2", "sources/0/2"):
        (tmp_path / "state" / "spark" / name).unlink()
    shutil.copy(tmp_path / "rows" / "0002.parquet", tmp_path / "rows" / "0003.parquet")
    (tmp_path / "rows" / "0002.parquet").unlink()
    with pytest.raises(RunFailed, match=r"spark/offsets/2 names other rows than batch 2 had .*bring it back"):
        start(spark, tmp_path).wait()


def test_what_a_batch_works_by_is_durable_before_it_works(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "rows", files=3, rows=30)
    durable: list[str] = []
    sync = os.fsync

    def fsync(handle: int) -> None:
        sync(handle)
        durable.append(os.readlink(f"/proc/self/fd/{handle}"))

    monkeypatch.setattr(os, "fsync", fsync)
    state = tmp_path / "state"

    def take(batch: int, answers: Any) -> None:
        order = [durable.index(str(state / "spark" / name)) for name in (f"sources/0/{batch}", f"offsets/{batch}")]
        assert order == sorted(order)
        assert str(state / "spark" / "offsets") in durable[order[-1] :], "the name of the file, too"
        assert str(state / "batches" / f"{batch:08d}.json") not in durable

    start(spark, tmp_path, take).wait()
    new = [str(tmp_path), str(state), str(state / "batches")]
    assert [path for path in new if path not in durable] == [], "folders that were made"


@pytest.mark.parametrize(
    ("torn", "said"),
    [("batches/*.json", "is torn"), ("segments/*/*.arrow", "has 10 bytes, not"), ("plans/*.json", "is torn")],
)
def test_a_checkpoint_with_a_torn_file_is_refused(spark: Any, tmp_path: Path, torn: str, said: str) -> None:
    write_rows(tmp_path / "rows", files=2, rows=10)
    start(spark, tmp_path).wait()
    file = max((tmp_path / "state").glob(torn))
    file.write_bytes(file.read_bytes()[:10])
    with pytest.raises((CheckpointFileError, CheckpointMismatch), match=f"{file.name} .*{said}.*bring it back"):
        start(spark, tmp_path)
