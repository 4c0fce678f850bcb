"""When the stream fails, the service stays and says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from tests.support.serving import rows, start
from weft.service import AnswerBuffer, Limits, Server, Service, make_app, open_socket
from weft.spark.errors import RunFailed

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_stream_that_failed_is_not_ready_and_says_why(spark: Any, tmp_path: Path) -> None:
    def full(batch: int, answers: Any) -> None:
        raise OSError("the shelf is full")

    answers = AnswerBuffer()
    run = start(spark, tmp_path, answers, sink=full)
    server = Server(make_app(Service(run, answers, Limits())), open_socket("127.0.0.1", 0))
    server.start()
    try:
        pq.write_table(rows(0), tmp_path / "rows" / "0000.parquet")
        with pytest.raises(RunFailed, match="the shelf is full"):
            run.wait(120)
        with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
            ready = client.get("/health/ready")
            assert ready.status_code == 503
            assert "the shelf is full" in ready.json()["what"]
            assert client.get("/health/live").status_code == 200
            added = client.post("/queries", json={"sql": "SELECT 1"})
            assert (added.status_code, "same checkpoint" in added.json()["way_out"]) == (503, True)
            assert "\nweft_up 0\n" in client.get("/metrics").text
            assert client.get("/status").json()["failure"] == ready.json()["what"]
            live = client.get("/answers/live").text
            assert "event: end\n" in live
            assert "the shelf is full" in live
        assert not answers.after((-1, 0)), "nothing is shown that was not committed"
    finally:
        server.stop()
