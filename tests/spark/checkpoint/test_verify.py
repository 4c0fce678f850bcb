"""`weft check` on checkpoints that are whole, and on those that somebody or something tore; no Spark needed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from weft.aggregates import Component
from weft.cli.app import app
from weft.engine import FeedLayout, GroupingLayout, Layout, TreeLayout
from weft.model import Edges, Window
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.checkpoint.checkpoint import CHECKPOINT_VERSION, Checkpoint, JobSettings
from weft.spark.checkpoint.files import CheckpointFiles
from weft.spark.checkpoint.plan_log import PlanChange, newest_plan, plan_names, plan_record, plan_summaries, write_plan
from weft.spark.checkpoint.spark_offsets import SparkOffsets
from weft.spark.checkpoint.verify import CheckpointReport, NoCheckpoint, check_checkpoint

LAST = 19
GROUPING = GroupingLayout(0, (pa.field("k0", pa.string()),))
EDGES = Edges.of([Window(6, 3)])


def layout() -> Layout:
    components = (Component("rows"),)
    tree = TreeLayout(0, GROUPING, EDGES, components, {None: None}, 0, ())
    feed = FeedLayout(0, GROUPING, EDGES, ("k0",), (), components, (("c0",),), (tree,))
    return Layout((feed,), True, pa.timestamp("us", "UTC"))


def made(folder: Path) -> Path:
    """What twenty batches leave behind, as the parts of weft that write it do."""
    checkpoint = Checkpoint(CheckpointFiles(str(folder)))
    checkpoint.agree(JobSettings())
    changes = (PlanChange("woven", None, 1.5, 1, 1),)
    texts = {"q1": "SELECT 1"}
    write_plan(checkpoint.files, plan_record(0, layout(), texts=texts, groupings=(("k",),), changes=changes))
    before = BatchRecord.initial()
    for batch in range(LAST + 1):
        rows = 20_000  # large enough that segments stay, so that records follow one another
        table = pa.table({"slice": pa.array([batch] * rows, pa.int64()), "c0_0": pa.array(range(rows), pa.int64())})
        held = before.segments.get(0, ())
        segments, _ = checkpoint.state.grow(0, batch, held, {0: table}, {0: 0})
        before, _ = checkpoint.batches.commit(
            BatchRecord(batch, batch, batch, {0: segments}, rows * (batch + 1)), before
        )
        spark(folder, batch)
    return folder


def spark(folder: Path, batch: int) -> None:
    for name, text in (("offsets", 'v1\n{"batchWatermarkMs":0}\n{"logOffset":1}'), ("commits", 'v1\n{"nextBatch":0}')):
        (folder / "spark" / name).mkdir(parents=True, exist_ok=True)
        (folder / "spark" / name / str(batch)).write_text(text)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def look(folder: Path) -> CheckpointReport:
    return check_checkpoint(str(folder), CHECKPOINT_VERSION)


def first(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


def newest(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[-1]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero(path: Path) -> None:
    """As many bytes, none of them what was written: what a power cut may leave."""
    path.write_bytes(bytes(path.stat().st_size))


def shift(path: Path) -> None:
    """Readable, and of another batch."""
    found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, "batch": found["batch"] + 1}))


def later_commit(path: Path) -> None:
    spark(path.parents[2], LAST + 1)


def test_a_whole_checkpoint_is_sound_and_explained(folder: Path) -> None:
    report = look(folder)
    assert (report.problems, report.notes) == ([], [])
    assert report.segments == LAST + 1
    assert set(report.tree_bytes) == {0}
    printed = CliRunner().invoke(app, ["check", str(folder)])
    assert printed.exit_code == 0
    assert f"batch {LAST}  watermark 1970-01-01 00:00:00.000019 UTC" in printed.output
    assert "plan from batch 0  woven" in printed.output
    assert "A job can go on from here." in printed.output
    found = json.loads(CliRunner().invoke(app, ["check", str(folder), "--json"]).output)
    assert (found["sound"], found["queries"], found["rows"]) == (True, ["q1"], 20_000 * (LAST + 1))
    assert found["state_bytes"] == sum(found["state_bytes_by_tree"].values()) > 0


@pytest.mark.parametrize(
    ("pattern", "which", "tear", "says"),
    [
        ("job.json", first, Path.unlink, "is missing"),
        ("job.json", first, cut, "cannot be read"),
        ("job.json", first, zero, "cannot be read"),
        ("batches/*.json", newest, cut, "cannot be read"),
        ("batches/*.json", newest, zero, "cannot be read"),
        ("batches/*.json", first, cut, "cannot be read"),
        ("batches/*.json", first, Path.unlink, "lacks the record of batch"),
        ("batches/*.json", newest, shift, "it is the record of batch"),
        ("batches/*.json", newest, Path.unlink, "says that batch 19 is done"),
        ("segments/*/*.arrow", first, Path.unlink, "is missing"),
        ("segments/*/*.arrow", newest, cut, "bytes, and"),
        ("segments/*/*.arrow", newest, zero, "holds no partials of tree 0"),
        ("plans/*.json", first, Path.unlink, "holds no plan"),
        ("plans/*.json", first, cut, "cannot be read"),
        ("spark/commits/19", first, later_commit, "says that batch 20 is done"),
        ("spark/offsets/19", first, Path.unlink, "does not say which rows batch 19 has read"),
        ("spark/offsets/19", first, zero, "cannot be read"),
    ],
)
def test_what_is_torn_is_found_and_named(
    folder: Path, pattern: str, which: Callable[[Path, str], Path], tear: Callable[[Path], None], says: str
) -> None:
    path = which(folder, pattern)
    tear(path)
    problems = look(folder).problems
    assert any(says in p.what and p.way_out for p in problems), problems
    printed = CliRunner().invoke(app, ["check", str(folder)])
    assert printed.exit_code == 1
    assert "WRONG" in printed.output
    assert says in printed.output
    assert not isinstance(printed.exception, Exception), "no traceback"


def test_a_segment_with_another_ones_content_is_found(folder: Path) -> None:
    one, other = sorted(folder.glob("segments/*/*.arrow"))[:2]
    shutil.copy(one, other)
    assert [p.what for p in look(folder).problems] == ["holds other partials of tree 0 than were written"]


def test_commits_of_spark_may_be_gone_or_torn_where_records_are_there(folder: Path) -> None:
    (folder / "spark/commits/19").unlink()
    assert look(folder).sound, "killed between the record and Spark's commit"
    cut(folder / "spark/commits/18")
    report = look(folder)
    assert report.sound
    assert report.notes == ["spark/commits/18 is torn, or of a batch that was not begun; the next start removes it"]


def test_offsets_of_spark_that_name_other_rows_are_found(folder: Path) -> None:
    record = newest(folder, "batches/*.json")
    found = json.loads(record.read_text())
    record.write_text(json.dumps({**found, "read": SparkOffsets(CheckpointFiles(str(folder))).digest(LAST)}))
    assert look(folder).sound
    note = folder / f"spark/offsets/{LAST}"
    note.write_text(note.read_text().replace('"logOffset":1', '"logOffset":2'))
    assert [p.what for p in look(folder).problems] == [f"names other rows than batch {LAST} had when it was done"]


def test_what_a_kill_leaves_is_no_problem(folder: Path) -> None:
    (folder / "segments/0000/00000020-00000020.arrow").write_bytes(b"torn")
    (folder / "batches/.00000020.json.abc").write_bytes(b"{")
    report = look(folder)
    assert report.sound
    assert len(report.notes) == 2


def test_another_format_and_no_checkpoint_at_all(folder: Path, tmp_path: Path) -> None:
    report = check_checkpoint(str(folder), CHECKPOINT_VERSION + 1)
    assert [p.file for p in report.problems] == ["job.json"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoCheckpoint, match="holds no checkpoint"):
        look(tmp_path / "empty")
    for missing in (tmp_path / "empty", tmp_path / "nowhere"):
        assert CliRunner().invoke(app, ["check", str(missing)]).exit_code == 2


def test_of_a_plan_that_another_followed_only_what_is_told_stays(folder: Path) -> None:
    store = CheckpointFiles(str(folder))
    (name,) = plan_names(store)
    told, size = plan_summaries(store), store.size(f"plans/{name}")
    changes = (PlanChange("dropped q1", 1.5, 1.0, 1, 1),)
    write_plan(store, plan_record(7, layout(), texts={"q2": "SELECT 2"}, groupings=(("k",),), changes=changes))
    assert plan_summaries(store)[:-1] == told
    assert (store.size(f"plans/{name}") or 0) < (size or 0)
    newest = newest_plan(store)
    assert newest is not None
    assert newest.texts == {"q2": "SELECT 2"}
    write_plan(store, newest)  # the batch is repeated: its record is written again, and stays whole
    assert newest_plan(store) == newest
    assert look(folder).sound
