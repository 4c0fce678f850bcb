"""The run's metrics in Prometheus' text format: base units, `_total` for counters, labels where there are many."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

from weft.plan import query_costs
from weft.service.service import Service, lag

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Samples = Iterable[tuple[Mapping[str, str], float | None]]


@dataclass(frozen=True, slots=True)
class Family:
    """Samples of one name; those without a value are left out."""

    name: str
    kind: Literal["counter", "gauge"]
    about: str
    samples: Samples

    def lines(self) -> Iterable[str]:
        yield f"# HELP {self.name} {self.about}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples:
            if value is not None:
                named = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
                yield f"{self.name}{{{named}}} {value!r}" if named else f"{self.name} {value!r}"


def escaped(text: str) -> str:
    r"""
    >>> escaped('a"b\\c\nd')
    'a\\"b\\\\c\\nd'
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def exposition(service: Service) -> str:
    return "".join(f"{line}\n" for family in families(service) for line in family.lines())


def families(service: Service) -> list[Family]:
    run = service.run
    metrics, plan, trees, mark = run.metrics(), run.plan(), run.trees(), run.watermark
    costs, total = query_costs(plan), float(plan.cost) or 1.0
    last = run.batches()[-1:]
    latest = last[0].max_event_time if last else None
    refreshed = metrics["refreshes_by_query"]

    def one(value: float | None) -> Samples:
        return [({}, value)]

    def by_query(values: Mapping[str, float | None]) -> Samples:
        return [({"query": q.name}, values.get(q.name, 0)) for q in plan.workload]

    def by_refreshed(what: str) -> Samples:
        return [({"query": name}, refresh[what]) for name, refresh in refreshed.items()]

    def by_tree(what: str) -> Samples:
        return [({"tree": str(tree["tree"])}, tree[what]) for tree in trees]

    return [
        Family("weft_build_info", "gauge", "The version of weft.", [({"version": version("weft")}, 1)]),
        Family("weft_up", "gauge", "Whether the stream runs.", one(int(service.failure() is None))),
        Family("weft_queries", "gauge", "Queries in the job.", one(len(plan.workload))),
        Family("weft_trees", "gauge", "Trees of the plan.", one(len(plan.trees))),
        Family("weft_plan_changes_total", "counter", "Changes of the plan in this run.", one(metrics["plan_changes"])),
        Family("weft_plan_cost_operations", "gauge", "Estimated operations per second.", one(float(plan.cost))),
        Family(
            "weft_batches_total",
            "counter",
            "Batches since the job began.",
            one(0 if metrics["batch"] is None else metrics["batch"] + 1),
        ),
        Family(
            "weft_batch_phase_seconds_total",
            "counter",
            "Seconds that batches of this run spent in each phase; phases of buckets lie inside final.",
            [({"phase": phase.replace(" ", "_")}, s) for phase, s in sorted(metrics["seconds_by_phase"].items())],
        ),
        Family("weft_rows_total", "counter", "Rows read since the job began.", one(metrics["rows"])),
        Family(
            "weft_bad_rows_total",
            "counter",
            "Rows that could not be read, written to the side output.",
            one(metrics["bad"]),
        ),
        Family(
            "weft_failed_queries",
            "gauge",
            "Queries that left because they could not be answered.",
            one(len(metrics["failed"])),
        ),
        Family(
            "weft_watermark_timestamp_seconds",
            "gauge",
            "The watermark, in event time.",
            one(None if mark is None else mark / 1e6),
        ),
        Family(
            "weft_lag_seconds",
            "gauge",
            "From the latest event time to the clock.",
            one(None if latest is None else max(0.0, time.time() - latest / 1e6)),
        ),
        Family("weft_state_bytes", "gauge", "State in the checkpoint.", one(sum(t["state_bytes"] for t in trees))),
        Family(
            "weft_synopsis_bytes",
            "gauge",
            "Bytes of values, or samples of them, that percentiles and similar aggregates kept in the last batch.",
            one(metrics["synopsis_bytes"]),
        ),
        Family(
            "weft_worker_memory_bytes",
            "gauge",
            "Largest memory of the Python workers in the last batch.",
            one(last[0].worker_memory if last else None),
        ),
        Family("weft_live_readers", "gauge", "Readers of live answers.", one(service.answers.watchers)),
        Family(
            "weft_query_matched_rows_total",
            "counter",
            "Rows that passed the query's filter.",
            by_query(metrics["matched_by_query"]),
        ),
        Family(
            "weft_query_answers_total", "counter", "Rows of the query's answers.", by_query(metrics["answers_by_query"])
        ),
        Family(
            "weft_query_late_rows_total",
            "counter",
            "Rows that came too late for a window of the query.",
            by_query(metrics["late_by_query"]),
        ),
        Family(
            "weft_query_lag_seconds",
            "gauge",
            "From the end of the query's newest answered window to the clock.",
            by_query({q.name: lag(q, mark, refreshed) for q in plan.workload}),
        ),
        Family(
            "weft_query_refreshes_total",
            "counter",
            "Windows that a query with SLIDE AT MOST was answered for.",
            by_refreshed("refreshes"),
        ),
        Family(
            "weft_query_refresh_late_seconds",
            "gauge",
            "How long ago the next answer of a query with SLIDE AT MOST was due, in event time; above 0: overload.",
            by_refreshed("late_seconds"),
        ),
        Family(
            "weft_refresh_runs_total",
            "counter",
            "Runs in which queries with SLIDE AT MOST were answered.",
            one(metrics["refresh_runs"]),
        ),
        Family(
            "weft_refresh_shared_runs_total",
            "counter",
            "Of these, those in which several queries were answered.",
            one(metrics["refresh_shared_runs"]),
        ),
        Family(
            "weft_query_cost_ratio",
            "gauge",
            "The query's share of the plan's cost.",
            by_query({name: float(cost) / total for name, cost in costs.items()}),
        ),
        Family("weft_tree_slices", "gauge", "Slices kept, in the bucket that has the most.", by_tree("slices")),
        Family("weft_tree_partials", "gauge", "Partials kept.", by_tree("partials")),
        Family("weft_tree_state_bytes", "gauge", "Bytes in the checkpoint.", by_tree("state_bytes")),
    ]
