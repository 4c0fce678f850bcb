"""The watermark as a rule, without Spark: it follows rows, then the clock, and never goes back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine import FOREVER
from weft.spark.checkpoint.batch_log import BatchRecord
from weft.spark.execution.watermark import after_rows, iso, latest_that_counts, while_idle
from weft.spark.options import TimeOptions

SECOND = 1_000_000


@settings(derandomize=True, deadline=None)
@given(st.lists(st.none() | st.integers(-100, 100), max_size=8), st.integers(0, 50))
def test_it_stays_behind_the_newest_row_and_never_goes_back(newest: list[int | None], delay: int) -> None:
    record, times, seen = BatchRecord.initial(), TimeOptions(delay=delay), []
    for number, of_batch in enumerate(newest):
        seen += [] if of_batch is None else [of_batch]
        moved = after_rows(record, of_batch, times)
        assert moved.max_event_time == max(seen, default=None)
        assert moved.watermark == (max(seen) - delay if seen else None)
        record = BatchRecord(number, moved.watermark, moved.max_event_time)


def test_without_rows_it_follows_the_clock_from_the_newest_row_on() -> None:
    times = TimeOptions(delay=5 * SECOND)
    quiet = BatchRecord(3, watermark=15 * SECOND, max_event_time=20 * SECOND)
    assert while_idle(quiet, 2.0, times) == 17 * SECOND
    moved = BatchRecord(4, watermark=17 * SECOND, max_event_time=20 * SECOND)
    assert while_idle(moved, 1.0, times) is None, "it does not go back"
    assert after_rows(moved, 21 * SECOND, times).watermark == 17 * SECOND, "nor do rows move it back"
    assert while_idle(BatchRecord.initial(), 9.0, times) is None, "no row has arrived"
    assert while_idle(BatchRecord(5, FOREVER, 20 * SECOND, drained=True), 9.0, times) is None


def test_rows_too_far_ahead_of_the_clock_do_not_count() -> None:
    assert latest_that_counts(TimeOptions()) is None
    near, far = (latest_that_counts(TimeOptions(max_skew=skew)) for skew in (0, 3600 * SECOND))
    assert near is not None
    assert far is not None
    assert 3599 * SECOND < far - near < 3601 * SECOND


def test_a_time_is_shown_in_iso_8601() -> None:
    assert iso(1_709_251_200_500_000) == "2024-03-01T00:00:00.500000Z"
    assert (iso(None), iso(FOREVER)) == (None, None)
