"""The JSON of requests and responses: what the OpenAPI description is made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("this is not Unicode text: it contains a lone surrogate") from None
    return text


Text = Annotated[str, AfterValidator(_encodable)]


class Adding(BaseModel):
    """Queries that are to join the job."""

    model_config = ConfigDict(extra="forbid")

    sql: Text = Field(description="One or more statements, separated by `;`; CREATE VIEW name AS names a query.")
    since: Literal["now", "state", "source"] = Field(
        default="now",
        description="Its first window: the first that begins after every row so far; the first whose slices are all "
        "kept; or as far back as the source goes, which is read again beside the job.",
    )
    begin: Text | None = Field(
        default=None, description="With since=source: windows from this time on, as `2026-01-01 00:00:00` (UTC)."
    )
    for_: Text | None = Field(
        default=None, alias="for", description="How long it stays in the job, in event time, such as `8 hours`."
    )


class Sql(BaseModel):
    """One query."""

    model_config = ConfigDict(extra="forbid")

    sql: Text


class Added(BaseModel):
    added: list[str] = Field(description="The names of the queries that join with the next batch.")


class Query(BaseModel):
    name: str
    sql: str
    range: str
    slide: str
    keys: list[str]
    where: str | None
    joined: bool = Field(description="Whether a batch has taken it up.")
    since: str | None = Field(description="The begin of its first window; null: it was there from the start.")
    until: str | None = Field(description="When it leaves the job, in event time; null: it stays.")
    tree: int = Field(description="Its tree, as the plan counts them.")
    cost: float = Field(description="Its part of the plan's cost, in operations per second.")
    cost_share: float
    matched_rows: int
    answers: int
    late_rows: int
    lag_seconds: float | None = Field(description="From the end of its newest answered window to the clock.")


class PausedQuery(BaseModel):
    name: str
    sql: str


class Queries(BaseModel):
    queries: list[Query]
    paused: list[PausedQuery] = Field(description="Out of the job, and remembered; POST .../resume brings one back.")


class Column(BaseModel):
    name: str
    type: str


class Portion(BaseModel):
    query: str
    batch: int
    count: int = Field(description="Rows that the batch answered; the sink has the rows that are not kept here.")
    rows: list[dict[str, Any]]


class Answers(BaseModel):
    query: str
    columns: list[Column] = Field(description="Empty until there are answers.")
    batches: list[Portion] = Field(description="Oldest first.")
    forgotten: int | None = Field(description="The newest batch whose answers are no longer in memory.")


class Table(BaseModel):
    columns: list[Column]
    rows: list[dict[str, Any]]


class Change(BaseModel):
    batch: int = Field(description="The first batch that runs by the plan.")
    reason: str
    cost_before: float | None
    cost_after: float | None
    queries: int
    trees: int
    older_trees: int


class Changes(BaseModel):
    changes: list[Change]


class Batch(BaseModel):
    batch: int
    rows: int
    partials: int
    answers: int
    late: int
    state_bytes: int = Field(description="Bytes of state that it wrote.")
    record_bytes: int
    watermark: str | None
    latest: str | None
    seconds: float
    phases: dict[str, float]
    worker_memory: int


class Batches(BaseModel):
    batches: list[Batch] = Field(description="Oldest first.")


class TreeState(BaseModel):
    tree: int
    queries: list[str]
    slices: int | None
    partials: int | None
    state_bytes: int


class Refreshed(BaseModel):
    """A query with SLIDE AT MOST."""

    refreshes: int = Field(description="Windows that it was answered for.")
    answered: int = Field(description="The end of its newest one, in microseconds since 1970.")
    late_seconds: float = Field(description="How long ago the next one was due, in event time.")
    slide_seconds: float
    period_seconds: float = Field(
        description="How often it is answered: as the query says, or more often, together with others."
    )


class Status(BaseModel):
    """Counters from the start of the job, rates over its latest batches."""

    running: bool
    failure: str | None
    batch: int | None
    rows: int
    rows_per_second: float
    watermark: str | None
    lag_seconds: float | None
    answers: int
    answers_per_second: float
    late: int
    bad: int = Field(description="Rows that could not be read and were written to the side output.")
    late_by_query: dict[str, int]
    answers_by_query: dict[str, int]
    matched_by_query: dict[str, int]
    refreshes_by_query: dict[str, Refreshed]
    refreshes_per_second: float
    refresh_runs: int
    refresh_shared_runs: int = Field(description="Runs in which several queries with SLIDE AT MOST were answered.")
    state_bytes: int
    synopsis_bytes: int = Field(
        description="Bytes of values or samples that percentiles and similar aggregates kept in the last batch."
    )
    queries: int
    waiting: list[str] = Field(description="Queries that still read their past from the source.")
    failed: dict[str, str] = Field(description="Queries that left because they could not be answered, and why.")
    trees: int
    plan_changes: int
    seconds_by_phase: dict[str, float]
    tree_states: list[TreeState]


class Health(BaseModel):
    status: Literal["live", "ready"]
