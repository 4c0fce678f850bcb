"""Lives of a real run, each in a process of its own, cut short by SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


def live(folder: Path, batches: int | None, seconds: float, workload: str = "every") -> bool:
    """Run until done, or kill the whole process group so many seconds after so many batches; whether it was done."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "resumable.py"), str(folder), workload],
        stdout=subprocess.PIPE,
        stderr=(folder / "errors.txt").open("w"),
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        for told, _ in enumerate(process.stdout, 1):
            if told == batches:
                time.sleep(seconds)
                break
        else:
            assert process.wait(60) == 0, (folder / "errors.txt").read_text()[-3000:]
        return process.poll() is not None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
