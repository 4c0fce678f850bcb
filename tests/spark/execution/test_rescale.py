"""Which bucket groups are in: by what they weigh, and in other buckets after a restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.compare import assert_same_rows
from tests.support.streams import Stream, expected, first_window, settle, wait_for_threads
from weft.spark import NotServed, weave
from weft.spark.checkpoint.batch_log import BatchLog, BatchRecord
from weft.spark.checkpoint.bucket_map import SLOTS, BucketMap
from weft.spark.checkpoint.checkpoint import Checkpoint
from weft.spark.checkpoint.files import CheckpointFiles, CheckpointMismatch
from weft.spark.checkpoint.verify import check_checkpoint
from weft.spark.partial.skew import weigh

QUERIES = {
    "by_key": "SELECT k, window.start AS start, count(*) AS n, sum(v) AS s FROM stream "
    "GROUP BY k, window(ts, '60 seconds', '7 seconds')",
    "by_value": "SELECT v % 20 AS rest, k, window.start AS start, max(v) AS top FROM stream "
    "GROUP BY v % 20, k, window(ts, '45 seconds', '15 seconds')",
    "spread": "SELECT v % 7 = 3 AS odd, window.start AS start, percentile(v, 0.5) AS middle FROM stream "
    "WHERE v > 5 GROUP BY v % 7 = 3, window(ts, '50 seconds', '10 seconds')",
    "overall": "SELECT window.start AS start, avg(v) AS mean FROM stream "
    "GROUP BY window(ts, '60 seconds', '20 seconds')",
}
TEXT = ";\n".join(f"CREATE VIEW {name} AS {text}" for name, text in QUERIES.items())
BY_KEY = f"CREATE VIEW by_key AS {QUERIES['by_key']}"
KEYS = {"by_key": (0, 1), "by_value": (0, 1, 2), "spread": (0, 1), "overall": (0,)}


def test_places_by_weight_even_out_what_hashing_leaves_uneven() -> None:
    random = Random(3)
    groups = Counter(random.randrange(SLOTS) for _ in range(100))
    hashed, placed = [0] * 8, [0] * 8
    bucket_by_slot = BucketMap.weighed(8, groups).bucket_by_slot
    for slot, weight in groups.items():
        hashed[slot % 8] += weight
        placed[bucket_by_slot[slot]] += weight
    assert max(placed) <= 1.05 * sum(placed) / 8 < max(hashed)


def test_slots_that_were_not_seen_are_spread_too() -> None:
    bucket_by_slot = BucketMap.weighed(4, {0: 1000.0}).bucket_by_slot
    assert max(Counter(bucket_by_slot[1:]).values()) <= SLOTS / 3 + 1, "the heavy one is alone, the rest in threes"


def test_spark_finds_each_slot_in_its_bucket(spark: Any) -> None:
    bucket_map = BucketMap.weighed(3, {slot: float(slot % 7) for slot in range(SLOTS)})
    found = spark.range(2 * SLOTS).selectExpr(f"{bucket_map.bucket('CAST(id AS INT)')} AS bucket").collect()
    assert [row["bucket"] for row in found] == 2 * list(bucket_map.bucket_by_slot)
    assert set(bucket_map.bucket_by_slot) == {0, 1, 2}


def test_a_checkpoint_without_its_places_is_refused(tmp_path: Path) -> None:
    checkpoint = Checkpoint(CheckpointFiles(str(tmp_path)))
    name = checkpoint.write_bucket_map(BucketMap.weighed(2, {}))
    record, _ = checkpoint.batches.commit(
        BatchRecord(0, segments={0: (), 1: ()}, bucket_map_file=name), BatchRecord.initial()
    )
    assert checkpoint.bucket_map(checkpoint.batches.newest()) == (BucketMap.weighed(2, {}), name)
    checkpoint.files.delete(name)
    with pytest.raises(CheckpointMismatch, match=r"first\.json is missing.*bring it back"):
        checkpoint.bucket_map(record)
    report = check_checkpoint(str(tmp_path), version=3)
    assert ("places/first.json", "is missing") in [(p.file, p.what) for p in report.problems]


@pytest.mark.spark
def test_a_zipf_stream_is_divided_evenly_by_its_partials(spark: Any) -> None:
    # 100 keys in 8 buckets: hashing leaves some with twice as many as others.
    rows = spark.sql(
        "SELECT timestamp_millis(id) AS ts, CAST(least(pow(1 - rand(7), -5), 1e9) AS INT) % 100 AS k, 1 AS v "
        "FROM range(50000)"
    )
    job = weave(rows, "SELECT k, sum(v) AS s FROM stream GROUP BY k, window(ts, '10 seconds', '1 second')")
    partials = rows.selectExpr("date_trunc('SECOND', ts) AS slice", "k").distinct()

    def imbalance(bucket_map: BucketMap) -> float:
        at = partials.selectExpr(f"{bucket_map.bucket('hash(k)')} AS bucket").groupBy("bucket").count().collect()
        return max(row["count"] for row in at) * 8 / sum(row["count"] for row in at)

    assert imbalance(weigh(rows, job.physical, 8)) <= 1.1 < imbalance(BucketMap(8))


@pytest.mark.spark
def test_state_moves_to_more_and_to_fewer_buckets_and_answers_stay_exact(spark: Any, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path)
    lives = (2, 5, 1)
    for life, buckets in enumerate(lives):
        stream.write(2)
        run = stream.start(TEXT, buckets=buckets)
        settle(run)
        assert len(run.checkpoint.batches.newest().segments) == buckets
        if life == 1:
            run.add("CREATE VIEW late_comer AS " + QUERIES["by_key"].replace("60", "30"), since="source")
            stream.write(1)
            settle(run)
        run.drain() if life == len(lives) - 1 else run.stop()
    for name, text in QUERIES.items():
        assert_same_rows(stream.answers(name), expected(stream, text), key=KEYS[name], text=text)
    joined = stream.answers("late_comer")
    assert_same_rows(joined, expected(stream, QUERIES["by_key"].replace("60", "30")), key=(0, 1), text="late_comer")
    named = {
        s.path for found in BatchLog(CheckpointFiles(str(tmp_path / "state"))).newest().segments.values() for s in found
    }
    there = {str(path.relative_to(tmp_path / "state")) for path in (tmp_path / "state" / "segments").rglob("*.arrow")}
    assert there == named, "what was moved is not there twice"


@pytest.mark.spark
def test_a_batch_that_was_not_committed_is_not_given_twice_in_other_buckets(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(spark, tmp_path)
    stream.write(3)
    commit = BatchLog.commit

    def killed(self: BatchLog, record: BatchRecord, before: BatchRecord) -> Any:
        if record.batch == 2:
            raise OSError("after the answers, before the record")
        return commit(self, record, before)

    monkeypatch.setattr(BatchLog, "commit", killed)
    with pytest.raises(Exception, match="before the record"):
        settle(stream.start(BY_KEY, buckets=4))
    monkeypatch.setattr(BatchLog, "commit", commit)
    assert list((tmp_path / "answers" / "by_key").glob("part-00000002-000[23]*")), "or this tests nothing"
    run = stream.start(BY_KEY, buckets=2)
    settle(run)
    run.drain()
    assert_same_rows(stream.answers("by_key"), expected(stream, QUERIES["by_key"]), key=(0, 1), text=BY_KEY)


@pytest.mark.spark
def test_a_job_without_a_bucket_is_refused(spark: Any) -> None:
    with pytest.raises(NotServed, match="leave it out"):
        weave(spark.range(1).selectExpr("now() AS ts", "id AS v"), "SELECT sum(v) FROM stream [RANGE 1 DAY]", buckets=0)


def _overall(length: int, slide: int, call: str = "sum(v)", where: str = "") -> str:
    return (
        f"SELECT window.start AS start, {call} AS a FROM stream {where} "
        f"GROUP BY window(ts, '{length} seconds', '{slide} seconds')"
    )


@pytest.mark.slow
@pytest.mark.spark
def test_a_hot_tree_without_keys_is_in_several_buckets_and_answers_stay_exact(spark: Any, tmp_path: Path) -> None:
    # Its queries come and go: parts change their buckets, and a window across the change has slices of both.
    stream = Stream(spark, tmp_path)
    calls, filters = ("sum(v)", "max(v)", "count(*)"), ("", "WHERE v > 30", "WHERE v > 60")
    queries = {f"q{i}": _overall(20 + 10 * (i % 3), 1, calls[i % 3], filters[i // 3]) for i in range(9)}
    queries["keyed"] = QUERIES["by_key"]
    stream.write(2)
    run = stream.start(";\n".join(f"CREATE VIEW {name} AS {text}" for name, text in queries.items()), buckets=3)
    settle(run)
    hot = {tree["tree"] for tree in run.trees() if "keyed" not in tree["queries"]}
    segments = run.checkpoint.batches.newest().segments
    assert {bucket for bucket, kept in segments.items() if any(hot & s.parts.keys() for s in kept)} == {0, 1, 2}
    assert run.metrics()["rows"] == 80, "a row that is sent to three buckets is one row"
    assert run.metrics()["matched_by_query"]["q0"] == 80
    rest = {f"more{i}": _overall(45, 5, calls[i % 3]) for i in range(6)}
    run.add(";\n".join(f"CREATE VIEW {name} AS {text}" for name, text in rest.items()), since="state")
    run.add("CREATE VIEW past AS " + _overall(60, 6, "avg(v)"), since="source")
    stream.write(2)
    settle(run)
    wait_for_threads("weft-backfill")
    dropped = [f"q{i}" for i in range(6)]
    run.drop(*dropped)
    stream.write(2)
    settle(run)
    run.stop()
    run = stream.start(";\n".join(f"CREATE VIEW {name} AS {text}" for name, text in queries.items()), buckets=2)
    stream.write(2)
    settle(run)
    since = {name: first_window(run, name) for name in rest}
    run.drain()
    for name, text in {**queries, **rest, "past": _overall(60, 6, "avg(v)")}.items():
        if name not in dropped:
            key = (0, 1) if name == "keyed" else (0,)
            wanted = expected(stream, text, since=since.get(name))
            assert_same_rows(stream.answers(name), wanted, key=key, text=f"{name}: {text}")
