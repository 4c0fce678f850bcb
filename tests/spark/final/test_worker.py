"""What Python workers keep between tasks."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from weft.spark import worker


class Knot:
    """Only the collector can free it."""

    def __init__(self) -> None:
        self.me = self


def three_tasks() -> None:
    """In a new process, as tasks are counted from its start."""
    knot = Knot()
    alive = weakref.ref(knot)
    worker.freeze_what_stays()
    frozen = gc.get_freeze_count()
    assert frozen > 1000, "modules are there for ever"
    del knot
    gc.collect()
    assert alive() is not None, "the collector does not look at it"
    worker.freeze_what_stays()
    assert alive() is None
    later = [[] for _ in range(frozen)]  # type: ignore[var-annotated]
    worker.freeze_what_stays()
    assert gc.get_freeze_count() < frozen + len(later), "the third task leaves things as they are"


def test_what_stays_is_hidden_from_the_collector_and_garbage_among_it_is_found_later() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(three_tasks).result()
