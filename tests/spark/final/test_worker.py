"""What Python workers keep between tasks."""

from __future__ import annotations

import gc
import weakref
from itertools import count

import pytest

from weft.spark import worker


class Knot:
    """Only the collector can free it."""

    def __init__(self) -> None:
        self.me = self


def test_what_stays_is_hidden_from_the_collector_and_garbage_among_it_is_found_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "_TASKS", count(1))
    knot = Knot()
    seen = weakref.ref(knot)
    try:
        worker.freeze_what_stays()
        hidden = gc.get_freeze_count()
        assert hidden > 1000, "modules are there for ever"
        del knot
        gc.collect()
        assert seen() is not None, "the collector does not look at it"
        worker.freeze_what_stays()
        assert seen() is None
        later = [[] for _ in range(hidden)]  # type: ignore[var-annotated]
        worker.freeze_what_stays()
        assert gc.get_freeze_count() < hidden + len(later), "the third task leaves things as they are"
    finally:
        gc.unfreeze()
