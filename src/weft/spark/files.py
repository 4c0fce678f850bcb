"""Files in a folder, on any file system that `pyarrow.fs` knows: a file is complete, or it is not there.

Checkpoints and sinks both write through it, so it lies below both.
"""

from __future__ import annotations

import ctypes
import errno
import os
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from weft.model import WeftError


class FileError(WeftError):
    """A file that could not be written or read."""


@dataclass(frozen=True, slots=True)
class FileStore:
    """A folder, by path or URI; picklable, so that executors write where the driver reads."""

    uri: str

    error: ClassVar[type[WeftError]] = FileError
    """What is raised where a file cannot be written or read: a subclass names its stage."""

    def __post_init__(self) -> None:
        if "://" not in self.uri:  # executors have working folders of their own
            object.__setattr__(self, "uri", os.path.abspath(self.uri))

    def _open(self) -> tuple[Any, str]:
        if "://" in self.uri:
            return fs.FileSystem.from_uri(self.uri)  # type: ignore[no-any-return]
        return fs.LocalFileSystem(use_mmap=True), self.uri

    @property
    def local(self) -> bool:
        return isinstance(self._open()[0], fs.LocalFileSystem)

    def path(self, name: str) -> str:
        return f"{self._open()[1]}/{name}"

    def at(self, name: str) -> Self:
        return type(self)(f"{self.uri.rstrip('/')}/{name}")

    def write(self, name: str, data: Any) -> int:
        """Replace the file at once: written beside, made durable, then renamed. Returns its bytes."""

        def make(path: str, system: Any) -> None:
            with system.open_output_stream(path) as stream:
                stream.write(data)

        self._make(name, make, durable=True)
        return len(memoryview(data))

    def write_many(self, files: Mapping[str, Callable[[str, Any], None]]) -> None:
        """As `write`, for files that `make(path, filesystem)` makes; durable together, which is far cheaper."""
        for name, make in files.items():
            self._make(name, make, durable=False)
        if files:
            self.sync()

    def sync_files(self, names: Collection[str]) -> None:
        """Make files durable that others wrote; files that are gone by now are skipped."""
        system, root = self._open()
        paths = [f"{root}/{name}" for name in sorted(names)]
        for path in [*paths, *dict.fromkeys(path.rpartition("/")[0] for path in paths)]:
            try:
                self._sync(system, path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self.error(_explain(path, error)) from error

    def sync(self) -> None:
        """Make everything in the folder durable, also files of others; only local file systems need it."""
        if self.local:
            folder = self._open()[1]
            try:
                _sync_all(folder)
            except OSError as error:
                raise self.error(_explain(folder, error)) from error

    def _make(self, name: str, make: Callable[[str, Any], None], *, durable: bool) -> None:
        system, root = self._open()
        target = f"{root}/{name}"
        folder, _, base = target.rpartition("/")
        beside = f"{folder}/.{base}.{uuid.uuid4().hex}"
        try:
            self._create(system, folder)
            make(beside, system)
            if durable:
                self._sync(system, beside)
            system.move(beside, target)
            if durable:
                self._sync(system, folder)
        except OSError as error:
            _forget(system, beside)
            raise self.error(_explain(target, error)) from error

    def read(self, name: str) -> pa.Buffer:
        """The file's bytes; through a memory map where the file is local."""
        system, root = self._open()
        with system.open_input_file(f"{root}/{name}") as stream:
            return stream.read_buffer()

    def exists(self, name: str) -> bool:
        system, root = self._open()
        return bool(system.get_file_info(f"{root}/{name}").type != fs.FileType.NotFound)

    def names(self, folder: str, *, recursive: bool = False) -> list[str]:
        """The files of a folder, by their paths in it."""
        system, root = self._open()
        base = f"{root}/{folder}".rstrip("/")
        infos = system.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=recursive))
        return sorted(info.path[len(base) + 1 :] for info in infos if info.type == fs.FileType.File)

    def delete(self, name: str) -> None:
        system, root = self._open()
        _forget(system, f"{root}/{name}")

    def clear(self) -> None:
        """Delete the folder and all in it."""
        system, root = self._open()
        if system.get_file_info(root).type != fs.FileType.NotFound:
            system.delete_dir(root)

    def size(self, name: str) -> int | None:
        """The bytes of a file; None: it is not there."""
        system, root = self._open()
        info = system.get_file_info(f"{root}/{name}")
        return int(info.size) if info.type == fs.FileType.File else None

    def _create(self, system: Any, folder: str) -> None:
        """A folder that is durable itself: after a power cut, what is in it would be gone with its name."""
        missing = []
        if isinstance(system, fs.LocalFileSystem):
            while not os.path.isdir(folder):
                missing.append(folder)
                folder = os.path.dirname(folder)
        system.create_dir(missing[0] if missing else folder, recursive=True)
        for new in reversed(missing):
            self._sync(system, os.path.dirname(new))

    @staticmethod
    def _sync(system: Any, path: str) -> None:
        if isinstance(system, fs.LocalFileSystem):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def folder_name(query: str) -> str:
    """The query's name as a folder's name."""
    return quote(query, safe=" ()")


def _sync_all(folder: str) -> None:
    """Make everything written to the folder's file system durable."""
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:  # not Linux
        os.sync()
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if syncfs(handle):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(handle)


def _forget(system: Any, path: str) -> None:
    try:
        system.delete_file(path)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise


def _explain(target: str, error: OSError) -> str:
    if error.errno == errno.ENOSPC or "No space left" in str(error):
        return f"{target} could not be written: the disk is full; make room and start again, nothing is lost"
    return f"{target} could not be written: {error}; mend that and start again, nothing is lost"
