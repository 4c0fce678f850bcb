"""Records that follow one another, and segments that are merged while they are small; no Spark needed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.checkpoint import Checkpoint
from weft.spark.checkpoint.files import CheckpointFiles, CheckpointMismatch
from weft.spark.checkpoint.state_store import FAN_IN, LARGE
from weft.spark.sinks.open import make_sink


def batches(
    checkpoint: Checkpoint, *, count: int, window: int, rows: int, first: int = 0, buckets: int = 2
) -> Iterator[tuple[BatchRecord, int, int]]:
    """A batch a second; partials of the last `window` seconds are needed. The record, its bytes, those of the state."""
    before = checkpoint.batches.newest()
    for batch in range(first, first + count):
        table = pa.table({"slice": pa.array([batch] * rows, pa.int64()), "c0_0": pa.array(range(rows), pa.int64())})
        segments, state = {}, 0
        for bucket in range(buckets):
            held = before.segments.get(bucket, ())
            segments[bucket], written = checkpoint.state.grow(bucket, batch, held, {0: table}, {0: batch - window})
            state += written
        record, written = checkpoint.batches.commit(BatchRecord(batch, segments=segments, state_bytes=state), before)
        yield record, written, state
        before = record


def slices(checkpoint: Checkpoint, record: BatchRecord) -> set[int]:
    tables = [checkpoint.state.read(s)[0] for s in record.segments[0]]
    return {value for table in tables for value in table.column("slice").to_pylist()}


@pytest.mark.parametrize("rows", [1, 20_000])
def test_the_newest_record_is_the_last_committed_after_any_number(tmp_path: Path, rows: int) -> None:
    checkpoint = Checkpoint(CheckpointFiles(str(tmp_path)))
    assert checkpoint.batches.newest() == BatchRecord.initial()
    for record, _, _ in batches(checkpoint, count=70, window=20, rows=rows):
        assert checkpoint.batches.newest() == record
        assert slices(checkpoint, record) >= set(range(max(0, record.batch - 20), record.batch + 1))
    named = {s.path for found in record.segments.values() for s in found}
    assert {f"segments/{n}" for n in checkpoint.files.names("segments", recursive=True)} == named


@pytest.mark.parametrize("rows", [10, 1_000, 20_000])
def test_what_a_batch_writes_does_not_grow_with_the_window(tmp_path: Path, rows: int) -> None:
    def mean(window: int) -> tuple[float, float]:
        checkpoint = Checkpoint(CheckpointFiles(str(tmp_path / str(window))))
        written = [(r, s) for _, r, s in batches(checkpoint, count=3 * window, window=window, rows=rows, buckets=1)]
        settled = written[-2 * window :]
        return sum(r for r, _ in settled) / len(settled), sum(s for _, s in settled) / len(settled)

    (record_short, state_short), (record_long, state_long) = mean(32), mean(128)
    assert record_long < 1.5 * record_short
    assert state_long < 1.2 * state_short if 8 * 16 * rows > LARGE else state_long < 1.5 * state_short


def test_large_segments_are_never_merged(tmp_path: Path) -> None:
    checkpoint = Checkpoint(CheckpointFiles(str(tmp_path)))
    rows = LARGE // (FAN_IN * 16) + 1
    *_, (record, _, _) = batches(checkpoint, count=3 * FAN_IN, window=1000, rows=rows, buckets=1)
    assert [s.level for s in record.segments[0]] == [0] * (3 * FAN_IN)


def test_a_restart_removes_what_no_record_names(tmp_path: Path) -> None:
    checkpoint = Checkpoint(CheckpointFiles(str(tmp_path)))
    *_, (record, _, _) = batches(checkpoint, count=5, window=3, rows=2)
    for name in (".0005.arrow.abc", "00000009-00000009.arrow"):
        (tmp_path / "segments" / "0000" / name).write_bytes(b"torn")
    checkpoint.repair(record)
    assert checkpoint.batches.newest() == record
    named = {s.path for found in record.segments.values() for s in found}
    assert {f"segments/{n}" for n in checkpoint.files.names("segments", recursive=True)} == named


def test_a_record_that_others_follow_is_missed(tmp_path: Path) -> None:
    checkpoint = Checkpoint(CheckpointFiles(str(tmp_path)))
    *_, (record, _, _) = batches(checkpoint, count=20, window=100, rows=20_000)
    names = sorted((tmp_path / "batches").iterdir())
    assert record.changed_segments
    assert len(names) > 3
    for lost in (0, 1, -2):
        content = names[lost].read_bytes()
        names[lost].unlink()
        with pytest.raises(CheckpointMismatch, match=f"lacks the record of batch {int(names[lost].stem)}"):
            checkpoint.batches.newest()
        names[lost].write_bytes(content)
    assert checkpoint.batches.newest() == record


def test_a_relative_folder_is_the_drivers_wherever_an_executor_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("driver", "executor"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "driver")
    store, sink = pickle.dumps(CheckpointFiles("state")), pickle.dumps(make_sink("parquet:answers"))
    monkeypatch.chdir(tmp_path / "executor")
    pickle.loads(store).write("file", b"x")
    pickle.loads(sink).write(0, 0, {"q": pa.table({"a": [1]})})
    assert not list((tmp_path / "executor").iterdir())
    assert sorted(path.name for path in (tmp_path / "driver").iterdir()) == ["answers", "state"]
