"""What is shown of the answers, and how the measurement is told. No JVM."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from rich.console import Console

from weft.demo.measure import Saved
from weft.demo.show import AnswerDisplay, Tile

OPEN = datetime(2026, 1, 5, 14, 30, tzinfo=UTC)

VWAP = Tile("VWAP", "vwap", "vwap", "{:.2f}", "symbol", ("A", "B"))
LARGEST = Tile("exposure", "vwap", "vwap", "{:+.0f}", "symbol")
TOTAL = Tile("turnover, millions", "total", "turnover", "{:.1f}", scale=1e-6)


def rows(*values: tuple[int, str, float]) -> pa.Table:
    return pa.table(
        {
            "symbol": [symbol for _, symbol, _ in values],
            "window": [window(start) for start, _, _ in values],
            "vwap": [value for _, _, value in values],
        }
    )


def window(start: int) -> dict[str, datetime]:
    return {"start": OPEN + timedelta(seconds=start), "end": OPEN + timedelta(seconds=start + 10)}


def test_the_newest_window_is_shown_with_where_it_went_since_the_one_before() -> None:
    display = AnswerDisplay([VWAP])
    display.take(0, {"vwap": rows((1, "A", 5.0), (0, "A", 6.0), (1, "B", 2.0), (0, "B", 1.0), (1, "C", 9.0))})
    assert display.plain() == f"  {'VWAP':<19} {'vwap':<20} 14:30:01-14:30:11  A 5.00 down   B 2.00 up"
    display.take(1, {"vwap": rows((2, "B", 2.0))})
    assert display.plain().endswith("14:30:02-14:30:12  B 2.00")


def test_a_batch_without_an_answer_leaves_the_last_one() -> None:
    display = AnswerDisplay([VWAP])
    display.take(0, {"vwap": rows((0, "A", 1.0))})
    display.take(1, {"other": rows((1, "A", 2.0))})
    display.take(0, {"vwap": rows((0, "A", 1.0))})  # a batch that is repeated
    assert display.plain().endswith("14:30:00-14:30:10  A 1.00")


def test_without_watched_groups_the_largest_are_shown_either_way_of_zero() -> None:
    display = AnswerDisplay([LARGEST])
    display.take(0, {"vwap": rows((0, "A", 1.0), (0, "B", -40.0), (0, "C", 30.0), (0, "D", 2.0))})
    assert display.plain().endswith("B -40   C +30   D +2")


def test_an_answer_without_groups_is_one_number() -> None:
    display = AnswerDisplay([TOTAL])
    display.take(0, {"total": pa.table({"window": [window(0)], "turnover": [2_500_000.0]})})
    assert display.plain().endswith("14:30:00-14:30:10  2.5")
    assert display.to_json()[0]["values"] == 2_500_000.0


def test_a_null_answer_is_not_shown() -> None:
    display = AnswerDisplay([VWAP])
    display.take(0, {"vwap": rows((0, "A", None), (0, "B", 1.0))})  # type: ignore[arg-type]
    assert display.plain().endswith("14:30:00-14:30:10  B 1.00")


def test_the_terminal_s_table_has_the_same_answers() -> None:
    display = AnswerDisplay([VWAP])
    display.take(0, {"vwap": rows((0, "A", 1.0), (0, "B", 1.0), (1, "A", 2.0), (1, "B", 0.5))})
    console = Console(width=120)
    with console.capture() as shown:
        console.print(display.table())
    assert "A 2.00 ▲" in shown.get()
    assert "B 0.50 ▼" in shown.get()


def test_a_sample_is_told_as_a_sample_and_its_ratio_as_a_bound() -> None:
    saved = Saved(1000, 100, 5000, (2.0, 1.5), apart=60.0, sample=40, checked=("q",))
    assert "40 of the 100 queries, a random sample" in saved.text()
    assert "at least 30.0 times faster: all 100 queries against 40" in saved.text()
    assert saved.to_json()["sampled"] is True


def test_without_a_sample_the_ratio_is_the_measured_one() -> None:
    saved = Saved(1000, 100, 5000, (2.0, 1.5), apart=50.0, sample=100, checked=("q",))
    assert "  25.0 times faster;" in saved.text()
    assert "sample" not in saved.text()
