"""The run's metrics in Prometheus' text format: base units, `_total` for counters, labels where there are many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

from weft.plan import Plan, query_costs
from weft.service.service import Service, lag
from weft.spark.execution.metrics import BatchMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Samples = Iterable[tuple[Mapping[str, str], float | None]]
"""The labels and the value of each sample; None: it has no value, and is left out."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a run that all samples of one response are read from."""

    metrics: Mapping[str, Any]
    plan: Plan
    trees: Sequence[Mapping[str, Any]]
    watermark: int | None
    last_batch: BatchMetrics | None
    running: bool
    readers: int
    """Readers of live answers."""

    @classmethod
    def of(cls, service: Service) -> Snapshot:
        run = service.run
        last = run.batches()[-1:]
        return cls(
            metrics=run.metrics(),
            plan=run.plan(),
            trees=run.trees(),
            watermark=run.watermark,
            last_batch=last[0] if last else None,
            running=service.failure() is None,
            readers=service.answers.watchers,
        )

    @property
    def max_event_time(self) -> int | None:
        return None if self.last_batch is None else self.last_batch.max_event_time


@dataclass(frozen=True, slots=True)
class Family:
    """The samples of one name."""

    name: str
    about: str
    samples: Callable[[Snapshot], Samples]

    @property
    def kind(self) -> Literal["counter", "gauge"]:
        return "counter" if self.name.endswith("_total") else "gauge"

    def lines(self, snapshot: Snapshot) -> Iterable[str]:
        yield f"# HELP {self.name} {self.about}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples(snapshot):
            if value is not None:
                label_list = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
                yield f"{self.name}{{{label_list}}} {value!r}" if label_list else f"{self.name} {value!r}"


def escaped(text: str) -> str:
    r"""
    >>> escaped('a"b\\c\nd')
    'a\\"b\\\\c\\nd'
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def exposition(service: Service) -> str:
    snapshot = Snapshot.of(service)
    return "".join(f"{line}\n" for family in FAMILIES for line in family.lines(snapshot))


def _one(value: Callable[[Snapshot], float | None]) -> Callable[[Snapshot], Samples]:
    """One sample without labels."""
    return lambda run: [({}, value(run))]


def _metric(key: str) -> Callable[[Snapshot], Samples]:
    """One sample: a metric of the run."""
    return _one(lambda run: run.metrics[key])


def _by_query(key: str) -> Callable[[Snapshot], Samples]:
    """A sample per query of the plan, from a metric of the run; a query that is missing there has 0."""
    return lambda run: [({"query": query.name}, run.metrics[key].get(query.name, 0)) for query in run.plan.workload]


def _by_refreshed_query(key: str) -> Callable[[Snapshot], Samples]:
    """A sample per query with SLIDE AT MOST that was answered."""
    return lambda run: [({"query": name}, of[key]) for name, of in run.metrics["refreshes_by_query"].items()]


def _by_tree(key: str) -> Callable[[Snapshot], Samples]:
    return lambda run: [({"tree": str(tree["tree"])}, tree[key]) for tree in run.trees]


def _batches(run: Snapshot) -> int:
    return 0 if run.metrics["batch"] is None else run.metrics["batch"] + 1


def _phase_seconds(run: Snapshot) -> Samples:
    seconds = sorted(run.metrics["seconds_by_phase"].items())
    return [({"phase": phase.replace(" ", "_")}, value) for phase, value in seconds]


def _lag_seconds(run: Snapshot) -> float | None:
    return None if run.max_event_time is None else max(0.0, time.time() - run.max_event_time / 1e6)


def _query_lags(run: Snapshot) -> Samples:
    refreshed = run.metrics["refreshes_by_query"]
    return [({"query": query.name}, lag(query, run.watermark, refreshed)) for query in run.plan.workload]


def _query_cost_ratios(run: Snapshot) -> Samples:
    costs, total = query_costs(run.plan), float(run.plan.cost) or 1.0
    return [({"query": query.name}, float(costs[query.name]) / total) for query in run.plan.workload]


FAMILIES = (
    Family("weft_build_info", "The version of weft.", lambda run: [({"version": version("weft")}, 1)]),
    Family("weft_up", "Whether the stream runs.", _one(lambda run: int(run.running))),
    Family("weft_queries", "Queries in the job.", _one(lambda run: len(run.plan.workload))),
    Family("weft_trees", "Trees of the plan.", _one(lambda run: len(run.plan.trees))),
    Family("weft_plan_changes_total", "Changes of the plan in this run.", _metric("plan_changes")),
    Family("weft_plan_cost_operations", "Estimated operations per second.", _one(lambda run: float(run.plan.cost))),
    Family("weft_batches_total", "Batches since the job began.", _one(_batches)),
    Family(
        "weft_batch_phase_seconds_total",
        "Seconds that batches of this run spent in each phase; phases of buckets lie inside final.",
        _phase_seconds,
    ),
    Family("weft_rows_total", "Rows read since the job began.", _metric("rows")),
    Family("weft_bad_rows_total", "Rows that could not be read, written to the side output.", _metric("bad")),
    Family(
        "weft_failed_queries",
        "Queries that left because they could not be answered.",
        _one(lambda run: len(run.metrics["failed"])),
    ),
    Family(
        "weft_watermark_timestamp_seconds",
        "The watermark, in event time.",
        _one(lambda run: None if run.watermark is None else run.watermark / 1e6),
    ),
    Family("weft_lag_seconds", "From the latest event time to the clock.", _one(_lag_seconds)),
    Family(
        "weft_state_bytes",
        "State in the checkpoint.",
        _one(lambda run: sum(tree["state_bytes"] for tree in run.trees)),
    ),
    Family(
        "weft_synopsis_bytes",
        "Bytes of values, or samples of them, that percentiles and similar aggregates kept in the last batch.",
        _metric("synopsis_bytes"),
    ),
    Family(
        "weft_worker_memory_bytes",
        "Largest memory of the Python workers in the last batch.",
        _one(lambda run: None if run.last_batch is None else run.last_batch.worker_memory),
    ),
    Family("weft_live_readers", "Readers of live answers.", _one(lambda run: run.readers)),
    Family("weft_query_matched_rows_total", "Rows that passed the query's filter.", _by_query("matched_by_query")),
    Family("weft_query_answers_total", "Rows of the query's answers.", _by_query("answers_by_query")),
    Family(
        "weft_query_late_rows_total", "Rows that came too late for a window of the query.", _by_query("late_by_query")
    ),
    Family("weft_query_lag_seconds", "From the end of the query's newest answered window to the clock.", _query_lags),
    Family(
        "weft_query_refreshes_total",
        "Windows that a query with SLIDE AT MOST was answered for.",
        _by_refreshed_query("refreshes"),
    ),
    Family(
        "weft_query_refresh_late_seconds",
        "How long ago the next answer of a query with SLIDE AT MOST was due, in event time; above 0: overload.",
        _by_refreshed_query("late_seconds"),
    ),
    Family(
        "weft_refresh_runs_total",
        "Runs in which queries with SLIDE AT MOST were answered.",
        _metric("refresh_runs"),
    ),
    Family(
        "weft_refresh_shared_runs_total",
        "Of these, those in which several queries were answered.",
        _metric("refresh_shared_runs"),
    ),
    Family("weft_query_cost_ratio", "The query's share of the plan's cost.", _query_cost_ratios),
    Family("weft_tree_slices", "Slices kept, in the bucket that has the most.", _by_tree("slices")),
    Family("weft_tree_partials", "Partials kept.", _by_tree("partials")),
    Family("weft_tree_state_bytes", "Bytes in the checkpoint.", _by_tree("state_bytes")),
)
"""In the order of the response."""
