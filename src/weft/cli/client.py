"""Talking to a running service; the standard library is enough for that."""

from __future__ import annotations

import json
import os
from http.client import HTTPException
from typing import Annotated, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

import typer

from weft.model import WeftError

DEFAULT_PORT = 8642
TIMEOUT_SECONDS = 60.0
LOCAL = ("localhost", "127.0.0.1", "::1")

Url = Annotated[
    str, typer.Option(envvar="WEFT_URL", help="Of the running service; WEFT_TOKEN holds its token, if it has one.")
]
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"


class NoService(WeftError):
    """No service answers, or what answers is not weft."""


class RefusedByService(WeftError):
    """What the service says is wrong, under the word that it is about."""

    def __init__(self, problem: dict[str, Any]) -> None:
        parts = [problem["what"], problem.get("way_out", "")]
        where = problem.get("where")
        if where is not None:
            parts = [f"line {where['line']}, column {where['column']}: {parts[0]}", where["snippet"], parts[1]]
        super().__init__("\n".join(part for part in parts if part))


class _Stay(HTTPRedirectHandler):
    """Follows no redirect: the token is for this address alone."""

    def redirect_request(self, *_: Any) -> None:
        return None


def call(url: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """The JSON that the service answers; None where it answers nothing."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise NoService(f"{url!r} is not the address of a service; use one such as {DEFAULT_URL}")
    request = Request(url.rstrip("/") + path, method=method)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    token = os.environ.get("WEFT_TOKEN")
    if token:
        request.add_header("Authorization", f"Bearer {token.strip()}")
    try:
        with _opener(url).open(request, timeout=TIMEOUT_SECONDS) as response:
            return _read(url, response.read())
    except HTTPError as error:
        raise _refusal(url, error) from None
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise NoService(
            f"no weft service answers at {url} ({reason}); start one with weft serve, or name it with --url or WEFT_URL"
        ) from None


def _opener(url: str) -> OpenerDirector:
    direct = [ProxyHandler({})] if urlsplit(url).hostname in LOCAL else []
    return build_opener(_Stay, *direct)


def _refusal(url: str, error: HTTPError) -> WeftError:
    problem = _read(url, error.read())
    if not isinstance(problem, dict) or "what" not in problem:
        return NoService(f"{url} answers {error.code} {error.reason}, which a weft service does not; check --url")
    if error.code == 401:
        problem["way_out"] = "Set WEFT_TOKEN to the token."
    return RefusedByService(problem)


def _read(url: str, data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        raise NoService(f"{url} does not answer with JSON, as a weft service does; check --url") from None
