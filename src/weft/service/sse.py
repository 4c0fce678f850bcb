"""Answers as they come, as server-sent events.

event: answers   id: BATCH-NUMBER   data: {"query", "batch", "count", "rows"}
event: gap       answers after the requested id are no longer kept; the next events are those that are
event: cut       the reader was too slow; the connection ends, and it may come back with its Last-Event-ID
event: end       no more will come: the query left, the stream failed, or the service stops
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from weft.service.answer_buffer import AnswerBuffer, Place
from weft.service.errors import Problem, Unserved, respond
from weft.service.json_values import to_bytes
from weft.service.service import Service

BEAT_SECONDS = 10.0
"""How often a comment line is sent when there are no events, so that proxies keep the connection open."""


def place_of(event: str) -> Place:
    """
    >>> place_of("17-3")
    (17, 3)
    """
    match = re.fullmatch(r"([0-9]{1,18})-([0-9]{1,9})", event)
    if match is None:
        raise Unserved(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"{event[:50]!r} is not the id of an event",
            "Send the id of the last event that arrived, such as 17-3, or none.",
        )
    return int(match[1]), int(match[2])


class LiveAnswers(Response):
    """Events from a position on, of some queries or of all. It waits for the reader; the job never waits for it."""

    media_type = "text/event-stream"

    def __init__(
        self, service: Service, queries: Sequence[str] | None, after: Place | None, seconds: float | None
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._service = service
        self._answers: AnswerBuffer = service.answers
        self._queries = None if queries is None else list(dict.fromkeys(queries))
        self._after = after
        self._seconds = seconds
        self._wake = asyncio.Event()
        self._left = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self._service.limits
        if self._answers.watchers >= limits.streams:
            what = f"{limits.streams} readers of live answers are there, and no more are let in"
            await respond(Problem(status=429, what=what, way_out="Come back later."))(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        self._answers.watch(self, lambda: _wake(loop, self._wake))
        listening = asyncio.create_task(self._listen(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for event in self._events():
                async with asyncio.timeout(limits.read_seconds):
                    await send({"type": "http.response.body", "body": event, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:  # nobody reads: not even the reason would arrive
            return
        finally:
            self._answers.unwatch(self)
            listening.cancel()

    async def _listen(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._left = True
        self._wake.set()

    async def _events(self) -> AsyncIterator[bytes]:
        place = self._answers.newest if self._after is None else self._after
        gone = self._answers.gone(self._queries)
        yield b"retry: 2000\n\n"
        if gone > place:
            yield _event("gap", f"answers up to batch {gone[0]} are kept no longer", "Read them where the sink writes.")
            place = gone
        until = None if self._seconds is None else asyncio.get_running_loop().time() + self._seconds
        while not self._left:
            self._wake.clear()
            portions = self._answers.after(place, self._queries)
            if self._answers.gone(self._queries) > place:
                yield _event("cut", "you read too slowly, and answers are lost to you", "Read where the sink writes.")
                return
            for portion in portions:
                yield _answers(portion.place, portion.encoded)
                place = portion.place
            ended = None if portions else self._end()
            if ended is not None:
                yield ended
                return
            left = None if until is None else until - asyncio.get_running_loop().time()
            if left is not None and left <= 0:
                return
            if not portions:
                with suppress(TimeoutError):
                    async with asyncio.timeout(BEAT_SECONDS if left is None else min(BEAT_SECONDS, left)):
                        await self._wake.wait()
                    continue
                yield b": still here\n\n"

    def _end(self) -> bytes | None:
        if self._service.closed:
            return _event("end", "the service stops", "Connect again when it is back.")
        failed = self._service.failure()
        if failed is not None:
            return _event("end", failed, "Start the service again: it repeats the batch that failed.")
        if self._queries is not None and not set(self._queries) & set(self._service.run.queries()):
            left = f"{', '.join(self._queries)} {'has' if len(self._queries) == 1 else 'have'} left the job"
            return _event("end", left, "What it answered stays where the sink wrote it.")
        return None


def _answers(place: Place, data: bytes) -> bytes:
    return b"event: answers\nid: %d-%d\ndata: %s\n\n" % (*place, data)


def _event(kind: str, what: str, way_out: str) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), to_bytes({"what": what, "way_out": way_out}))


def _wake(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    """From the thread of a batch, which goes on even where the service has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(event.set)
