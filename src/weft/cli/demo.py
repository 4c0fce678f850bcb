"""`weft demo`: a plan, half a minute of answers, and what sharing saved."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from weft.cli.progress import PLAIN_SECONDS, Metrics, line
from weft.cli.run import LOOK_SECONDS, parse_seconds
from weft.demo import query_text
from weft.model import Workload
from weft.optimizer import optimize
from weft.plan import Plan, explain
from weft.sql import parse

if TYPE_CHECKING:
    from weft.demo.show import Board
    from weft.demo.trades import Trades
    from weft.spark import Run

STRATEGY = "weave_share"
"""Gives the hundred queries a tree for each of their five groupings: a plan that fits a screen."""

SHOWN_QUERIES = 2
"""Queries of each tree that the plan on the screen names."""

STOP_SECONDS = 10.0
"""How long the end of a batch is waited for."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def demo(
    seconds: Annotated[
        float, typer.Option("--for", parser=parse_seconds, metavar="TIME", help="How long it streams, such as 30s.")
    ] = 30.0,
    rate: Annotated[int, typer.Option(min=1, metavar="N", help="Trades a second.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Of the trades; the same seed brings the same trades.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; all else goes to stderr.")] = False,
) -> None:
    """A hundred queries over a live stream of trades, and what sharing saves."""
    screen = Screen(Console(stderr=as_json))
    try:
        report = _demo(screen, seconds, rate, seed)
    except KeyboardInterrupt:
        screen.say("stopped")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(report))


def _demo(screen: Screen, seconds: float, rate: int, seed: int) -> dict[str, Any]:
    queries = Workload(parse(query_text()))
    plan = optimize(queries, rate=rate, strategy=STRATEGY)
    screen.print(explain(plan, SHOWN_QUERIES))
    screen.say("starting Spark")
    # Imported late: the plan is on the screen before pyspark is read.
    from weft.demo.measure import measure
    from weft.demo.show import Board
    from weft.demo.trades import Trades
    from weft.spark import local_session

    spark = local_session()
    # PySpark's own answer to Ctrl-C cancels all jobs, which fails the stream; here a stream ends after its batch.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    trades, board = Trades(seed, rate), Board()
    metrics = _stream(screen, spark, trades, queries, board, seconds)
    with screen.drawing(keep=False):
        saved = measure(spark, trades, queries, strategy=STRATEGY, say=screen.say)
    screen.print(saved.text())
    return {
        "seed": seed,
        "rate": rate,
        "plan": _summary(plan),
        "stream": metrics,
        "newest": board.to_json(),
        "saved": saved.to_json(),
    }


def _stream(
    screen: Screen, spark: Any, trades: Trades, queries: Workload, board: Board, seconds: float
) -> dict[str, Any]:
    from weft.demo.trades import DELAY
    from weft.spark import weave

    screen.say(f"weaving {len(queries)} queries into one job")
    job = weave(trades.live(spark), queries, watermark=DELAY, strategy=STRATEGY, rate=trades.rate)
    # The trades are to happen now, and the plan takes a moment: the same queries again, on a clock that starts here.
    job.stream = trades.opened_at(time.time_ns() // 1000).live(spark)
    run = job.start(sink=board.take, trigger="1 second")
    try:
        with screen.drawing(keep=True):
            _watch(run, screen, board, seconds)
    finally:
        _stop(run)
    return run.metrics()


def _watch(run: Run, screen: Screen, board: Board, seconds: float) -> None:
    """Show the run for `seconds`, counted from its first rows: until then Spark compiles."""
    screen.say("waiting for the first batch")
    begun = None
    while not run.wait(LOOK_SECONDS):
        metrics = run.metrics()
        if not metrics["rows"]:
            continue
        begun = begun or time.monotonic()
        screen.show(cast(Metrics, metrics), board)
        if time.monotonic() - begun >= seconds:
            return


def _stop(run: Run) -> None:
    """Between two batches: a batch that is interrupted would tell of it at length, in Spark's words."""
    batch, begun = run.metrics()["batch"], time.monotonic()
    while run.active and run.metrics()["batch"] == batch and time.monotonic() - begun < STOP_SECONDS:
        time.sleep(0.01)
    run.stop()


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
        self._printed_at: float | None = None

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

    def show(self, metrics: Metrics, board: Board) -> None:
        if self._live is not None:
            progress = Text(line(metrics), no_wrap=True, overflow="ellipsis")
            self._live.update(Group(progress, Text(), board.table()), refresh=True)
        elif self._printed_at is None or time.monotonic() - self._printed_at >= PLAIN_SECONDS:
            self.print(f"{line(metrics)}\n{board.plain()}")
            self._printed_at = time.monotonic()

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
