"""`weft serve`: a run whose queries, answers and metrics are there over HTTP while it runs."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.client import DEFAULT_PORT
from weft.cli.progress import ProgressLine
from weft.cli.query_options import read_queries
from weft.cli.run import LOOK_SECONDS, say_stopped, show, stopped_by_signals
from weft.cli.stream_options import AsJson, ForSeconds, StreamOptions, parse_bytes, takes_stream
from weft.model import WeftError

if TYPE_CHECKING:
    from weft.service import Server, Service


class MissingExtra(WeftError):
    """Packages that only the service needs."""


class BadToken(WeftError):
    """A token that cannot be used."""


@takes_stream
def serve(
    stream: StreamOptions,
    host: Annotated[
        str, typer.Option(help="The address to listen on; addresses beyond this machine need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = DEFAULT_PORT,
    token_file: Annotated[
        Path | None, typer.Option(metavar="F", help="A file with the token that requests must send; else WEFT_TOKEN.")
    ] = None,
    max_queries: Annotated[int, typer.Option(min=1, metavar="N", help="Largest number of queries in the job.")] = 1000,
    max_state: Annotated[
        int | None,
        typer.Option(
            parser=parse_bytes, metavar="BYTES", help="State size, such as 20GB, above which no query may join."
        ),
    ] = None,
    keep: Annotated[
        int, typer.Option(min=1, metavar="N", help="Rows of answers per query that are kept in memory for readers.")
    ] = 1000,
    as_json: AsJson = False,
    seconds: ForSeconds = None,
) -> None:
    """Answer the queries over a stream, and serve them over HTTP, until stopped by Ctrl-C or SIGTERM."""
    require_service("weft serve")
    from weft.service import AnswerBuffer, Limits, Server, Service, check_host, make_app, open_socket

    token = read_token(token_file)
    check_host(host, token)
    workload = read_queries(stream.file, stream.options.event_time)
    limits = Limits(queries=max_queries, state_bytes=max_state)
    limits.check_queries(0, len(workload))
    with open_socket(host, port) as bound:
        job = stream.weave(workload)
        answers = AnswerBuffer(keep)
        with stopped_by_signals() as stopped:
            started = stream.start(job, listener=answers)
            service = Service(started, answers, limits)
            server = Server(make_app(service, token), bound)
            server.start()
            typer.echo(json.dumps({"url": server.url}) if as_json else f"weft serves {server.url}", err=not as_json)
            with ProgressLine(as_json=as_json) as progress:
                watch(service, server, progress, stopped, seconds)
            if stopped.is_set():
                say_stopped(started)


def require_service(command: str) -> None:
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise MissingExtra(f"{command} needs FastAPI and uvicorn; install them with: pip install 'weft[serve]'")


def read_token(file: Path | None) -> str | None:
    """From the file, else from the environment: on the command line everybody on the machine could read it."""
    if file is None:
        token = os.environ.get("WEFT_TOKEN")
        where = "WEFT_TOKEN"
    else:
        where = str(file)
        try:
            token = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise BadToken(f"{file}: {reason}; name a file with the token in it") from None
    if token is None:
        return None
    if not re.fullmatch(r"[!-~]+", token.strip()):
        raise BadToken(f"{where} holds no token; a token is one word of letters, digits and signs, without spaces")
    return token.strip()


def watch(
    service: Service, server: Server, progress: ProgressLine, stopped: threading.Event, seconds: float | None
) -> None:
    """Until it is stopped. A failed stream is still served, so that users can see the reason."""
    end = None if seconds is None else time.monotonic() + seconds
    reported, run = False, service.run
    while not stopped.wait(LOOK_SECONDS) and (end is None or time.monotonic() < end) and server.running:
        show(run, progress)
        if not reported and not run.active:
            reported = True
            typer.echo(f"The stream has stopped, see {server.url}/health/ready", err=True)
    try:
        if run.active:
            run.stop()
        run.wait(0.01)  # an error of the stream is raised here
    finally:
        service.close()
        server.stop()
        show(run, progress)
