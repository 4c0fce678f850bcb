"""Which requests are accepted: the token, the host, and the size of the body."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.model import WeftError
from weft.service.assets import is_page
from weft.service.errors import Problem, respond
from weft.service.limits import Limits

OPEN = ("/health/live", "/health/ready")
"""Health checks need no token."""


class UnsafeHost(WeftError):
    """An address that others can reach, and no token."""


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_host(host: str, token: str | None) -> None:
    if token is None and not is_loopback(host):
        raise UnsafeHost(
            f"--host {host} can be reached by others, who could then read answers and change queries; set a token with "
            "--token-file or WEFT_TOKEN, or leave --host out to serve this machine alone"
        )


class Guard:
    """Refuses requests before their body is read. With a token, every route needs it but health and the page's files.
    Without one, only requests to loopback names are answered, so that no web page can reach the service under a name
    of its own."""

    def __init__(self, app: ASGIApp, token: str | None, limits: Limits) -> None:
        self._app = app
        self._token = None if token is None else token.encode()
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(scope)
        if refused is None:
            body = await self._read(scope, receive)
            if isinstance(body, Problem):
                refused = body
            else:
                await self._app(scope, _with_body(body, receive), send)
                return
        headers = {"Connection": "close"}
        if refused.status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        await respond(refused, headers)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Problem | None:
        if scope["path"] in OPEN:
            return None
        if self._token is not None:
            if is_page(scope["path"]) and scope["method"] in ("GET", "HEAD"):
                return None
            header = _header(scope["headers"], b"authorization")
            scheme, _, token = header.partition(b" ")
            if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token):
                return None
            what = "this needs a token" if not header else "this is not the token"
            return Problem(status=401, what=what, way_out="Send the header Authorization: Bearer TOKEN.")
        host = _host(_header(scope["headers"], b"host").decode("latin-1"))
        if is_loopback(host):
            return None
        what = f"without a token no requests to {host or 'no host'} are answered"
        return Problem(status=403, what=what, way_out="Send requests to localhost, or start the service with a token.")

    async def _read(self, scope: Scope, receive: Receive) -> bytes | Problem:
        """The whole body, if it is small enough and comes in time."""
        limit = self._limits.body_bytes
        large = Problem(
            status=413, what=f"the request has more than {limit} bytes", way_out="Send fewer queries at a time."
        )
        length = _header(scope["headers"], b"content-length")
        if length.isdigit() and int(length) > limit:
            return large
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.read_seconds):
                while True:
                    message = await receive()
                    parts.append(message.get("body", b""))
                    if sum(map(len, parts)) > limit:
                        return large
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            return Problem(status=408, what="the request did not arrive in time", way_out="Send it at once.")


def _host(header: str) -> str:
    """
    >>> _host("[::1]:80"), _host("Example.org"), _host("[")
    ('::1', 'example.org', '')
    """
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    return next((value for key, value in headers if key.lower() == name), b"")


def _with_body(body: bytes, receive: Receive) -> Receive:
    """The body that was read, then the messages of the server."""
    left = [body]

    async def again() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again
