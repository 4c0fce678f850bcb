"""A real Postgres in a folder of its own, for as long as a test needs it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "postgres"


class NoServer(Exception):
    """What is missing, and what to install."""


class Postgres:
    def __init__(self, programs: Path, folder: Path, port: int) -> None:
        self._programs, self._folder, self._port = programs, folder, port
        self.url = f"postgresql://{USER}@127.0.0.1:{port}/postgres"

    def make(self) -> None:
        self._run("initdb", "-D", f"{self._folder}/data", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        settings = f"-p {self._port} -c listen_addresses=127.0.0.1 -k {self._folder} -c fsync=off"
        self._control("start", "-l", f"{self._folder}/log", "-o", settings)

    def stop(self) -> None:
        """At once, as a power cut would: what was not committed is gone."""
        self._control("stop", "-m", "immediate")

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", f"{self._folder}/data", "-w", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        if os.geteuid() == 0:  # Postgres refuses to run as root
            command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *command]
        with (self._folder / "out.txt").open("a") as out:  # a pipe would be held open by the server
            ran = subprocess.run(command, cwd=self._folder, stdout=out, stderr=out, check=False)
        if ran.returncode:
            raise RuntimeError(f"{program} failed: {(self._folder / 'out.txt').read_text()[-2000:]}")


@contextmanager
def postgres() -> Iterator[Postgres]:
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="weft-postgres-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, USER, USER)
        with socket.socket() as trial:
            trial.bind(("127.0.0.1", 0))
            port = int(trial.getsockname()[1])
        server = Postgres(programs, folder, port)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), reverse=True)
    onpath = shutil.which("pg_ctl")
    if onpath is not None:
        folders.insert(0, Path(onpath).resolve().parent)
    found = next((folder for folder in folders if (folder / "initdb").exists()), None)
    if found is None:
        raise NoServer("the tests with Postgres need a server: apt-get install postgresql (version 15 or newer)")
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(USER)
        except KeyError:
            raise NoServer(f"the tests with Postgres need a user other than root: useradd {USER}") from None
        if shutil.which("setpriv") is None:
            raise NoServer("the tests with Postgres need setpriv when run as root: apt-get install util-linux")
    return found
