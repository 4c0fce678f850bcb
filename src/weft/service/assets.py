"""The files of the page: read once, and served without a token, because they hold no data of the job."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated

from fastapi import FastAPI, Header, Response
from starlette.exceptions import HTTPException

FOLDER = "/page/"

IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match")]

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

HEADERS = {
    # No script and no style but the files here, and nobody to talk to but this service.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    media_type: str
    tag: str


def is_page(path: str) -> bool:
    """Whether this is a file of the page, which anybody may read.

    >>> is_page("/"), is_page("/page/main.js"), is_page("/queries")
    (True, True, False)
    """
    return path == "/" or path.startswith(FOLDER)


def read_assets() -> Mapping[str, Asset]:
    assets: dict[str, Asset] = {}
    for file in (files("weft.service") / "page").iterdir():
        media_type = TYPES.get(file.name.rpartition(".")[2])
        if media_type is not None:
            content = file.read_bytes()
            assets[file.name] = Asset(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
    return assets


def serve_page(app: FastAPI) -> None:
    assets = read_assets()

    def respond(name: str, if_none_match: str | None) -> Response:
        asset = assets.get(name)
        if asset is None:
            raise HTTPException(404)
        headers = {**HEADERS, "ETag": asset.tag}
        if if_none_match == asset.tag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)

    @app.get("/", include_in_schema=False)
    def page(if_none_match: IfNoneMatch = None) -> Response:
        return respond("index.html", if_none_match)

    @app.get(FOLDER + "{name}", include_in_schema=False)
    def asset(name: str, if_none_match: IfNoneMatch = None) -> Response:
        return respond(name, if_none_match)
