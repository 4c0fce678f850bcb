"""A signal to the whole process group, as `timeout` and supervisors send it: the batch ends, and a sentence says so."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from weft.spark.checkpoint.batch_log import BatchLog
from weft.spark.checkpoint.files import CheckpointFiles

QUERY = "CREATE VIEW n AS SELECT window.start AS start, count(*) AS n FROM s GROUP BY window(timestamp, '2 seconds')"


@pytest.mark.spark
@pytest.mark.slow
def test_a_signal_to_the_whole_group_ends_a_run_after_its_batch(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(QUERY)
    where = ["--sink", "noop", "--checkpoint", str(tmp_path / "state")]
    stream = ["--source", "rate:500", "--event-time", "timestamp", "--trigger", "300 milliseconds"]
    log = tmp_path / "log"
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", "run", str(tmp_path / "q.sql"), *stream, *where, "--json"],
        stdout=subprocess.PIPE,
        stderr=log.open("w"),
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert any(json.loads(line)["batch"] >= 2 for line in process.stdout), log.read_text()
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=180)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    output = log.read_text()
    assert process.returncode == 0, output
    assert "Traceback" not in output
    stopped = re.search(r"^Stopped after batch (\d+); start it again with the same checkpoint", output, re.MULTILINE)
    assert stopped, output
    record = BatchLog(CheckpointFiles(str(tmp_path / "state"))).newest()
    assert not record.is_initial
    assert record.batch == int(stopped[1])
