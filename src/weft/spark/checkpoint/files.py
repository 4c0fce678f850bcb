"""The folder of a checkpoint: its files, and the JSON in them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from weft.model import CheckpointError, WeftError
from weft.spark.files import FileError, FileStore


class CheckpointFileError(FileError, CheckpointError):
    """A file of a checkpoint that could not be written or read."""


class CheckpointMismatch(CheckpointError):
    """A checkpoint of another job, of another format, or without all of its files."""


class UnknownKey(CheckpointMismatch):
    """A value with a key that this version does not know, and must not pass over."""


def refuse_unknown_keys(value: Mapping[str, Any], known: Collection[str], what: str) -> None:
    """What a newer version added to a part of a record may change what the part means."""
    unknown = sorted(value.keys() - set(known))
    if unknown:
        raise UnknownKey(
            f"{what} of the checkpoint has {', '.join(unknown)}, which this version of weft does not know; go on with "
            "the version that wrote it, or start with an empty checkpoint folder"
        )


@dataclass(frozen=True, slots=True)
class CheckpointFiles(FileStore):
    error: ClassVar[type[WeftError]] = CheckpointFileError

    def read_json(self, name: str) -> Any:
        try:
            return json.loads(self.read(name).to_pybytes())
        except ValueError as error:
            raise CheckpointFileError(
                f"{self.path(name)} is torn, or was changed: {error}; bring it back from a copy, or start with an "
                "empty folder; `weft check` says what else is wrong"
            ) from None

    def write_json(self, name: str, value: Any) -> int:
        return self.write(name, json.dumps(value, separators=(",", ":")).encode())
