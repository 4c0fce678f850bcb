"""What a run keeps in its checkpoint folder to survive a restart.

job.json                settings of the job that a restart must not change
identity.json           a unique name of the job, for sinks that record which batch of which job they have
plans/00000005.json     the plan from batch 5 on (see `plan_log`)
asked/00000003.json     a change that is in no plan yet (see `change_log`)
batches/00000007.json   the record of a batch (see `batch_log`)
places/first.json       the bucket of each slot (see `bucket_map`); another file after each rescale
segments/...            what each bucket added to its state (see `state_store`)
spark/                  Spark's own offsets and commits (see `spark_offsets`)
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.spark.checkpoint.batch_log import BatchLog, BatchRecord
from weft.spark.checkpoint.bucket_map import BucketMap
from weft.spark.checkpoint.files import CheckpointFiles, CheckpointMismatch
from weft.spark.checkpoint.state_store import StateStore

CHECKPOINT_VERSION = 3
"""Of the files that this version writes, and the only one that it reads."""

FIRST_BUCKET_MAP = "places/first.json"


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Settings that a restart must not change; in microseconds."""

    watermark_delay: int = 0
    allowed_lateness: int = 0
    retention: int = 0

    def to_json(self) -> dict[str, Any]:
        """job.json; keys that are not here are ignored, as versions before wrote others."""
        return {
            "version": CHECKPOINT_VERSION,
            "watermark": self.watermark_delay,
            "lateness": self.allowed_lateness,
            "retain": self.retention,
        }


@dataclass(frozen=True, slots=True)
class Checkpoint:
    files: CheckpointFiles

    @property
    def batches(self) -> BatchLog:
        return BatchLog(self.files)

    @property
    def state(self) -> StateStore:
        return StateStore(self.files)

    def agree(self, settings: JobSettings) -> None:
        """Write the settings, or compare them with the written ones."""
        wanted = settings.to_json()
        if not self.files.exists("job.json"):
            self.files.write_json("job.json", wanted)
            return
        written = self.files.read_json("job.json")
        problem = other_format(written, CHECKPOINT_VERSION)
        if problem is not None:
            raise CheckpointMismatch(f"the checkpoint {self.files.uri} {'; '.join(problem)}")
        for name, new in wanted.items():
            old = written.get(name, 0)  # a setting that an earlier version did not have was off
            if old != new:
                raise CheckpointMismatch(
                    f"the checkpoint {self.files.uri} was made with {name} {old!r}, not {new!r}; "
                    "start with an empty checkpoint folder, or with the setting that it was made with"
                )

    def identity(self) -> str:
        """A name of the job that no other has, the same after a restart."""
        if not self.files.exists("identity.json"):
            self.files.write_json("identity.json", {"job": uuid.uuid4().hex})
        return str(self.files.read_json("identity.json")["job"])

    def bucket_map(self, record: BatchRecord) -> tuple[BucketMap | None, str]:
        """The bucket map of the state, and its file; None: there is no state yet."""
        name = FIRST_BUCKET_MAP if record.is_initial else record.bucket_map_file
        if not name:
            return BucketMap(len(record.segments)), ""
        if not self.files.exists(name):
            if record.is_initial:
                return None, ""
            raise CheckpointMismatch(
                f"{self.files.path(name)} is missing, which says where the state of each group is; bring it back from "
                "a copy, or start with an empty checkpoint folder"
            )
        return BucketMap.from_json(self.files.read_json(name)), name

    def write_bucket_map(self, bucket_map: BucketMap, name: str = FIRST_BUCKET_MAP) -> str:
        self.files.write_json(name, bucket_map.to_json())
        return name

    def verify(self, record: BatchRecord) -> None:
        """Whether the segments that the record names are there, complete: each was written before the record was."""
        for segments in record.segments.values():
            for segment in segments:
                size = self.files.size(segment.path)
                if size != segment.bytes:
                    problem = "is missing" if size is None else f"has {size} bytes, not {segment.bytes}"
                    raise CheckpointMismatch(
                        f"{self.files.path(segment.path)} {problem}: state would be lost; bring it back from a copy, "
                        "or start with an empty checkpoint folder; `weft check` says what else is wrong"
                    )

    def repair(self, record: BatchRecord) -> list[str]:
        """Remove what a run that was killed left behind: half-written files, and segments that no record names.

        Returns their names.
        """
        named = record.paths
        segments = (f"segments/{name}" for name in self.files.names("segments", recursive=True))
        left = [name for name in segments if name not in named]
        if not record.is_initial:
            maps = (f"places/{name}" for name in self.files.names("places"))
            left += [name for name in maps if name != record.bucket_map_file]
        for name in left:
            self.files.delete(name)
        return left


def other_format(job: Mapping[str, Any], version: int) -> tuple[str, str] | None:
    """What is wrong with the format of a checkpoint, and the way out; None: it is the one that is read."""
    written = job.get("version")
    if written == version:
        return None
    if isinstance(written, int) and written > version:
        return (
            f"has format {written}, not {version}: a newer version of weft wrote it",
            "go on with that version, or start with an empty checkpoint folder",
        )
    return (
        f"has format {written}, not {version}",
        "finish it with the version that made it, or start with an empty checkpoint folder",
    )
