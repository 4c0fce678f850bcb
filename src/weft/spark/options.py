"""The options of a job, each declared once: `weave`, `weft run`, `weft serve` and the reference page are made from it.

Nothing here imports Spark, so that `weft run --help` starts no JVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_type_hints

from weft.model import WeftError
from weft.optimizer import STRATEGIES
from weft.optimizer.choose_techniques import Latency, checked_latency
from weft.spark.errors import NotServed
from weft.sql import duration

Late = Literal["drop", "update", "side"]
Phantoming = Literal["auto", "always", "never"]
Aggregation = Literal["auto", "native", "lfta"]

TABLE_MEMORY = 64 << 20
"""Bytes for the hash tables of one task."""

LEAST_MEMORY = 1 << 12
"""Bytes that hash tables need at least."""


class BadOptions(WeftError):
    """Options that have no meaning, or that contradict each other."""


class UnknownOption(BadOptions, TypeError):
    """An option that does not exist."""


@dataclass(frozen=True, slots=True)
class Option:
    """What users read about an option."""

    metavar: str
    help: str
    command_default: str | None = None
    """The default of `weft run` and `weft serve`, where it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What a job is told beside its stream and its queries. Lengths of time are written as in Spark: '10 seconds'.

    >>> JobOptions(watermark="10 seconds").times.delay
    10000000
    """

    event_time: Annotated[str, Option("COLUMN", "The event-time column of the windows.")] = "ts"
    watermark: Annotated[
        str,
        Option(
            "INTERVAL",
            "How late a row may be: the watermark stays this far behind the latest event time.",
            command_default="10 seconds",
        ),
    ] = "0 seconds"
    late: Annotated[
        Late,
        Option(
            "drop|update|side",
            "What happens to a row behind the watermark: `drop` counts and drops it; `update` also adds it to windows "
            "that ended within `allowed_lateness` and sends their answers again, marked; `side` counts it and writes "
            "it to the `late_sink`.",
        ),
    ] = "drop"
    allowed_lateness: Annotated[
        str | None, Option("INTERVAL", "With `late=update`: how long after its end a window is still updated.")
    ] = None
    retention: Annotated[
        str | None,
        Option("INTERVAL", "Keep the slices of windows that ended within this time, for queries that join later."),
    ] = None
    max_skew: Annotated[
        str | None, Option("INTERVAL", "A row that is further ahead of the clock does not advance the watermark.")
    ] = None
    idle_timeout: Annotated[
        str | None, Option("INTERVAL", "When no row arrives for this long, the watermark advances with the clock.")
    ] = None
    strategy: Annotated[str, Option("NAME", f"How queries are grouped into trees: {', '.join(STRATEGIES)}.")] = (
        "tri_weave"
    )
    technique: Annotated[str, Option("NAME", "How windows are built from slices.")] = "auto"
    latency: Annotated[
        Latency,
        Option(
            "batch|bounded",
            "`batch`: highest throughput; `bounded`: a constant number of operations per slide, whatever the range.",
        ),
    ] = "batch"
    cost: Annotated[
        str,
        Option(
            "operations|seconds",
            "How plans are compared: by the papers' operations, or by seconds as `weft calibrate` measured them here.",
        ),
    ] = "operations"
    rate: Annotated[float, Option("ROWS", "Rows per second to plan for, until the stream has been measured.")] = 10_000
    buckets: Annotated[
        int | None,
        Option(
            "N", "Tasks of the final stage, by default one per core; a restart with another number moves the state."
        ),
    ] = None
    tolerance: Annotated[
        float | None,
        Option(
            "SHARE",
            "Replan all queries, beside the running job, when the amended plan costs this share more than the earlier "
            "plans predict; None never replans.",
        ),
    ] = 0.1
    phantoms: Annotated[
        Phantoming,
        Option(
            "auto|always|never",
            "Roll up groupings from finer ones: where the groups counted on the first rows make that cheaper, all from "
            "one, or none.",
        ),
    ] = "auto"
    groupings: Annotated[
        Aggregation,
        Option(
            "auto|native|lfta",
            "How rows are aggregated: `native` by Spark, `lfta` in hash tables inside its tasks, of bounded size "
            "whatever the number of groups; `auto` takes the cheaper one once `weft calibrate` has measured both.",
        ),
    ] = "auto"
    table_memory: Annotated[int, Option("BYTES", "Memory for the hash tables of one task.")] = TABLE_MEMORY
    synopsis_limit: Annotated[
        int | None,
        Option(
            "BYTES",
            "Memory for the values that exact percentiles, distinct counts and the like keep; the job stops before it "
            "commits a batch that needs more, and `explain` warns.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.buckets is not None and self.buckets < 1:
            raise NotServed(
                f"a job needs at least one bucket, got buckets={self.buckets}; leave it out for one per core"
            )
        checked_latency(self.latency)
        _one_of("phantoms", self.phantoms, get_args(Phantoming))
        _one_of("groupings", self.groupings, get_args(Aggregation))
        if self.table_memory < LEAST_MEMORY:
            raise BadOptions(f"table_memory is {self.table_memory} bytes; give a task at least {LEAST_MEMORY:,} bytes")
        _ = self.times

    @property
    def times(self) -> TimeOptions:
        """The lengths of time, in microseconds."""
        return TimeOptions.of(
            self.watermark, self.late, self.allowed_lateness, self.retention, self.max_skew, self.idle_timeout
        )

    @property
    def deviation(self) -> Fraction | None:
        """`tolerance`, exactly."""
        return None if self.tolerance is None else Fraction(str(self.tolerance))

    def without_lateness(self) -> JobOptions:
        """For a plan that is used once: nothing is updated, and nothing is kept."""
        return replace(self, late="drop", allowed_lateness=None, retention=None)


RENAMED: Mapping[str, str] = {"lateness": "allowed_lateness", "retain": "retention"}
"""Earlier names of options, which still work."""


@cache
def declarations() -> dict[str, tuple[Any, Option]]:
    """The type of each option, and what users read about it."""
    hints = get_type_hints(JobOptions, include_extras=True)
    return {field.name: get_args(hints[field.name]) for field in fields(JobOptions)}


def options_text() -> str:
    """One line per option, for `help()` and the reference page."""
    return "\n".join(f"- `{name}`: {option.help}" for name, (_, option) in declarations().items())


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadOptions(f"{name} cannot be {value!r}; choose one of {', '.join(choices)}")


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """The lengths of time that a job goes by, in microseconds."""

    delay: int = 0
    """How far the watermark stays behind the latest row."""
    late: Late = "drop"
    allowed_lateness: int = 0
    """How long after its end a window is still updated."""
    retention: int = 0
    """How long after its end the slices of a window are kept."""
    max_skew: int | None = None
    """A row that is further ahead of the clock does not move the watermark; None: every row does."""
    idle_timeout: int | None = None
    """When no row arrives for this long, the watermark advances with the clock; None: it waits."""

    @classmethod
    def of(
        cls,
        watermark: str,
        late: str = "drop",
        allowed_lateness: str | None = None,
        retention: str | None = None,
        max_skew: str | None = None,
        idle_timeout: str | None = None,
    ) -> TimeOptions:
        """From intervals as Spark writes them, such as '10 seconds'."""
        if late not in get_args(Late):
            raise BadOptions(f"late must be drop, update or side, not {late!r}")
        if late == "update" and allowed_lateness is None:
            raise BadOptions("late='update' needs the time in which windows are updated: allowed_lateness='10 minutes'")
        if late != "update" and allowed_lateness is not None:
            raise BadOptions(f"allowed_lateness is for late='update'; with late={late!r} no window is updated")
        texts = {
            "delay": ("watermark", watermark),
            "allowed_lateness": ("allowed_lateness", allowed_lateness),
            "retention": ("retention", retention),
            "max_skew": ("max_skew", max_skew),
            "idle_timeout": ("idle_timeout", idle_timeout),
        }
        lengths = {field: _length(name, text) for field, (name, text) in texts.items() if text is not None}
        if lengths.get("idle_timeout") == 0:
            raise BadOptions("idle_timeout must be longer than 0; leave it out to wait for rows")
        return cls(late=late, **lengths)  # type: ignore[arg-type]


def _length(name: str, text: str) -> int:
    try:
        micros = duration(text)
    except ValueError as error:
        raise BadOptions(f"{name}: {error}; write it as '10 seconds' or '1 hour'") from None
    if micros < 0:
        raise BadOptions(f"{name} cannot be negative, got {text!r}")
    return micros
