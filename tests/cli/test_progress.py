"""The progress line: its words, and where it goes."""

import io
import json

from rich.console import Console

from weft.cli.progress import PLAIN_SECONDS, Metrics, ProgressLine, line


def metrics(batch: int = 41, **other: object) -> Metrics:
    return Metrics(  # type: ignore[typeddict-item]
        **{
            "batch": batch,
            "rows": 49_364_000,
            "rows_per_second": 1_204_000.4,
            "watermark": "2024-03-01T09:30:41.250000",
            "lag_seconds": 1.24,
            "answers": 340_300,
            "answers_per_second": 8_300.0,
            "late": 12,
            "queries": 100,
            "trees": 7,
            **other,
        }
    )


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_line_reads_in_the_order_of_the_data() -> None:
    assert line(metrics()) == (
        "batch 41  1,204,000 rows/s  watermark 2024-03-01 09:30:41  lag 1.2 s  8,300 answers/s  12 late  "
        "100 queries in 7 trees"
    )


def test_before_the_first_row_there_is_no_watermark_and_no_lag() -> None:
    shown = line(metrics(0, watermark=None, lag_seconds=None, queries=1, trees=1))
    assert "watermark -  lag -  " in shown
    assert shown.endswith("1 query in 1 tree")


def test_a_log_gets_a_whole_line_now_and_then_and_always_the_last() -> None:
    # seconds   0   1   5   6
    # batch     1   2   3   4
    # printed   x       x   x (at the end)
    out, clock = io.StringIO(), Clock()
    with ProgressLine(console=Console(file=out, width=20), clock=clock) as progress:
        for batch, clock.now in ((1, 0.0), (2, 1.0), (3, PLAIN_SECONDS), (4, PLAIN_SECONDS + 1)):
            progress.update(metrics(batch))
    assert out.getvalue().splitlines() == [line(metrics(batch)) for batch in (1, 3, 4)]


def test_the_last_batch_is_not_printed_twice() -> None:
    out = io.StringIO()
    with ProgressLine(console=Console(file=out), clock=Clock()) as progress:
        progress.update(metrics(1))
    assert out.getvalue() == line(metrics(1)) + "\n"


def test_a_failing_run_still_shows_how_far_it_came() -> None:
    out = io.StringIO()
    try:
        with ProgressLine(console=Console(file=out), clock=Clock()) as progress:
            progress.update(metrics(1))
            progress.update(metrics(2))
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert out.getvalue().splitlines()[-1] == line(metrics(2))


def test_a_terminal_has_one_line_that_is_drawn_over_and_never_wraps() -> None:
    out = io.StringIO()
    with ProgressLine(console=Console(file=out, force_terminal=True, width=60, color_system=None)) as progress:
        progress.update(metrics(1))
        progress.update(metrics(2))
    drawn = out.getvalue()
    assert "batch 1 " in drawn
    assert "batch 2 " in drawn
    assert drawn.count("\n") == 1
    assert "trees" not in drawn  # past the sixtieth column


def test_json_is_an_object_a_batch_on_stdout_and_nothing_else() -> None:
    out, errors = io.StringIO(), io.StringIO()
    with ProgressLine(as_json=True, stdout=out, console=Console(file=errors, force_terminal=True)) as progress:
        progress.update(metrics(1))
        progress.update(metrics(2))
    assert [json.loads(text) for text in out.getvalue().splitlines()] == [metrics(1), metrics(2)]
    assert errors.getvalue() == ""
