"""`weft run`: queries from a file, answered over a stream until it ends or is stopped."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from weft.cli.progress import Metrics, ProgressLine
from weft.cli.query_options import read_queries
from weft.cli.stream_options import AsJson, ForSeconds, StreamOptions, takes_stream

if TYPE_CHECKING:
    from weft.spark import Run

LOOK_SECONDS = 0.5
"""How often a run is looked at for the progress line."""


@takes_stream
def run(
    stream: StreamOptions,
    drain: Annotated[bool, typer.Option("--drain", help="Read what is there, answer every window, end.")] = False,
    as_json: AsJson = False,
    seconds: ForSeconds = None,
) -> None:
    """Answer the queries over a stream, until stopped by Ctrl-C or SIGTERM."""
    job = stream.weave(read_queries(stream.file, stream.options.event_time))
    with stopped_by_signals() as stopped:
        started = stream.start(job, available_now=drain)
        with ProgressLine(as_json=as_json) as progress:
            watch(started, progress, stopped, seconds)
            if drain and not stopped.is_set():
                started.drain()
                show(started, progress)
        if stopped.is_set():
            say_stopped(started)


def watch(run: Run, progress: ProgressLine, stopped: threading.Event, seconds: float | None) -> None:
    """Show the run until it ends, or stop it after `seconds` or when it is to be stopped."""
    begun = time.monotonic()
    while not run.wait(LOOK_SECONDS):
        show(run, progress)
        if stopped.is_set() or (seconds is not None and time.monotonic() - begun >= seconds):
            run.stop()
            break
    show(run, progress)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM and Ctrl-C set, instead of ending the process in the middle of a batch."""
    stopped = threading.Event()

    def stop(number: int, frame: Any) -> None:
        stopped.set()

    # Spark's own handler of SIGINT, which cancels the batch that runs, is put back in the end.
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def say_stopped(run: Run) -> None:
    """On stderr, because progress may be on stdout."""
    batch = run.metrics()["batch"]
    where = "before the first batch" if batch is None else f"after batch {batch}"
    typer.echo(f"Stopped {where}; start it again with the same checkpoint to go on from there.", err=True)


def show(run: Run, progress: ProgressLine) -> None:
    metrics = run.metrics()
    if metrics["batch"] is not None:
        progress.update(cast(Metrics, metrics))
