"""The service's view of its run; changes are made here, one at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import pyarrow as pa

from weft.model import ACQ, WeftError
from weft.plan import Plan, format, query_costs
from weft.service.answer_buffer import AnswerBuffer
from weft.service.errors import Unserved
from weft.service.limits import Limits
from weft.service.paused import Paused
from weft.spark import Run
from weft.spark.errors import RunFailed
from weft.spark.queries.validate import CannotChange, Since
from weft.sql import parse


class Service:
    def __init__(self, run: Run, answers: AnswerBuffer, limits: Limits) -> None:
        self.run = run
        self.answers = answers
        self.limits = limits
        self.closed = False
        self._paused = Paused(run.checkpoint.files)
        self._changing = threading.Lock()
        answers.active_queries = run.queries

    def close(self) -> None:
        """The service is about to stop: tell the readers of live answers."""
        self.closed = True
        self.answers.wake()

    def failure(self) -> str | None:
        """Why the stream no longer runs; None: it does."""
        if self.run.active:
            return None
        try:
            self.run.wait(0.01)
        except RunFailed as error:
            return str(error)
        return "the stream has ended"

    def queries(self) -> list[dict[str, Any]]:
        plan = self.run.plan()
        return self._described(plan, plan.workload)

    def query(self, name: str) -> dict[str, Any]:
        plan = self.run.plan()
        if name not in plan.workload.by_name:
            raise self.unknown(name)
        return self._described(plan, [plan.workload.by_name[name]])[0]

    def _described(self, plan: Plan, queries: Iterable[ACQ]) -> list[dict[str, Any]]:
        metrics, costs, total = self.run.metrics(), query_costs(plan), float(plan.cost) or 1.0
        trees = {name: number for number, tree in enumerate(plan.trees, 1) for name in tree.queries}
        return [
            {
                **self._standing(acq, metrics),
                "tree": trees[acq.name],
                "cost": float(costs[acq.name]),
                "cost_share": float(costs[acq.name]) / total,
            }
            for acq in queries
        ]

    def _standing(self, acq: ACQ, metrics: dict[str, Any]) -> dict[str, Any]:
        since, until, joined = None, None, True
        try:
            until = self.run.until(acq.name)
            since = self.run.since(acq.name)
        except CannotChange:  # no batch has taken it up yet, or it has just left
            joined = False
        return {
            "name": acq.name,
            "sql": acq.text,
            "range": format.duration(acq.shown.length),
            "slide": format.duration(acq.shown.slide),
            "keys": list(acq.keys),
            "where": acq.where,
            "joined": joined,
            "since": since,
            "until": until,
            "matched_rows": metrics["matched_by_query"].get(acq.name, 0),
            "answers": metrics["answers_by_query"].get(acq.name, 0),
            "late_rows": metrics["late_by_query"].get(acq.name, 0),
            "lag_seconds": lag(acq, self.run.watermark, metrics["refreshes_by_query"]),
        }

    def add(self, sql: str, since: Since = "now", begin: str | None = None, for_: str | None = None) -> list[str]:
        self._require_running()
        with self._changing:
            wanted = self._parsed(sql)
            self.limits.check_queries(len(self.run.queries()), len(wanted))
            self.limits.check_state(self.state_bytes())
            # A text that ends with .sql would be a file name here; one that ends with `;` is not.
            with refusing_as_spark():
                return self.run.add(f"{sql};", since=since, begin=begin, for_=for_)

    def preview(self, sql: str) -> tuple[Plan, Plan]:
        """The plan without and with the new queries; refuses what `add` would refuse."""
        self._require_running()
        wanted = self._parsed(sql)
        self.limits.check_queries(len(self.run.queries()), len(wanted))
        self.limits.check_state(self.state_bytes())
        with refusing_as_spark():
            return self.run.preview(f"{sql};")

    def replace(self, name: str, sql: str) -> None:
        self._require_running()
        with self._changing:
            self._require(name)
            self._parsed(sql)
            self.limits.check_state(self.state_bytes())
            with refusing_as_spark():
                self.run.replace(name, sql)

    def drop(self, name: str) -> None:
        self._require_running()
        with self._changing:
            if name in self.paused():
                self._paused.forget(name)
                return
            self._require(name)
            self.run.drop(name)

    def paused(self) -> dict[str, str]:
        """The SQL of the paused queries, by name."""
        return self._paused.outside_job(self.run.queries())

    def pause(self, name: str) -> None:
        """The query leaves with the next batch, and is remembered."""
        self._require_running()
        with self._changing:
            self._require(name)
            # Written first: a crash in between must not lose the query.
            self._paused.keep(self.run.plan().workload.by_name[name])
            try:
                self.run.drop(name)
            except WeftError:
                self._paused.forget(name)
                raise

    def resume(self, name: str) -> None:
        """The query joins again, and answers from the first window whose slices are all kept."""
        paused = self.paused()
        if name not in paused:
            raise Unserved(HTTPStatus.NOT_FOUND, f"no query {name} is paused", "GET /queries lists those that are.")
        self.add(paused[name], since="state")
        self._paused.forget(name)

    def ask(self, sql: str) -> pa.Table:
        self._require_running()
        self._parsed(sql)
        with refusing_as_spark():
            return self.run.ask(sql)

    def state_bytes(self) -> int:
        return sum(tree["state_bytes"] for tree in self.run.trees())

    def unknown(self, name: str) -> WeftError:
        there = self.run.queries()
        shown = ", ".join(there[:10]) + (f" and {len(there) - 10} more" if len(there) > 10 else "")
        return Unserved(HTTPStatus.NOT_FOUND, f"there is no query {name}", f"There are {shown}.")

    def _require(self, name: str) -> None:
        if name not in self.run.queries():
            raise self.unknown(name)

    def _require_running(self) -> None:
        failed = self.failure()
        if failed is not None:
            way_out = "Fix that and start the service again with the same checkpoint: nothing is lost."
            raise Unserved(HTTPStatus.SERVICE_UNAVAILABLE, failed, way_out)

    def _parsed(self, sql: str) -> list[ACQ]:
        queries = list(parse(sql, event_time=self.run.job.planner.options.event_time))
        for query in queries:
            self.limits.check_name(query)
            self.limits.check_overlap(query)
        return queries


@contextmanager
def refusing_as_spark() -> Iterator[None]:
    """A query that Spark cannot run, for example with an interval of years for Python, is no failure of the service."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("pyspark."):
            raise
        reason = str(error).strip().splitlines()[0]
        raise Unserved(HTTPStatus.UNPROCESSABLE_ENTITY, reason, "Write the query without it.") from error


def lag(acq: ACQ, watermark: int | None, refreshed: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Seconds since the end of the newest answered window; None: no window is answered yet."""
    if watermark is None or (acq.refresh == "at_most" and acq.name not in refreshed):
        return None
    end = acq.window.end(acq.window.last_ended(watermark))
    if acq.refresh == "at_most":
        end = refreshed[acq.name]["answered"]
    return max(0.0, time.time() - end / 1e6)
