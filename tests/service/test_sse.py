"""Live answers over a real connection: they come with their batch, and a reader who comes back misses none."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.serving import Served

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def events(lines: Iterator[str]) -> Iterator[tuple[str, str | None, Any]]:
    fields: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line:
            if "event" in fields:
                yield fields["event"], fields.get("id"), json.loads(fields["data"])
            fields = {}


def read(served: Served, path: str, **options: Any) -> list[tuple[str, str | None, Any]]:
    with served.client.stream("GET", path, **options) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        return list(events(response.iter_lines()))


def test_a_reader_gets_the_answers_of_a_batch_as_it_ends(served: Served) -> None:
    heard: list[tuple[str, str | None, Any]] = []
    listening = threading.Event()

    def listen() -> None:
        with (
            httpx.Client(base_url=served.server.url, timeout=120, trust_env=False) as client,
            client.stream("GET", "/queries/high/answers/live") as response,
        ):
            lines = response.iter_lines()
            assert next(lines).startswith("retry")
            listening.set()
            heard.append(next(events(lines)))

    thread = threading.Thread(target=listen)
    thread.start()
    assert listening.wait(60)
    batch = served.write()
    thread.join(60)
    ((kind, event, data),) = heard
    assert (kind, data["query"], data["batch"]) == ("answers", "high", batch)
    assert event is not None
    assert event.startswith(f"{batch}-")
    assert data["count"] == len(data["rows"]) > 0


def test_a_reader_who_comes_back_goes_on_after_its_last_event(served: Served) -> None:
    served.write(2)
    whole = [e for e in read(served, "/answers/live", params={"after": -1, "seconds": 0.5}) if e[0] == "answers"]
    assert len({event for _, event, _ in whole}) == len(whole) > 3
    middle = len(whole) // 2
    again = read(served, "/answers/live", params={"seconds": 0.5}, headers={"Last-Event-ID": str(whole[middle][1])})
    assert [e for e in again if e[0] == "answers"] == whole[middle + 1 :]


def test_an_id_that_is_none_is_refused(served: Served) -> None:
    response = served.client.get("/answers/live", headers={"Last-Event-ID": "yesterday"})
    assert response.status_code == 422
    assert "is not the id of an event" in response.json()["what"]
