"""Batches without rows: while no row arrives, the watermark follows the clock as long as windows are open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from weft.engine import FOREVER, Layout
from weft.spark.checkpoint.batch_log import BatchRecord


class IdleTimer:
    """Calls `on_idle` with the seconds since the last row, after every `timeout` without one, in a thread of its own.

    `busy` is held meanwhile, so no other batch runs.
    """

    def __init__(
        self,
        timeout: float | None,
        busy: threading.Lock,
        active: Callable[[], bool],
        on_idle: Callable[[float], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._timeout = timeout
        self._busy = busy
        self._active = active
        self._on_idle = on_idle
        self._on_error = on_error
        self._last_rows = time.monotonic()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Without a timeout it does nothing."""
        self._last_rows = time.monotonic()
        if self._timeout is not None:
            self._thread = threading.Thread(target=self._watch, args=(self._timeout,), daemon=True)
            self._thread.start()

    def rows_arrived(self) -> None:
        self._last_rows = time.monotonic()

    def stop(self) -> None:
        """Wait for the batch that runs; no other begins."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def _running(self) -> bool:
        return self._active() and not self._stopping.is_set()

    def _watch(self, timeout: float) -> None:
        last_look = time.monotonic()
        while self._running:
            now = time.monotonic()
            if now - max(last_look, self._last_rows) < timeout:
                self._stopping.wait(min(timeout / 4, 0.5))
                continue
            last_look = now
            try:
                with self._busy:
                    quiet = time.monotonic() - self._last_rows
                    if self._running and quiet >= timeout:
                        self._on_idle(quiet)
            except Exception as error:
                self._on_error(error)


def has_open_windows(layout: Layout, before: BatchRecord) -> bool:
    """Whether some window holds rows and is not answered yet."""
    if before.watermark is None:
        return False
    opened = replace(layout, allowed_lateness=0, retention=0).horizons(before.watermark)
    newest = before.newest
    return any(newest.get(tree, -FOREVER) >= first for tree, first in opened.items())
