"""Who may ask: the token, the host, and where a service may listen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from weft.cli.serve import BadToken, read_token
from weft.service import Limits, UnsafeHost, check_host, open_socket
from weft.service.auth import Guard
from weft.service.server import AddressInUse, url_of

TOKEN = "a-token-of-some-length"


def ask(token: str | None, path: str, headers: dict[str, Any], method: str = "POST", **limits: Any) -> httpx.Response:
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        await PlainTextResponse(message["body"])(scope, receive, send)

    async def call() -> httpx.Response:
        guarded = Guard(inner, token, Limits(**limits))
        transport = httpx.ASGITransport(guarded)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8642") as client:
            return await client.request(method, path, headers=headers, content=b"body")

    return asyncio.run(call())


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer  {TOKEN} "])
def test_who_has_the_token_is_let_in_under_any_name(header: str) -> None:
    response = ask(TOKEN, "/queries", {"Authorization": header, "Host": "weft.example.org"})
    assert (response.status_code, response.text) == (200, "body")


@pytest.mark.parametrize(
    "header", ["", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer é"]
)
def test_who_has_not_is_sent_away(header: str) -> None:
    for path in ("/queries", "/metrics", "/openapi.json", "/health", "/health/live/", "/nowhere"):
        response = ask(TOKEN, path, {"Authorization": header.encode()})
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert "Authorization: Bearer" in response.json()["way_out"]


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_health_needs_no_token(path: str) -> None:
    assert ask(TOKEN, path, {}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/page/main.js"])
def test_the_files_of_the_page_need_no_token_but_their_host(path: str) -> None:
    assert ask(TOKEN, path, {}, "GET").status_code == 200
    assert ask(TOKEN, path, {}, "POST").status_code == 401
    assert ask(None, path, {"Host": "evil.example.org"}, "GET").status_code == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:8642", "127.0.0.1:80", "[::1]:8642"])
def test_without_a_token_this_machine_is_let_in(host: str) -> None:
    assert ask(None, "/queries", {"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example.org", "localhost.example.org", "", "["])
def test_without_a_token_no_other_name_is_answered_to(host: str) -> None:
    response = ask(None, "/queries", {"Host": host})
    assert response.status_code == 403
    assert "token" in response.json()["way_out"]


def test_a_body_that_is_too_large_is_refused() -> None:
    assert ask(None, "/queries", {}, body_bytes=3).status_code == 413


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "weft.example.org"])
def test_others_are_served_only_with_a_token(host: str) -> None:
    with pytest.raises(UnsafeHost, match="--token-file or WEFT_TOKEN"):
        check_host(host, None)
    check_host(host, TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_this_machine_needs_none(host: str) -> None:
    check_host(host, None)


def test_a_port_that_is_taken_is_refused_with_the_way_out() -> None:
    with open_socket("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(AddressInUse, match="choose another --host or --port"):
            open_socket("127.0.0.1", int(url_of(taken).rsplit(":", 1)[1]))


def test_the_token_comes_from_a_file_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("WEFT_TOKEN", "from-environment")
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert (read_token(None), read_token(file)) == ("from-environment", TOKEN)


@pytest.mark.parametrize("text", ["", "  \n", "two words", "é"])
def test_what_is_no_token_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(BadToken, match="holds no token"):
        read_token(file)
    with pytest.raises(BadToken, match="No such file"):
        read_token(tmp_path / "nothing")
