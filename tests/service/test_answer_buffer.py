"""The buffer of answers alone: what is kept, what is told to whom, and who is cut off."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pyarrow as pa
import pytest

from weft.service import AnswerBuffer, Limits
from weft.service.errors import Unserved
from weft.service.sse import LiveAnswers, place_of


def table(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64())})


def filled(rows: int, batches: int) -> AnswerBuffer:
    """Each batch answers two rows to b, and every other one a row to a."""
    buffer = AnswerBuffer(rows)
    for batch in range(batches):
        answer(buffer, batch)
    return buffer


def answer(buffer: AnswerBuffer, batch: int) -> None:
    found = {"b": table(batch, batch)} | ({"a": table(batch)} if batch % 2 == 0 else {})
    buffer.take(batch, found, {name: t.num_rows for name, t in found.items()})


def test_each_query_keeps_its_newest_rows_and_says_what_is_gone() -> None:
    buffer = filled(rows=4, batches=6)
    assert [p.batch for p in buffer.after((-1, 0), ["b"])] == [4, 5]
    assert [p.batch for p in buffer.after((-1, 0), ["a"])] == [0, 2, 4]
    assert (buffer.gone(["b"])[0], buffer.gone(["a"])[0], buffer.gone()[0]) == (3, -1, 3)
    assert [(p.query, p.batch) for p in buffer.after((4, 0))] == [("b", 4), ("b", 5)]


def test_a_batch_that_is_larger_than_the_buffer_is_kept_until_the_next() -> None:
    buffer = AnswerBuffer(rows=2)
    buffer.take(0, {"q": table(1, 2)}, {"q": 7})
    (portion,) = buffer.after((-1, 0))
    assert (portion.as_json()["count"], len(portion.as_json()["rows"])) == (7, 2)
    buffer.take(1, {"q": table(3)}, {"q": 1})
    assert [p.batch for p in buffer.after((-1, 0))] == [1]


def test_a_repeated_batch_is_not_answered_twice() -> None:
    buffer = filled(rows=100, batches=3)
    answer(buffer, 2)
    assert [p.batch for p in buffer.after((-1, 0), ["b"])] == [0, 1, 2]


def test_answers_of_who_left_go_with_the_second_batch_without_it() -> None:
    buffer = filled(rows=100, batches=2)
    buffer.active_queries = lambda: ["b"]
    answer(buffer, 3)
    assert buffer.after((-1, 0), ["a"])
    answer(buffer, 5)
    assert not buffer.after((-1, 0), ["a"])


@pytest.mark.parametrize("event", ["", "7", "a-1", "-1-0", "1-2-3", "9" * 40 + "-1"])
def test_an_id_of_no_event_is_refused(event: str) -> None:
    with pytest.raises(Unserved, match="is not the id of an event"):
        place_of(event)


class Reader:
    """The other side of a connection: it reads when it is told to, and every event that arrived is there."""

    def __init__(self, buffer: AnswerBuffer, after: tuple[int, int] | None, **limits: Any) -> None:
        class Job:
            answers = buffer
            limits: Limits
            run: Any
            closed = False

            @staticmethod
            def failure() -> None:
                return None

        Job.limits = Limits(**limits)
        self.job = Job
        self.ready = asyncio.Event()
        self.sent: list[bytes] = []
        self.statuses: list[int] = []
        self.response = LiveAnswers(Job, None, after, None)  # type: ignore[arg-type]

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.statuses.append(message["status"])
        else:
            await self.ready.wait()
            self.sent.append(message.get("body", b""))

    async def _receive(self) -> Any:
        await asyncio.Event().wait()

    async def run(self) -> None:
        async with asyncio.timeout(20):
            await self.response({"type": "http", "method": "GET", "headers": []}, self._receive, self._send)

    def events(self) -> list[tuple[str, str | None, Any]]:
        found = []
        for block in b"".join(self.sent).decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "event" in fields:
                found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
        return found


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def test_a_reader_who_comes_back_gets_what_it_missed_and_no_more() -> None:
    async def play() -> list[tuple[str, str | None, Any]]:
        reader = Reader(filled(rows=100, batches=4), after=(2, 0))
        reader.ready.set()
        task = asyncio.create_task(reader.run())
        await until(lambda: len(reader.events()) == 2)
        reader.job.closed = True
        reader.job.answers.wake()
        await task
        return reader.events()

    events = asyncio.run(play())
    assert [(kind, event) for kind, event, _ in events] == [("answers", "2-1"), ("answers", "3-0"), ("end", None)]
    assert events[0][2] == {"query": "b", "batch": 2, "count": 2, "rows": [{"v": 2}, {"v": 2}]}


def test_a_reader_who_was_away_for_too_long_is_told_of_the_gap() -> None:
    async def play() -> list[tuple[str, str | None, Any]]:
        reader = Reader(filled(rows=4, batches=6), after=(0, 0))
        reader.ready.set()
        task = asyncio.create_task(reader.run())
        await until(lambda: len(reader.events()) >= 4)
        task.cancel()
        return reader.events()

    events = asyncio.run(play())
    assert events[0][0] == "gap"
    assert "up to batch 3" in events[0][2]["what"]
    assert [event for _, event, _ in events[1:]] == ["4-0", "4-1", "5-0"]


def test_a_slow_reader_is_cut_off_and_the_batches_go_on() -> None:
    async def play() -> list[tuple[str, str | None, Any]]:
        buffer = filled(rows=4, batches=1)
        reader = Reader(buffer, after=None)
        task = asyncio.create_task(reader.run())
        await until(lambda: reader.statuses)
        for batch in range(1, 20):  # no call here waits for the reader
            answer(buffer, batch)
        reader.ready.set()
        await task
        return reader.events()

    events = asyncio.run(play())
    assert [kind for kind, _, _ in events] == ["cut"]


def test_a_reader_who_reads_nothing_loses_the_connection() -> None:
    async def play() -> Reader:
        reader = Reader(filled(rows=4, batches=1), after=(-1, 0), read_seconds=0.05)
        async with asyncio.timeout(10):
            await reader.run()
        assert reader.job.answers.watchers == 0
        return reader

    assert asyncio.run(play()).sent == []


def test_one_reader_too_many_is_sent_away() -> None:
    async def play() -> list[int]:
        buffer = filled(rows=4, batches=1)
        first, second = Reader(buffer, None, streams=1), Reader(buffer, None, streams=1)
        first.ready.set()
        second.ready.set()
        task = asyncio.create_task(first.run())
        await until(lambda: first.statuses)
        await second.run()
        task.cancel()
        return second.statuses

    assert asyncio.run(play()) == [429]
