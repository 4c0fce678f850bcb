"""A checkpoint read without Spark: what it holds, whether all of it is there, and what to do where it is not.

Nothing is changed. What is looked at, in this order: the job, the records back to one that names every segment, each
segment byte for byte, the plans, and whether Spark's own folder stands where the records do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from weft.model import CheckpointError
from weft.spark.checkpoint.batch_log import BatchLog, BatchRecord
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.checkpoint.checkpoint import other_format
from weft.spark.checkpoint.files import CheckpointFileError, CheckpointFiles, CheckpointMismatch, UnknownKey
from weft.spark.checkpoint.plan_log import PlanRecord, PlanSummary, plan_names, read_plan, read_summary
from weft.spark.checkpoint.spark_offsets import SparkOffsets, check_note
from weft.spark.checkpoint.state_store import Segment

RESTORE = "bring the file back from a copy of the folder, or start with an empty checkpoint folder"

T = TypeVar("T")


class NoCheckpoint(CheckpointError):
    """A folder that holds no checkpoint."""


@dataclass(frozen=True, slots=True)
class CheckpointProblem:
    """What keeps a job from going on, and the way out."""

    file: str
    what: str
    way_out: str = RESTORE


@dataclass
class CheckpointReport:
    """What a checkpoint holds. `notes` are harmless: a restart sees to them."""

    uri: str
    job: Mapping[str, Any] = field(default_factory=dict)
    record: BatchRecord = field(default_factory=BatchRecord.initial)
    plan: PlanRecord | None = None
    plans: list[PlanSummary] = field(default_factory=list)
    """The plan and those before it, oldest first."""
    segments: int = 0
    tree_bytes: Counter[int] = field(default_factory=Counter)
    spark: dict[str, int | None] = field(default_factory=dict)
    """The newest batch that Spark has begun, and the newest that it has finished."""
    problems: list[CheckpointProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.problems

    @property
    def last(self) -> int:
        """The last batch of rows that counts; -1: none does. A drain has a record of its own, and no rows."""
        return self.record.spark_batch


def check_checkpoint(uri: str, version: int) -> CheckpointReport:
    """Look at everything in the folder; `version` is the format that is written today."""
    store, report = CheckpointFiles(uri), CheckpointReport(uri)
    if not any(store.exists(name) for name in ("job.json", "batches", "plans", "segments", "spark")):
        raise NoCheckpoint(f"{uri} holds no checkpoint; give the folder that a run was started with as its checkpoint")
    _check_job(store, report, version)
    _check_records(store, report)
    _check_bucket_map(store, report)
    _check_segments(store, report)
    _check_plans(store, report)
    _check_spark(store, report)
    return report


def _attempt(report: CheckpointReport, file: str, read: Callable[[], T], what: str = "cannot be read") -> T | None:
    """What `read` gives, or a problem: a torn file may break its reader in any way."""
    try:
        return read()
    except FileNotFoundError:
        report.problems.append(CheckpointProblem(file, "is missing"))
    except (CheckpointFileError, UnknownKey) as error:
        report.problems.append(CheckpointProblem(file, f"{what}: {str(error).partition('; ')[0]}"))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, pa.ArrowException) as error:
        lines = str(error).splitlines()
        report.problems.append(CheckpointProblem(file, f"{what}: {lines[0] if lines else type(error).__name__}"))
    return None


def _check_job(store: CheckpointFiles, report: CheckpointReport, version: int) -> None:
    job = _attempt(report, "job.json", lambda: dict(store.read_json("job.json")))
    if job is None:
        return
    report.job = job
    problem = other_format(job, version)
    if problem is not None:
        report.problems.append(CheckpointProblem("job.json", *problem))


def _check_records(store: CheckpointFiles, report: CheckpointReport) -> None:
    before = len(report.problems)
    for name in store.names("batches"):
        if name.startswith("."):
            report.notes.append(f"batches/{name} was never finished; it does not count")
        elif name.endswith(".json"):
            _attempt(report, f"batches/{name}", lambda name=name: _record_json(store, name))  # type: ignore[misc]
    if len(report.problems) > before:
        return
    try:
        report.record = _attempt(report, "batches", BatchLog(store).newest) or report.record
    except CheckpointMismatch as error:
        report.problems.append(CheckpointProblem("batches", str(error).partition("; ")[0]))


def _record_json(store: CheckpointFiles, name: str) -> None:
    record = store.read_json(f"batches/{name}")
    if record["batch"] != int(name.removesuffix(".json")):
        raise ValueError(f"it is the record of batch {record['batch']}")


def _check_bucket_map(store: CheckpointFiles, report: CheckpointReport) -> None:
    name = report.record.bucket_map_file
    if name:
        _attempt(report, name, lambda: BucketMap.from_json(store.read_json(name)))


def _check_segments(store: CheckpointFiles, report: CheckpointReport) -> None:
    named: set[str] = set()
    for segments in report.record.segments.values():
        for segment in segments:
            named.add(segment.path)
            report.segments += 1
            problem = _segment_problem(store, segment)
            if problem is None:
                for tree, part in segment.parts.items():
                    report.tree_bytes[tree] += part.length
            else:
                report.problems.append(CheckpointProblem(segment.path, problem))
    there = [f"segments/{name}" for name in store.names("segments", recursive=True)]
    loose = [name for name in there if name not in named] if not report.record.is_initial or report.sound else []
    if loose:
        report.notes.append(f"{len(loose)} files of state that no record names; the next start removes them")


def _segment_problem(store: CheckpointFiles, segment: Segment) -> str | None:
    try:
        data = store.read(segment.path)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error}"
    if data.size != segment.bytes:
        return f"has {data.size} bytes, and {segment.bytes} were written"
    for tree, part in segment.parts.items():
        try:
            table = pa.ipc.open_stream(data.slice(part.offset, part.length)).read_all()
            table.validate(full=True)
            newest = pc.max(table.column("slice")).as_py()
        except (pa.ArrowException, KeyError, OSError) as error:
            return f"holds no partials of tree {tree} where they should lie: {str(error).splitlines()[0]}"
        if newest != part.newest_slice:
            return f"holds other partials of tree {tree} than were written"
    return None


def _check_plans(store: CheckpointFiles, report: CheckpointReport) -> None:
    names = plan_names(store)
    for name in names:
        note = _attempt(report, f"plans/{name}", lambda name=name: read_summary(store, name))  # type: ignore[misc]
        if note is not None:
            report.plans.append(note)
            if name == names[-1]:
                report.plan = _attempt(report, f"plans/{name}", lambda name=name: read_plan(store, name))  # type: ignore[misc]
    for name in store.names("asked"):
        _attempt(report, f"asked/{name}", lambda name=name: store.read_json(f"asked/{name}"))  # type: ignore[misc]
    if not names and not report.record.is_initial:
        report.problems.append(CheckpointProblem("plans", "holds no plan, so nobody knows what the state is of"))
    if report.plans and not report.record.is_initial:
        planned = {tree for plan in report.plans for tree in plan.trees}
        unknown = sorted(report.tree_bytes.keys() - planned)
        if unknown:
            report.problems.append(CheckpointProblem("plans", f"name no tree {unknown[0]}, which there is state of"))
        if report.plans[-1].batch > report.record.batch + 1:
            on, last = report.plans[-1].batch, report.record.batch
            what = f"holds from batch {on} on, but the last record is of batch {last}"
            report.problems.append(CheckpointProblem(f"plans/{report.plans[-1].batch:08d}.json", what))


def _check_spark(store: CheckpointFiles, report: CheckpointReport) -> None:
    """Spark writes the offsets of a batch before it and the commit after it. It repeats the batch of the newest offsets
    if their commit is missing; weft does not run a batch again that has a record."""
    begun, committed = (_numbers(store, f"spark/{folder}") for folder in ("offsets", "commits"))
    report.spark = {"begun": max(begun, default=None), "done": max(committed, default=None)}
    # A record that cannot be read has its problem already: there is nothing to compare with.
    if report.record.is_initial and not report.sound:
        return
    notes = SparkOffsets(store)
    torn = notes.torn(report.last)
    removes = "is torn, or of a batch that was not begun; the next start removes it"
    report.notes += [f"spark/{name} {removes}" for name in torn]
    begun, committed = (
        {n for n in numbers if f"{folder}/{n}" not in torn}
        for folder, numbers in (("offsets", begun), ("commits", committed))
    )
    last, newest = report.last, max(committed, default=-1)
    if begun:
        name = f"spark/offsets/{max(begun)}"
        _attempt(report, name, lambda: check_note(store.read(name).to_pybytes()))
    if report.record.input_digest and last in begun:
        digest = _attempt(report, f"spark/offsets/{last}", lambda: notes.digest(last))
        if digest != report.record.input_digest:
            what = f"names other rows than batch {last} had when it was done"
            report.problems.append(CheckpointProblem(f"spark/offsets/{last}", what))
    if newest > last:
        what = f"says that batch {newest} is done, and the last record is of batch {last}: rows between were not kept"
        report.problems.append(CheckpointProblem("spark/commits", what.replace("batch -1", "no batch")))
    if last >= 0 and last not in begun:
        report.problems.append(CheckpointProblem("spark/offsets", f"does not say which rows batch {last} has read"))


def _numbers(store: CheckpointFiles, folder: str) -> set[int]:
    return {int(name) for name in store.names(folder) if name.isdigit()}


def to_json(report: CheckpointReport) -> dict[str, Any]:
    record, plan = report.record, report.plan
    started = not record.is_initial
    return {
        "checkpoint": report.uri,
        "sound": report.sound,
        "format": report.job.get("version"),
        "buckets": len(record.segments) if started else report.job.get("buckets"),
        "batch": record.batch if started else None,
        "drained": record.drained,
        "watermark": record.open_watermark,
        "latest": record.max_event_time,
        "rows": record.rows,
        "answers": sum(record.answers.values()),
        "late": sum(record.late.values()),
        "queries": [] if plan is None else list(plan.texts),
        "segments": report.segments,
        "state_bytes": sum(report.tree_bytes.values()),
        "state_bytes_by_tree": {str(tree): size for tree, size in sorted(report.tree_bytes.items())},
        "plans": [
            {"batch": p.batch, "queries": p.queries, "reasons": [c.reason for c in p.changes]} for p in report.plans
        ],
        "spark": report.spark,
        "problems": [{"file": p.file, "what": p.what, "way_out": p.way_out} for p in report.problems],
        "notes": report.notes,
    }
