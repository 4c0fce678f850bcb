"""Checkpoints that an earlier version wrote (`write_checkpoint.py`) are gone on from, and all answers are right."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import weft
from tests.golden.write_checkpoint import BEGIN, SCHEMA, SECONDS, SOURCE, GoldenMean, NamedSink, micros, mount, publish
from tests.support.compare import assert_same_rows
from weft.cli import main

LIVES = sorted(path.parent for path in Path(__file__).parent.glob("format-*/*/life.json"))
KEYS = ("k", "region", "start")
MARKS = ["weft_revision", "weft_retracted"]

lives = pytest.mark.parametrize("golden", LIVES, ids=lambda path: f"{path.parent.name}-{path.name}")


class Life:
    """A copy of a golden life that goes on. Rows appear in it when they are asked for."""

    def __init__(self, spark: Any, golden: Path, folder: Path) -> None:
        self.spark, self.golden = spark, golden
        self.notes = json.loads((golden / "life.json").read_text())
        self.folder = Path(shutil.copytree(golden, folder / golden.name))
        self.rows = self.folder / "rows"
        self.rows.mkdir()
        self.sink = NamedSink(self.folder / "answers") if "job" in self.notes else None

    def publish(self, first: int, last: int) -> None:
        for number in range(first, last):
            publish(self.golden.parent / "rows" / f"{number:04d}.parquet", self.rows)

    def start(self) -> Any:
        weft.register("golden_mean", GoldenMean)
        mount(self.spark, self.rows)
        stream = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(SOURCE)
        job = weft.weave(stream, (self.folder / "queries.sql").read_text(), **self.notes["settings"])
        sink = self.sink or f"parquet:{self.folder / 'answers'}"
        return job.start(sink=sink, checkpoint=self.folder / "state")

    def answers(self, name: str) -> pa.Table:
        """The answers of both lives; of those that were sent again, the newest, unless they were taken back."""
        found = self.spark.read.parquet(str(self.folder / "answers" / name)).toArrow()
        if "lateness" not in self.notes["settings"]:
            return found
        newest = {}
        for row in sorted(found.to_pylist(), key=lambda row: row["weft_revision"]):
            newest[tuple(row.get(key) for key in KEYS)] = row
        stay = [row for row in newest.values() if not row["weft_retracted"]]
        return pa.Table.from_pylist(stay, found.schema).drop(MARKS)

    def expected(self) -> dict[str, pa.Table]:
        """What plain Spark gives over all the rows, of the windows that each query was there for."""
        session = self.spark.newSession()
        for setting, value in (("timeZone", "UTC"), ("adaptive.enabled", "false"), ("codegen.wholeStage", "false")):
            session.conf.set(f"spark.sql.{setting.replace('timeZone', 'session.timeZone')}", value)
        rows = session.read.schema(SCHEMA).parquet(str(self.rows)).toArrow()
        session.createDataFrame(rows).coalesce(1).createOrReplaceTempView("stream")

        def ask(pieces: list[dict[str, Any]]) -> pa.Table:
            return nullable(pa.concat_tables(_within(session.sql(p["spark"]), p).toArrow() for p in pieces))

        wanted = self.notes["answers"]
        with ThreadPoolExecutor(2) as pool:
            return dict(zip(wanted, pool.map(ask, wanted.values()), strict=True))


def _within(frame: Any, piece: dict[str, Any]) -> Any:
    """Windows that begin from `since` on and end by `until`."""
    if piece.get("since") is not None:
        frame = frame.where(f"unix_micros(start) >= {piece['since']}")
    if piece.get("until") is not None:
        frame = frame.where(f"unix_micros(start) + {piece['length']} <= {piece['until']}")
    return frame


def nullable(table: pa.Table) -> pa.Table:
    """Spark says of some lists that nothing in them is NULL, and files do not."""

    def plain(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_list(kind):
            return pa.list_(pa.field("element", plain(kind.value_type)))
        return pa.struct([(f.name, plain(f.type)) for f in kind]) if pa.types.is_struct(kind) else kind

    return table.cast(pa.schema([(f.name, plain(f.type)) for f in table.schema]))


def starts(table: pa.Table) -> list[int]:
    return sorted(set(table.column("start").cast(pa.int64()).to_pylist()))


@pytest.mark.spark
@pytest.mark.slow
@lives
def test_a_job_goes_on_from_an_earlier_version_and_all_answers_are_those_of_spark(
    spark: Any, tmp_path: Path, golden: Path
) -> None:
    life = Life(spark, golden, tmp_path)
    notes, pieces = life.notes, life.notes["answers"]
    life.publish(0, notes["read"])
    if "pending" in pieces:
        leave_a_change_behind(life.folder / "state", "by_key")
    run = life.start()
    try:
        assert run.queries() == notes["members"]
        assert run.changes()[: len(notes["changes"])] == notes["changes"]
        if life.sink is None:  # else a batch that failed is being repeated
            metrics = run.metrics()
            assert {name: metrics[name] for name in notes["metrics"]} == notes["metrics"]
        else:
            assert life.sink.job == notes["job"]
        life.publish(notes["read"], notes["files"])
        run.query.processAllAvailable()
        if "pending" in pieces:
            pieces["pending"][0]["since"] = since = micros(run.since("pending"))
            assert since is not None
            assert since < notes["latest"] - pieces["pending"][0]["length"], "it has read slices of the earlier version"
            assert micros(run.until("brief")) == pieces["brief"][0]["until"]
        run.drain()
    finally:
        run.stop()
    assert run.metrics()["rows"] == spark.read.schema(SCHEMA).parquet(str(life.rows)).count()
    assert not run.metrics()["waiting"]
    answered = run.metrics()["answers_by_query"]
    for name, wanted in life.expected().items():
        found = life.answers(name)
        if "lateness" not in notes["settings"]:
            assert answered[name] == found.num_rows, name
        if "at_most" in pieces[name][0]:
            wanted = _chosen(found, wanted, pieces[name][0]["at_most"], notes["files"])
        assert wanted.num_rows, name
        key = [i for i, column in enumerate(wanted.column_names) if column in KEYS]
        assert_same_rows(found, wanted, key=key, text=f"{name}: {pieces[name][-1]['spark']}")


def leave_a_change_behind(state: Path, query: str) -> None:
    """A kill may leave a change that the plan has taken in: it must not be made again."""
    found = plan(state)[1]
    change = {"leaving": {query: found["texts"][query]}, "joining": [], "how": {}, "begin": None}
    (state / "asked" / f"{found['asked']:08d}.json").write_text(json.dumps(change))


def _chosen(found: pa.Table, every: pa.Table, slide: int, files: int) -> pa.Table:
    """Of the windows that weft might have answered, those that it has, from begin to end.

    A machine that is busy may be a slide late.
    """
    chosen = starts(found)
    assert all(later - earlier <= 2 * slide for earlier, later in pairwise(chosen))
    assert chosen[0] <= BEGIN
    assert chosen[-1] >= BEGIN + (files * SECONDS * 1_000_000) - 2 * slide
    return every.filter(pc.is_in(every.column("start").cast(pa.int64()), pa.array(chosen)))


def check(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, Any]:
    """What `weft check --json` says, and how it ends."""
    monkeypatch.setattr("sys.argv", ["weft", "check", str(folder), "--json"])
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    return code, json.loads(capsys.readouterr().out)


@lives
def test_what_an_earlier_version_wrote_is_found_sound_and_nothing_of_it_is_changed(
    golden: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = json.loads((golden / "life.json").read_text())
    before = contents(golden)
    code, found = check(golden / "state", capsys, monkeypatch)
    assert (code, found["sound"], found["problems"]) == (0, True, [])
    assert found["notes"] == [] or golden.name == "failed", "a batch that has failed leaves segments behind"
    assert f"format-{found['format']}" == golden.parent.name
    assert (found["batch"], found["rows"]) == (notes["metrics"]["batch"], notes["metrics"]["rows"])
    assert found["answers"] == sum(notes["metrics"]["answers_by_query"].values())
    assert found["state_bytes"] > 0
    assert [reason for plan in found["plans"] for reason in plan["reasons"]] == [c["reason"] for c in notes["changes"]]
    assert contents(golden) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_golden_checkpoints_hold_records_that_follow_others_and_segments_of_every_sort() -> None:
    """Where one is missing, the other tests see less than they are there for."""
    folder = Path(__file__).parent
    records = [json.loads(path.read_text()) for path in folder.glob("format-3/*/state/batches/*.json")]
    segments = [s for record in records for found in record["segments"].values() for s in found]
    plans = [json.loads(path.read_text()) for path in folder.glob("format-3/*/state/plans/*.json")]
    assert {record["changes"] == 0 for record in records} == {True, False}
    assert any(record.get("gone") for record in records)
    assert any(record["apart"] for record in records)
    assert any(record["schedule"]["answered"] for record in records)
    assert {record["places"] == "places/first.json" for record in records} == {True, False}
    assert {segment["level"] > 0 for segment in segments} == {True, False}
    assert {"current" in plan for plan in plans} == {True, False}
    for part in ("older", "live", "dropped", "lives", "held", "arrived", "fresh"):
        assert any(plan.get(part) for plan in plans), part
    assert list(folder.glob("format-3/*/state/asked/*.json"))
    assert list(folder.glob("format-3/*/state/replays/*/partials/*.parquet"))
    components = {kind for plan in plans for tree in plan.get("current", ()) for kind, *_ in tree["components"]}
    assert components >= {
        "rows", "count", "sum", "min", "max", "min_by", "max_by", "bit_and", "bit_or", "bit_xor", "moments_4",
        "comoments", "frequencies", "distinct", "sums", "theta", "kll_bigint", "kll_double", "heavy_string",
        "heavy_bigint", "heavy_double",
    }  # fmt: skip


@pytest.mark.spark
def test_a_checkpoint_of_a_newer_version_is_refused_before_anything_is_touched(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(spark, LIVES[0], tmp_path)
    job = life.folder / "state" / "job.json"
    job.write_text(json.dumps({**json.loads(job.read_text()), "version": 1000}))
    before = contents(life.folder)
    way_out = "go on with that version, or start with an empty checkpoint folder"
    with pytest.raises(weft.WeftError, match=f"has format 1000, not 3: a newer version of weft wrote it; {way_out}"):
        life.start()
    assert contents(life.folder) == before
    code, found = check(life.folder / "state", capsys, monkeypatch)
    assert code == 1
    assert [(p["file"], p["way_out"]) for p in found["problems"]] == [("job.json", way_out)]


@lives
def test_notes_of_spark_that_name_other_rows_than_the_record_are_found(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what stands for the rows of a batch is made as it was then, of the notes as they were then."""
    state = Path(shutil.copytree(golden / "state", tmp_path / "state"))
    found = record(state)[1]
    number = found["batch"] - found["apart"]
    (note,) = (state / "spark" / "sources" / "0").glob(f"{number}*")
    note.write_text(note.read_text().replace("viewfs://golden/rows", "viewfs://golden/others"))
    code, said = check(state, capsys, monkeypatch)
    assert code == 1
    assert [p["what"] for p in said["problems"]] == [f"names other rows than batch {number} had when it was done"]


@pytest.mark.spark
def test_counters_that_no_golden_life_has_counted_are_read_too(spark: Any, tmp_path: Path) -> None:
    life = Life(spark, Path(__file__).parent / "format-3" / "kinds", tmp_path)
    life.publish(0, life.notes["read"])
    path, found = record(life.folder / "state")
    path.write_text(json.dumps({**found, "late": {"bits": 7}, "bad": 5}))
    run = life.start()
    run.stop()
    metrics = run.metrics()
    assert (metrics["late_by_query"], metrics["late"], metrics["bad"]) == ({"bits": 7}, 7, 5)


def record(state: Path) -> tuple[Path, dict[str, Any]]:
    path = max((state / "batches").glob("*.json"))
    return path, json.loads(path.read_text())


def plan(state: Path) -> tuple[Path, dict[str, Any]]:
    path = max((state / "plans").glob("*.json"))
    return path, json.loads(path.read_text())


def first(values: dict[str, Any]) -> Any:
    return next(iter(values.values()))


@pytest.mark.parametrize(
    ("read", "part"),
    [
        (record, lambda found: first(found["segments"])[0]),
        (record, lambda found: found["schedule"]),
        (record, lambda found: found["schedule"]["pace"]),
        (plan, lambda found: found["changes"][0]),
        (plan, lambda found: first(found["lives"])),
        (plan, lambda found: first(found["held"])),
    ],
    ids=["segment", "schedule", "pace", "change", "life", "held"],
)
@pytest.mark.parametrize("rename", [False, True], ids=["unknown", "renamed"])
def test_a_field_that_is_not_known_is_not_passed_over(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Path], tuple[Path, dict[str, Any]]],
    part: Callable[[dict[str, Any]], dict[str, Any]],
    rename: bool,
) -> None:
    state = Path(shutil.copytree(Path(__file__).parent / "format-3" / "changes" / "state", tmp_path / "state"))
    path, found = read(state)
    inner = part(found)
    inner["newer_field"] = inner.pop(next(iter(inner))) if rename else 1
    path.write_text(json.dumps(found))
    code, said = check(state, capsys, monkeypatch)
    assert (code, said["sound"]) == (1, False)
    assert any("newer_field" in problem["what"] for problem in said["problems"]), said["problems"]
