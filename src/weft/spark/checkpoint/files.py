"""The folder of a checkpoint: its files, and the JSON in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from weft.model import CheckpointError, WeftError
from weft.spark.files import FileError, FileStore


class CheckpointFileError(FileError, CheckpointError):
    """A file of a checkpoint that could not be written or read."""


class CheckpointMismatch(CheckpointError):
    """A checkpoint of another job, of another format, or without all of its files."""


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
