"""The one form of every error: what is wrong, where in the SQL, and the way out."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from weft.model import WeftError
from weft.service.limits import LimitReached
from weft.spark.errors import NotServed, RunFailed
from weft.spark.queries.validate import CannotChange
from weft.spark.sinks.base import OtherColumns
from weft.sql import Refused


class SqlPlace(BaseModel):
    """A place in the SQL that was sent; line and column count from 1."""

    line: int
    column: int
    snippet: str = Field(description="The line, and under it the place.")


class Problem(BaseModel):
    """Why a request was refused."""

    status: int
    what: str = Field(description="What is wrong.")
    where: SqlPlace | None = Field(default=None, description="Where in the SQL, if it is there.")
    way_out: str = Field(default="", description="What would work.")


class Unserved(WeftError):
    """A request that is refused with a status of its own."""

    def __init__(self, status: HTTPStatus, what: str, way_out: str) -> None:
        super().__init__(f"{what}; {way_out}")
        self.status, self.what, self.way_out = status, what, way_out


STATUS: Mapping[type[WeftError], HTTPStatus] = {
    LimitReached: HTTPStatus.CONFLICT,
    CannotChange: HTTPStatus.CONFLICT,
    OtherColumns: HTTPStatus.CONFLICT,
    RunFailed: HTTPStatus.SERVICE_UNAVAILABLE,
    NotServed: HTTPStatus.CONFLICT,
}
"""422 where the request's text is at fault, not the query or its state in the job."""


def problem_of(error: WeftError) -> Problem:
    """
    >>> problem_of(CannotChange("there is no query x; there are a, b")).way_out
    'there are a, b'
    """
    if isinstance(error, Unserved):
        return Problem(status=error.status, what=error.what, way_out=error.way_out)
    if isinstance(error, Refused):
        place = SqlPlace(line=error.line, column=error.column, snippet=error.snippet)
        return Problem(status=422, what=error.reason, where=place, way_out=error.way_out)
    status = next((s for kind, s in STATUS.items() if isinstance(error, kind)), HTTPStatus.UNPROCESSABLE_ENTITY)
    what, parted, way_out = str(error).rpartition("; ")
    return Problem(status=status, what=what if parted else way_out, way_out=way_out if parted else "")


def respond(problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(problem.model_dump(), problem.status, headers)


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These statuses in the OpenAPI description."""
    return {status: {"model": Problem, "description": HTTPStatus(status).phrase} for status in statuses}


def handle_problems(app: FastAPI) -> None:
    @app.exception_handler(WeftError)
    def refused(_: Request, error: WeftError) -> JSONResponse:
        return respond(problem_of(error))

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        way_out = "Look at /openapi.json for what this route takes."
        return respond(Problem(status=422, what="; ".join(problems), way_out=way_out))

    @app.exception_handler(HTTPException)
    def other(_: Request, error: HTTPException) -> JSONResponse:
        way_out = "Look at /openapi.json for the routes that there are."
        return respond(Problem(status=error.status_code, what=str(error.detail), way_out=way_out), error.headers)

    @app.exception_handler(Exception)
    def failed(_: Request, error: Exception) -> JSONResponse:  # the server writes the traceback to its log
        what = f"the service failed with {type(error).__name__}"
        return respond(Problem(status=500, what=what, way_out="The traceback is in the log of the service."))
