"""Lengths of time as the commands take them, the options that `weft run` and `weft serve` share, how a run stops."""

import os
import signal
import threading
import time
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from typer.testing import CliRunner

from weft.cli.progress import ProgressLine
from weft.cli.run import stopped_by_signals, watch
from weft.cli.stream_options import StreamOptions, parse_seconds, takes_stream
from weft.spark.options import JobOptions


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("500ms", 0.5), ("2 h", 7200), ("20", 20), (30.0, 30)])
def test_a_length_of_time_is_a_number_with_a_unit(text: str | float, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "0s", "5 days", "nan"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="30s"):
        parse_seconds(text)


def test_a_command_over_a_stream_is_handed_the_shared_options_and_its_own() -> None:
    handed: list[tuple[StreamOptions, int]] = []

    @takes_stream
    def follow(stream: StreamOptions, port: int = 1) -> None:
        """Follow a stream."""
        handed.append((stream, port))

    app = typer.Typer()
    app.command()(follow)
    words = "q.sql --source rate:5 --sink noop --checkpoint state --rows-a-batch 7 --synopsis-limit 2k --port 8"
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 0, done.output
    expected = StreamOptions(
        Path("q.sql"),
        "rate:5",
        "noop",
        Path("state"),
        rows_a_batch=7,
        options=JobOptions(watermark="10 seconds", synopsis_limit=2048),
    )
    assert handed == [(expected, 8)]


def test_a_command_over_a_stream_asks_for_what_has_no_default() -> None:
    app = typer.Typer()
    app.command()(takes_stream(lambda stream: None))
    done = CliRunner().invoke(app, ["q.sql", "--source", "rate:5", "--sink", "noop"])
    assert done.exit_code == 2
    assert "--checkpoint" in done.output


class Endless:
    """A run that goes on until it is told to stop."""

    def __init__(self) -> None:
        self.stopped = False

    def wait(self, seconds: float) -> bool:
        time.sleep(0.01)
        return self.stopped

    def metrics(self) -> dict[str, Any]:
        return {"batch": None}

    def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_breaks_off_no_call_and_stops_the_run_at_the_next_look(number: signal.Signals) -> None:
    run, before = Endless(), signal.getsignal(number)
    threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
    with stopped_by_signals() as stopped:
        watch(cast(Any, run), ProgressLine(as_json=True), stopped, None)
    assert run.stopped
    assert signal.getsignal(number) is before


def test_a_run_is_stopped_when_its_time_is_over() -> None:
    run = Endless()
    watch(cast(Any, run), ProgressLine(as_json=True), threading.Event(), 0.03)
    assert run.stopped


def test_earlier_names_of_options_still_work_and_say_the_new_one() -> None:
    handed: list[StreamOptions] = []
    app = typer.Typer()
    app.command()(takes_stream(lambda stream: handed.append(stream)))
    words = "q.sql --source rate:5 --sink noop --checkpoint state --late update --lateness 1h --retain 2h --bad-sink b"
    done = CliRunner().invoke(app, [w.replace("1h", "1 hour").replace("2h", "2 hours") for w in words.split()])
    assert done.exit_code == 0, done.output
    assert (handed[0].options.allowed_lateness, handed[0].options.retention) == ("1 hour", "2 hours")
    assert handed[0].corrupt_sink == "b"
    for old, new in (("lateness", "allowed-lateness"), ("retain", "retention"), ("bad-sink", "corrupt-sink")):
        assert f"--{old} is deprecated; use --{new}" in done.output


def test_the_help_of_a_command_has_every_option_of_a_job_and_no_earlier_name() -> None:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(takes_stream(lambda stream: None))
    shown = CliRunner().invoke(app, ["--help"]).output
    for field in fields(JobOptions):
        assert f"--{field.name.replace('_', '-')} " in shown
    assert "--retain " not in shown
