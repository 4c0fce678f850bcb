"""The offset and commit logs of Spark's streaming query, which a checkpoint depends on as much as on its records.

    spark/sources/0/7   what a source has found; a folder of files notes their names
    spark/offsets/7     which rows batch 7 has; written before the batch
    spark/commits/7     Spark is done with it; written after

Spark makes none of them durable. After a power cut the newest may be torn or gone, though weft's record of the batch is
there: Spark would then read other rows as the same batch, and those between would be in no answer. So notes are durable
before the batch works by them, and its record knows which rows they name.
"""

from __future__ import annotations

import hashlib
import json

from weft.spark.checkpoint.files import CheckpointFiles


class SparkOffsets:
    def __init__(self, checkpoint: CheckpointFiles) -> None:
        self._store = checkpoint.at("spark")
        self._durable: set[str] = set()

    def make_durable(self) -> None:
        """What the sources note before the offsets that count on it; commits are not needed, see `torn`."""
        if not self._store.local:  # there a file that is written is durable
            return
        durable = set(self._names("sources"))
        for names in (durable, {"metadata"}, set(self._names("offsets"))):
            self._store.sync_files(names - self._durable)
            durable |= names
        self._durable = durable

    def digest(self, batch: int) -> str:
        """Identifies the rows of a batch: equal for equal rows."""
        # The first two lines are the format, and when the batch was begun under which settings.
        parts = self._store.read(f"offsets/{batch}").to_pybytes().split(b"\n")[2:]
        for folder, number in self._read_up_to(batch).items():
            for name in (f"{folder}/{number}", f"{folder}/{number}.compact"):
                if self._store.exists(name):
                    parts.append(self._store.read(name).to_pybytes())
        return hashlib.sha256(b"\n".join(parts)).hexdigest()[:16]

    def torn(self, last: int) -> list[str]:
        """What a power cut or a full disk may have left after batch `last`, the last with a record, and nobody needs.

        Commits that cannot be read; of the batch that follows, offsets that cannot be read, or whose sources' notes
        cannot; checksums of files that are gone, which Spark stumbles over; and what it had not finished to write, for
        which it would take a checkpoint without a batch for that of another query. No work was done by them.
        """
        commits = [name for name in self._names("commits") if not self._readable(name)]
        every = set(self._store.names("", recursive=True))
        begun = {name for name in every if _unfinished(name)}
        lonely = [name for name in every - begun if (note := _checked(name)) is not None and note not in every]
        read = self._read_up_to(last)
        sources = [n for n in self._names("sources") if not self._readable(n) and _number(n) > read.get(_folder(n), -1)]
        following = [name for name in self._names("offsets") if _number(name) == last + 1]
        spoilt = sources or not all(map(self._readable, following))
        return [*commits, *sources, *(following if spoilt else ()), *sorted(begun), *sorted(lonely)]

    def repair(self, last: int) -> list[str]:
        """Remove these: Spark cannot start with them, and begins the batch again. Returns their names."""
        torn = self.torn(last)
        for name in torn:
            folder, _, number = name.rpartition("/")
            self._store.delete(name)
            self._store.delete(f"{folder}/.{number}.crc")
        return [f"spark/{name}" for name in torn]

    def _names(self, folder: str) -> list[str]:
        """Notes, without Spark's checksums and what it had not finished to write."""
        return [f"{folder}/{name}" for name in self._store.names(folder, recursive=True) if _number(name) >= 0]

    def _readable(self, name: str) -> bool:
        try:
            check_note(self._store.read(name).to_pybytes())
        except ValueError:
            return False
        return True

    def _read_up_to(self, batch: int) -> dict[str, int]:
        """The newest note of each source that a batch counts on, where a source numbers them."""
        name = f"offsets/{batch}"
        if not self._store.exists(name) or not self._readable(name):
            return {}
        lines = self._store.read(name).to_pybytes().decode().split("\n")[2:]
        offsets = {f"sources/{i}": json.loads(line) for i, line in enumerate(lines) if line not in ("-", "")}
        return {folder: o.get("logOffset", 0) for folder, o in offsets.items() if isinstance(o, dict)}


def check_note(note: bytes) -> None:
    """Refuse what is no note: a line with the version, then JSON a line, or `-` for a source that has no offset."""
    version, *lines = note.lstrip(b"\x00").decode().splitlines() or [""]  # Kafka's begins with a zero
    if not version.startswith("v") or not lines:
        raise ValueError("it is no entry of Spark's log")
    for line in lines:
        if line != "-":
            json.loads(line)


def _number(name: str) -> int:
    base = name.rpartition("/")[2].removesuffix(".compact")
    return int(base) if base.isdigit() else -1


def _unfinished(name: str) -> bool:
    """Whether Spark was still to give it its name.

    >>> _unfinished("offsets/.0.4b1c.tmp"), _unfinished("offsets/..0.4b1c.tmp.crc"), _unfinished("offsets/.0.crc")
    (True, True, False)
    """
    base = name.rpartition("/")[2]
    return base.startswith(".") and base.removesuffix(".crc").endswith(".tmp")


def _checked(name: str) -> str | None:
    """What a checksum is of; None: it is none."""
    folder, slash, base = name.rpartition("/")
    checksum = base.startswith(".") and base.endswith(".crc")
    return f"{folder}{slash}{base[1:].removesuffix('.crc')}" if checksum else None


def _folder(name: str) -> str:
    return name.rpartition("/")[0]
