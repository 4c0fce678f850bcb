"""The newest answers of each query, in memory: what the service shows beside the sink.

A reader of live answers has a position in this buffer and no queue of its own, so a slow reader costs nothing: if the
answers that it would read next are gone, it is told so.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import pyarrow as pa

from weft.service.json_values import rows_of, to_bytes

Place = tuple[int, int]
"""A position: a batch, and a number in it. All answers are in this order, also after a restart."""

BEFORE_ALL: Place = (-1, 0)


@dataclass(frozen=True)
class AnswerPortion:
    """What one batch answered to one query; `table` holds the first of `count` rows."""

    query: str
    place: Place
    table: pa.Table
    count: int

    @property
    def batch(self) -> int:
        return self.place[0]

    def as_json(self) -> dict[str, Any]:
        return {"query": self.query, "batch": self.batch, "count": self.count, "rows": rows_of(self.table)}

    @cached_property
    def encoded(self) -> bytes:
        """One line of JSON, made once for all readers."""
        return to_bytes(self.as_json())


class AnswerBuffer:
    """Keeps up to `rows` rows of each query, complete batches at a time, and wakes readers that wait for more."""

    def __init__(self, rows: int = 1000) -> None:
        self.rows = rows
        self._lock = threading.Lock()
        self._kept: dict[str, deque[AnswerPortion]] = {}
        self._gone: dict[str, Place] = {}
        self._newest: Place = BEFORE_ALL
        self._wakers: dict[object, Callable[[], object]] = {}
        self._left: set[str] = set()
        self.active_queries: Callable[[], Collection[str]] | None = None
        """The queries of the job; answers of other queries are dropped with the second batch without them."""

    def take(self, batch: int, answers: Mapping[str, pa.Table], counts: Mapping[str, int]) -> None:
        with self._lock:
            for number, name in enumerate(sorted(answers)):
                self._keep(AnswerPortion(name, (batch, number), answers[name], counts[name]))
            self._forget_queries_that_left()
        self.wake()

    def wake(self) -> None:
        """Wake every waiting reader."""
        with self._lock:
            wakers = list(self._wakers.values())
        for wake in wakers:
            wake()

    def _forget_queries_that_left(self) -> None:
        if self.active_queries is not None:
            left = self._kept.keys() - set(self.active_queries())
            for name in left & self._left:
                del self._kept[name]
                self._gone.pop(name, None)
            self._left = left

    def _keep(self, portion: AnswerPortion) -> None:
        if portion.place <= self._newest:
            return
        self._newest = portion.place
        kept = self._kept.setdefault(portion.query, deque())
        kept.append(portion)
        while len(kept) > 1 and sum(p.table.num_rows for p in kept) > self.rows:
            self._gone[portion.query] = kept.popleft().place

    @property
    def newest(self) -> Place:
        with self._lock:
            return self._newest

    def after(self, place: Place, queries: Iterable[str] | None = None) -> list[AnswerPortion]:
        """The answers after a position that are kept, in order; of some queries or of all."""
        with self._lock:
            portions: list[AnswerPortion] = []
            for kept in self._of(self._kept, queries):
                portions.extend(takewhile(lambda p: p.place > place, reversed(kept)))
        return sorted(portions, key=lambda p: p.place)

    def gone(self, queries: Iterable[str] | None = None) -> Place:
        """The position of the newest answers that are no longer kept."""
        with self._lock:
            return max(self._of(self._gone, queries), default=BEFORE_ALL)

    @staticmethod
    def _of(what: Mapping[str, Any], queries: Iterable[str] | None) -> Iterable[Any]:
        return what.values() if queries is None else [what[name] for name in queries if name in what]

    def watch(self, who: object, wake: Callable[[], object]) -> None:
        """Call `wake` after every batch, in the batch's thread; it must not block."""
        with self._lock:
            self._wakers[who] = wake

    def unwatch(self, who: object) -> None:
        with self._lock:
            self._wakers.pop(who, None)

    @property
    def watchers(self) -> int:
        with self._lock:
            return len(self._wakers)
