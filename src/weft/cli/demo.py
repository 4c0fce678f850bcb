"""`weft demo`: a plan, half a minute of answers, and what sharing saved."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from math import inf
from socket import socket
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from weft.cli.client import DEFAULT_PORT
from weft.cli.progress import PLAIN_SECONDS, Metrics, line
from weft.cli.run import LOOK_SECONDS
from weft.cli.serve import require_service
from weft.cli.stream_options import parse_seconds
from weft.demo import query_text
from weft.model import Workload
from weft.optimizer import optimize
from weft.plan import Plan, explain
from weft.sql import parse

if TYPE_CHECKING:
    from weft.demo.show import AnswerDisplay
    from weft.demo.trades import Trades
    from weft.service import Server
    from weft.spark import Job, Run

T = TypeVar("T")

STRATEGY = "weave_share"
"""Gives the hundred queries a tree for each of their five groupings: a plan that fits a screen."""

SHOWN_QUERIES = 2
"""Queries of each tree that the plan on the screen names."""

USUAL_SECONDS = 30.0

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def demo(
    seconds: Annotated[
        float | None,
        typer.Option("--for", parser=parse_seconds, metavar="TIME", help="How long it streams. [30s; with --page: on]"),
    ] = None,
    rate: Annotated[int, typer.Option(min=1, metavar="N", help="Trades per second.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Of the trades; the same seed brings the same trades.")] = 1,
    page: Annotated[bool, typer.Option("--page", help="Serve a page to look at, until Ctrl-C.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the page; 0: any that is free.")] = DEFAULT_PORT,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; all else goes to stderr.")] = False,
) -> None:
    """A hundred queries over a live stream of trades, and what sharing saves."""
    begun = time.monotonic()
    screen = Screen(Console(stderr=as_json))
    try:
        with _listening(port) if page else nullcontext() as bound:
            usual = inf if page else USUAL_SECONDS
            report = _demo(screen, usual if seconds is None else seconds, rate, seed, bound, begun)
    except KeyboardInterrupt:
        screen.say("stopped")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(report))


def _listening(port: int) -> socket:
    """Before Spark starts, so that a port in use is reported at once."""
    require_service("weft demo --page")
    from weft.service import open_socket

    return open_socket("127.0.0.1", port)


def _demo(screen: Screen, seconds: float, rate: int, seed: int, bound: socket | None, begun: float) -> dict[str, Any]:
    session = _begin(_open_session)  # a JVM takes seconds to start: the plan is made and shown meanwhile
    queries = Workload(parse(query_text()))
    plan = optimize(queries, rate=rate, strategy=STRATEGY)
    screen.print(explain(plan, SHOWN_QUERIES))
    screen.say("starting Spark")
    spark = _wait(session)
    from weft.demo.measure import measure
    from weft.demo.show import AnswerDisplay
    from weft.demo.trades import DELAY, Trades
    from weft.spark import weave

    trades, display = Trades(seed, rate), AnswerDisplay()
    screen.say(f"weaving {len(queries)} queries into one job")
    job = _in_thread(lambda: weave(trades.bounded(spark, 0), queries, watermark=DELAY, strategy=STRATEGY, rate=rate))
    metrics, answered = _stream(screen, job, trades, display, seconds, bound)
    first = None if answered is None else answered - begun
    if first is not None:
        screen.print(f"first answers {first:.1f} s after the command was typed")
    with screen.drawing(keep=False):
        saved = _in_thread(lambda: measure(job, trades, say=screen.say))
    screen.print(saved.text())
    return {
        "seed": seed,
        "rate": rate,
        "plan": _summary(plan),
        "first_answers_seconds": first,
        "stream": metrics,
        "newest": display.to_json(),
        "saved": saved.to_json(),
    }


def _open_session() -> Any:
    from weft.spark import local_session

    return local_session()


def _in_thread(work: Callable[[], T]) -> T:
    """Run it in another thread, so that Ctrl-C interrupts the wait and not a call to the JVM.

    A session that is made there also leaves Ctrl-C alone: PySpark would answer it by cancelling the batch that runs.
    """
    return _wait(_begin(work))


def _begin(work: Callable[[], T]) -> Future[T]:
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result


def _wait(result: Future[T]) -> T:
    while not result.done():
        time.sleep(0.05)
    return result.result()


def _stream(
    screen: Screen, job: Job, trades: Trades, display: AnswerDisplay, seconds: float, bound: socket | None
) -> tuple[dict[str, Any], float | None]:
    """The metrics of the run, and when its first answers were shown."""
    from weft.demo.measure import over

    live = over(job, trades.opened_at(time.time_ns() // 1000).live(job.stream.sparkSession))
    if bound is None:
        run, server = live.start(sink=display.take, trigger="1 second"), None
    else:
        run, server = _served(live, display, bound)
        screen.print(f"a page to look at: {server.url}")
    try:
        with screen.drawing(keep=True):
            answered = _watch(run, screen, display, seconds)
    finally:
        if server is not None:
            server.stop()
        run.stop()
    return run.metrics(), answered


def _served(job: Job, display: AnswerDisplay, bound: socket) -> tuple[Run, Server]:
    from weft.service import AnswerBuffer, Limits, Server, Service, make_app

    answers = AnswerBuffer()
    run = job.start(sink=display.take, trigger="1 second", listener=answers)
    server = Server(make_app(Service(run, answers, Limits())), bound)
    server.start()
    return run, server


def _watch(run: Run, screen: Screen, display: AnswerDisplay, seconds: float) -> float | None:
    """Show the run for `seconds`, counted from its first rows: until then Spark compiles. Returns the time of the first
    answers."""
    screen.say("waiting for the first batch")
    begun = answered = None
    # Asleep here, not in a call to the JVM, so that Ctrl-C does not break one off.
    while not run.wait(0.01):
        time.sleep(LOOK_SECONDS)
        metrics = run.metrics()
        if not metrics["rows"]:
            continue
        begun = begun or time.monotonic()
        screen.show(cast(Metrics, metrics), display)
        if answered is None and metrics["answers"]:
            answered = time.monotonic()
        if time.monotonic() - begun >= seconds:
            break
    return answered


def _summary(plan: Plan) -> dict[str, Any]:
    return {
        "strategy": plan.strategy,
        "queries": len(plan.workload),
        "trees": len(plan.trees),
        "cost": float(plan.cost),
        "unshared": float(plan.unshared),
    }


class Screen:
    """A terminal that is drawn over while the stream runs; anything else gets plain lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._printed: tuple[float, int] | None = None
        """When plain lines were printed last, and for which batch."""

    def print(self, text: str) -> None:
        # Straight to the file: a console that is no terminal has a width, and would break lines at it.
        typer.echo(text, file=self._console.file)

    def say(self, text: str) -> None:
        """What is being done, where that takes a while."""
        if self._live is not None:
            self._live.update(Text(text, style="dim"), refresh=True)
        elif self._console.is_terminal:
            self._console.print(Text(text, style="dim"))
        else:
            self.print(text)

    def show(self, metrics: Metrics, display: AnswerDisplay) -> None:
        if self._live is not None:
            progress = Text(line(metrics), no_wrap=True, overflow="ellipsis")
            self._live.update(Group(progress, Text(), display.table()), refresh=True)
            return
        now, batch = time.monotonic(), metrics["batch"]
        if self._printed is None or (now - self._printed[0] >= PLAIN_SECONDS and batch > self._printed[1]):
            self.print(f"{line(metrics)}\n{display.plain()}")
            self._printed = now, batch

    @contextmanager
    def drawing(self, *, keep: bool) -> Iterator[None]:
        """Draw over what was shown before; `keep` leaves the last of it."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False, transient=not keep) as self._live:
            try:
                yield
            finally:
                self._live = None
