"""`weft serve` as a process of its own: it stops when it is told to, and goes on where it stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.support.serving import QUERIES, SCHEMA, rows
from weft.cli.app import app
from weft.cli.client import NoService, call
from weft.cli.stream_options import parse_bytes

runner = CliRunner()
TOKEN = "of-this-test"
ADDED = "CREATE VIEW least AS SELECT k, min(v) AS least FROM stream GROUP BY k, window(ts, '10 seconds', '5 seconds')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rows").mkdir()
    (tmp_path / "queries.sql").write_text(QUERIES)
    return tmp_path


def arguments(folder: Path) -> list[str]:
    source, sink = f"parquet:{folder / 'rows'}", f"parquet:{folder / 'answers'}"
    files = ["--source", source, "--sink", sink, "--checkpoint", str(folder / "state"), "--schema", SCHEMA]
    return ["serve", str(folder / "queries.sql"), *files, "--port", "0", "--json"]


def write(folder: Path, file: int) -> None:
    path = folder / f"{file:04d}.parquet"
    pq.write_table(rows(file), path)
    os.utime(path, (1_700_000_000 + file, 1_700_000_000 + file))
    path.rename(folder / "rows" / path.name)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its address; it is stopped by SIGTERM in the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", *arguments(folder)],
        stdout=subprocess.PIPE,
        stderr=(folder / "log").open("a"),
        text=True,
        env={**os.environ, "WEFT_TOKEN": TOKEN},
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, (folder / "log").read_text()
        yield process, json.loads(first)["url"]
    finally:
        process.terminate()
        process.communicate(timeout=180)


def until(url: str, path: str, holds: Any) -> Any:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        found = call(url, "GET", path)
        if holds(found):
            return found
        time.sleep(0.2)
    raise AssertionError(f"{path} stayed at {found}")


@pytest.mark.spark
@pytest.mark.slow
def test_a_service_stops_cleanly_and_goes_on_with_the_queries_that_were_added(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_TOKEN", TOKEN)
    write(folder, 0)
    with serving(folder) as (process, url):
        until(url, "/status", lambda s: s["rows"] == 40)
        assert call(url, "POST", "/queries", {"sql": ADDED})["added"] == ["least"]
        call(url, "DELETE", "/queries/high")
        write(folder, 1)
        until(url, "/status", lambda s: s["rows"] == 80)
    assert process.returncode == 0, (folder / "log").read_text()
    assert "Traceback" not in (folder / "log").read_text()
    with pytest.raises(NoService):
        call(url, "GET", "/status")
    write(folder, 2)
    with serving(folder) as (process, url):
        until(url, "/status", lambda s: s["rows"] == 120)
        names = [query["name"] for query in call(url, "GET", "/queries")["queries"]]
        assert names == ["by_key", "least"]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=180)
        assert process.returncode == 0, (folder / "log").read_text()
    answered = pq.read_table(folder / "answers" / "by_key")
    starts = list(zip(answered.column("k").to_pylist(), answered.column("start").to_pylist()))
    assert len(starts) == len(set(starts)) > 0, "no window is answered twice"


def refused(folder: Path, *more: str) -> str:
    result = runner.invoke(app, [*arguments(folder), *more])
    assert result.exit_code == 2, result.output
    return result.stderr


def test_what_cannot_be_served_is_refused_before_spark_starts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_TOKEN", raising=False)
    assert "set a token with --token-file or WEFT_TOKEN" in refused(folder, "--host", "0.0.0.0")
    assert "--max-queries" in refused(folder, "--max-queries", "1")
    token = folder / "token"
    token.write_text(TOKEN)
    assert "choose another --host or --port" in refused(folder, "--host", "192.0.2.1", "--token-file", str(token))
    monkeypatch.setenv("WEFT_TOKEN", "two words")
    assert "holds no token" in refused(folder)


def test_without_the_extra_there_is_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cli.serve.find_spec", lambda name: None)
    assert "pip install 'weft[serve]'" in refused(folder)


def test_bytes_that_are_none_are_refused(folder: Path) -> None:
    assert parse_bytes("1 KiB") == 1024
    assert "20 GB" in refused(folder, "--max-state", "plenty")
