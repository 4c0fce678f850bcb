"""The routes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Header, Path, Query, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

import weft
from weft.plan import explain, to_html, to_json
from weft.service import schemas
from weft.service.assets import serve_page
from weft.service.auth import Guard
from weft.service.errors import Problem, described, handle_problems, respond
from weft.service.json_values import columns_of, rows_of
from weft.service.plan_graph import Picture, picture
from weft.service.preview import Preview, preview
from weft.service.prometheus import CONTENT_TYPE, exposition
from weft.service.service import Service
from weft.service.sse import LiveAnswers, place_of
from weft.spark.execution.metrics import BatchMetrics
from weft.spark.execution.watermark import iso

Name = Annotated[str, Path(description="The name of a query.")]
Names = Annotated[list[str] | None, Query(max_length=100, description="Names of the queries to follow; none: all.")]
Brief = Annotated[bool, Query(description="Without details of each query and tree.")]
LastEvent = Annotated[
    str | None,
    Header(alias="Last-Event-ID", description="The id of the last event that arrived: later events are sent."),
]
After = Annotated[
    int | None,
    Query(ge=-1, le=2**53, description="Also send what is kept of batches after this one; -1: of all batches."),
]
Seconds = Annotated[float | None, Query(gt=0, le=86_400, description="End after this many seconds; none: do not end.")]
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events as they come."}
}


def make_app(service: Service, token: str | None = None) -> FastAPI:
    """The service as an ASGI application."""
    app = FastAPI(
        title="weft",
        summary="Windowed aggregate queries over one stream, woven into one Spark job.",
        version=weft.__version__,
        docs_url=None,
        redoc_url=None,
        responses=described(400, 401, 403, 408, 413, 422),
    )
    handle_problems(app)
    serve_page(app)
    _health(app, service)
    _answers(app, service)
    _queries(app, service)
    _job(app, service)
    app.add_middleware(Guard, token=token, limits=service.limits)
    return app


def _health(app: FastAPI, service: Service) -> None:
    @app.get("/health/live", tags=["health"])
    def live() -> schemas.Health:
        """The process answers."""
        return schemas.Health(status="live")

    @app.get("/health/ready", tags=["health"], response_model=schemas.Health, responses=described(503))
    def ready() -> Response:
        """Whether the stream runs; if not, why."""
        failed = service.failure()
        if failed is None:
            return JSONResponse({"status": "ready"})
        way_out = "Fix that and start the service again with the same checkpoint."
        return respond(Problem(status=503, what=failed, way_out=way_out))


def _answers(app: FastAPI, service: Service) -> None:
    """Before the queries' own routes: a name may have slashes in it."""

    @app.get("/answers/live", tags=["answers"], response_class=Response, responses={**EVENTS, **described(404, 429)})
    async def live_of_some(
        query: Names = None, after: After = None, last_event: LastEvent = None, seconds: Seconds = None
    ) -> LiveAnswers:
        """Answers of these queries, or of all, as they come, as server-sent events."""
        for name in query or ():
            _require(service, name)
        return LiveAnswers(service, query, _place(after, last_event), seconds)

    @app.get(
        "/queries/{name:path}/answers/live",
        tags=["answers"],
        response_class=Response,
        responses={**EVENTS, **described(404, 429)},
    )
    async def live_of_one(
        name: Name, after: After = None, last_event: LastEvent = None, seconds: Seconds = None
    ) -> LiveAnswers:
        """Answers of one query as they come, as server-sent events."""
        _require(service, name)
        return LiveAnswers(service, [name], _place(after, last_event), seconds)

    @app.get("/queries/{name:path}/answers", tags=["answers"], responses=described(404))
    def answers(
        name: Name,
        limit: Annotated[int, Query(ge=1, le=100_000, description="Rows at most.")] = 100,
        after: After = None,
    ) -> schemas.Answers:
        """The newest answers in memory, optionally only of batches after a given one."""
        _require(service, name)
        return _newest(service, name, limit, -1 if after is None else after)


def _require(service: Service, name: str) -> None:
    if name not in service.run.queries():
        raise service.unknown(name)


def _newest(service: Service, name: str, limit: int, after: int) -> schemas.Answers:
    kept = [p for p in service.answers.after((-1, 0), [name]) if p.batch > after]
    batches: list[schemas.Portion] = []
    left = limit
    for portion in reversed(kept):
        rows = rows_of(portion.table.slice(0, left))
        batches.insert(0, schemas.Portion(query=name, batch=portion.batch, count=portion.count, rows=rows))
        left -= len(rows)
        if left <= 0:
            break
    columns = [schemas.Column(**c) for c in columns_of(kept[-1].table.schema)] if kept else []
    gone = service.answers.gone([name])[0]
    return schemas.Answers(query=name, columns=columns, batches=batches, forgotten=None if gone < 0 else gone)


def _place(after: int | None, last_event: str | None) -> tuple[int, int] | None:
    if last_event is not None:
        return place_of(last_event)
    return None if after is None else (after, 2**31)


def _queries(app: FastAPI, service: Service) -> None:
    @app.get("/queries", tags=["queries"])
    def all_queries() -> schemas.Queries:
        """Every query of the job, with its matched rows, answers and cost."""
        return schemas.Queries(
            queries=[schemas.Query(**query) for query in service.queries()],
            paused=[schemas.PausedQuery(name=name, sql=sql) for name, sql in service.paused().items()],
        )

    @app.post("/queries", tags=["queries"], status_code=201, responses=described(409, 503))
    def add(adding: schemas.Adding) -> schemas.Added:
        """Queries join with the next batch."""
        return schemas.Added(added=service.add(adding.sql, adding.since, adding.begin, adding.for_))

    @app.post("/preview", tags=["queries"], responses=described(409, 503))
    def preview_of(query: schemas.Sql) -> Preview:
        """What queries would cost if they joined; nothing changes."""
        return preview(*service.preview(query.sql))

    @app.post("/queries/{name:path}/pause", tags=["queries"], status_code=204, responses=described(404, 409, 503))
    def pause(name: Name) -> None:
        """A query leaves with the next batch, costs nothing, and is remembered, also by a restart."""
        service.pause(name)

    @app.post("/queries/{name:path}/resume", tags=["queries"], status_code=204, responses=described(404, 409, 503))
    def resume(name: Name) -> None:
        """A paused query joins with the next batch; its first window is the first whose slices are all kept."""
        service.resume(name)

    @app.get("/queries/{name:path}", tags=["queries"], responses=described(404))
    def one_query(name: Name) -> schemas.Query:
        return schemas.Query(**service.query(name))

    @app.put("/queries/{name:path}", tags=["queries"], responses=described(404, 409, 503))
    def replace(name: Name, query: schemas.Sql) -> schemas.Query:
        """Another query takes the name from the next batch on; its answers must have the same columns."""
        service.replace(name, query.sql)
        return schemas.Query(**service.query(name))

    @app.delete("/queries/{name:path}", tags=["queries"], status_code=204, responses=described(404, 409, 503))
    def drop(name: Name) -> None:
        """A query leaves with the next batch, or a paused query is forgotten; its answers stay in the sink."""
        service.drop(name)

    @app.post("/ask", tags=["queries"], responses=described(409, 503))
    def ask(query: schemas.Sql) -> schemas.Table:
        """Answer a query once, from what is kept now."""
        table = service.ask(query.sql)
        return schemas.Table(columns=[schemas.Column(**c) for c in columns_of(table.schema)], rows=rows_of(table))


def _job(app: FastAPI, service: Service) -> None:
    run = service.run

    @app.get(
        "/plan",
        tags=["job"],
        responses={200: {"content": {"application/json": {}, "text/plain": {}, "text/html": {}}}},
        response_class=JSONResponse,
    )
    def plan(format: Literal["json", "text", "html"] = "json") -> Response:
        """Which queries share a tree, what that costs, and why no more is shared."""
        if format == "json":
            return JSONResponse(to_json(run.plan()))
        return PlainTextResponse(explain(run.plan())) if format == "text" else HTMLResponse(to_html(run.plan()))

    @app.get("/picture", tags=["job"])
    def drawn() -> Picture:
        """The plan as the page draws it: phantoms, passes, trees and queries, and what each costs."""
        return picture(run)

    @app.get("/status", tags=["job"])
    def status(brief: Brief = False) -> schemas.Status:
        """Where the job stands."""
        failed, trees = service.failure(), [schemas.TreeState(**tree) for tree in run.trees()]
        metrics = {name: value for name, value in run.metrics().items() if name in schemas.Status.model_fields}
        kept = sum(tree.state_bytes for tree in trees)
        if brief:
            metrics |= {name: {} for name in metrics if name.endswith("_by_query")}
            trees = []
        return schemas.Status(
            **{**metrics, "running": failed is None, "failure": failed, "state_bytes": kept, "tree_states": trees}
        )

    @app.get("/changes", tags=["job"])
    def changes() -> schemas.Changes:
        """Every change of the plan, with its reason and what it cost before and after."""
        return schemas.Changes(changes=[schemas.Change(**change) for change in run.changes()])

    @app.get("/batches", tags=["job"])
    def batches(limit: Annotated[int, Query(ge=1, le=1000, description="Batches at most.")] = 100) -> schemas.Batches:
        """The latest batches, and where their time went."""
        return schemas.Batches(batches=[_batch(metrics) for metrics in run.batches()[-limit:]])

    @app.get(
        "/metrics",
        tags=["job"],
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    def prometheus() -> Response:
        """Metrics for Prometheus."""
        return Response(exposition(service), media_type=CONTENT_TYPE)


def _batch(metrics: BatchMetrics) -> schemas.Batch:
    values = asdict(metrics)
    del values["trees"], values["max_event_time"]
    return schemas.Batch(**{**values, "watermark": iso(metrics.watermark), "latest": iso(metrics.max_event_time)})
