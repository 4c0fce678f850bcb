"""Choose the technique that combines a tree's slices into windows, per operator: the fastest for its windows.

Speeds are nanoseconds of one core, from `weft calibrate` on this machine, or weft's defaults. The time of a technique
follows from four counts, which are the same for every group:

    kept      partials that the tables of a batch are built over
    passed    partials that a query's windows slide over in a batch
    combined  partials of all windows together
    answers
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, cast, get_args

from weft.aggregates import ROWS, components
from weft.aggregates.operators import OPERATOR_FACTS, accepts, fallback
from weft.calibration.speeds import DEFAULT_SPEEDS, Speed, Speeds
from weft.model import Call, PlanError, Window
from weft.plan.logical import Plan, Served, Tree

Latency = Literal["batch", "bounded"]

MICROS = 1_000_000

BOUNDED = ("slick_deque_inv", "daba")
"""Each slide takes a constant number of operations; the first that accepts an operator is used."""


class BadLatency(PlanError):
    """An unknown latency."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The four counts of a tree, per group and second of stream."""

    kept: float
    passed: float
    combined: float
    answers: float

    @classmethod
    def of(cls, windows: Collection[Window], edge_rate: float, batch_seconds: float) -> Counts:
        lengths = [w.length / MICROS for w in windows]
        batches = 1 / batch_seconds
        return cls(
            kept=edge_rate * (max(lengths) + batch_seconds) * batches,
            passed=sum(edge_rate * (length + batch_seconds) * batches for length in lengths),
            combined=sum(edge_rate * length * MICROS / w.slide for w, length in zip(windows, lengths)),
            answers=sum(MICROS / w.slide for w in windows),
        )

    def nanoseconds(self, speed: Speed) -> float:
        return (
            self.kept * speed.build
            + self.passed * speed.passed
            + self.combined * speed.combined
            + self.answers * speed.answer
        )


CANDIDATES = ("prefix", "blocks", "panes", "two_stacks", "slick_deque_inv", "slick_deque_non_inv")
"""What `auto` chooses from. The others are slower than one of these over columns, for any windows."""


def serve(plan: Plan, speeds: Speeds | None = None, *, latency: Latency = "batch", batch_seconds: float = 10.0) -> Plan:
    """The plan with a technique for each operator of each tree."""
    by_name = plan.workload.by_name

    def served(tree: Tree) -> Tree:
        queries = [by_name[name] for name in tree.queries]
        windows = {q.window for q in queries}
        counts = Counts.of(windows, float(tree.edge_rate), batch_seconds)
        operators = operators_of({q.calls for q in queries})
        return replace(tree, serving=tuple(_choose(o, tree.technique, counts, speeds, latency) for o in operators))

    return replace(plan, trees=tuple(map(served, plan.trees)), calibrated=speeds is not None)


def checked_latency(name: str) -> Latency:
    if name not in get_args(Latency):
        raise BadLatency(f"there is no latency {name!r}; choose one of {', '.join(get_args(Latency))}")
    return cast(Latency, name)


def operators_of(calls: Collection[tuple[Call, ...]]) -> tuple[str, ...]:
    """The operators that these calls may need; combine functions of users have tables of their own."""
    kept = (ROWS, *components(tuple(chain.from_iterable(calls)), {}))  # every tree counts its rows
    return tuple(sorted({operator for c in kept for operator in c.definition.combine.operators}))


def _choose(operator: str, technique: str, counts: Counts, speeds: Speeds | None, latency: Latency) -> Served:
    if latency == "bounded":
        return Served(operator, next(name for name in BOUNDED if accepts(name, operator)))
    if technique != "auto":
        return Served(operator, technique if accepts(technique, operator) else fallback(operator))
    speed_of = (speeds or DEFAULT_SPEEDS)[OPERATOR_FACTS[operator].priced_as or operator]
    ranked = sorted((counts.nanoseconds(speed), name) for name, speed in speed_of.items() if accepts(name, operator))
    (best, name), *others = ranked
    return Served(operator, name, best, *((others[0][1], others[0][0]) if others else ()))
