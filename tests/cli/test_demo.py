"""`weft demo --page`: what keeps it from serving is told before anything starts; and it serves the demo's job."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import httpx
import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft.service import open_socket
from weft.service.server import url_of

runner = CliRunner()


def test_a_port_that_is_taken_is_told_before_spark_starts() -> None:
    with open_socket("127.0.0.1", 0) as taken:
        taken.listen()
        result = runner.invoke(app, ["demo", "--page", "--port", url_of(taken).rsplit(":", 1)[1]])
    assert result.exit_code == 2
    assert "cannot listen" in result.stderr
    assert "Plan" not in result.stdout


def test_without_the_extra_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cli.serve.find_spec", lambda name: None)
    result = runner.invoke(app, ["demo", "--page"])
    assert result.exit_code == 2
    assert "pip install 'weft[serve]'" in result.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_the_page_shows_the_hundred_queries_and_ctrl_c_ends_it() -> None:
    command = [sys.executable, "-m", "weft", "demo", "--page", "--port", "0", "--rate", "500"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        assert process.stdout is not None
        found = next(filter(None, (re.search(r"a page to look at: (\S+)", line) for line in process.stdout)))
        with httpx.Client(base_url=found[1], trust_env=False, timeout=60) as client:
            assert "<title>weft</title>" in client.get("/").text
            picture = client.get("/picture").json()
            assert sum(len(tree["queries"]) for one in picture["passes"] for tree in one["trees"]) == 100
            assert client.get("/health/ready").json() == {"status": "ready"}
    finally:
        process.send_signal(2)
        process.communicate(timeout=120)
    assert process.returncode == 130
