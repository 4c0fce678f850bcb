"""Durations: what Spark takes, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.sql import duration, duration_text

SECOND = 1_000_000

TAKEN = {
    "10 minutes": 600 * SECOND,
    "interval 10 minutes": 600 * SECOND,
    "INTERVAL '10' MINUTES": 600 * SECOND,
    "1 hour 30 minutes": 5400 * SECOND,
    "1 hour -30 minutes": 1800 * SECOND,
    " 1  HOUR ": 3600 * SECOND,
    "1 week": 7 * 86400 * SECOND,
    "1 day 2 hours": 26 * 3600 * SECOND,
    "500 milliseconds": 500_000,
    "7 microseconds": 7,
    "1.5 seconds": 1_500_000,
    ".5 seconds": 500_000,
    "5. seconds": 5 * SECOND,
    "1.0000001 seconds": SECOND,
    "- 1 hour": -3600 * SECOND,
    "+1 hour": 3600 * SECOND,
    "0 months 1 hour": 3600 * SECOND,
}
NOT_TAKEN = [
    "", "10", "day", "week", "1hour", "10 mins", "1 ms", "1.5 minutes", "1 month", "1 year", "1e3 seconds",
    "'10' minutes", "1 hour, 30 minutes", "interval", "10 minutes ago", "1 0 hours", "1.12345678901 seconds",
    "interval interval 1 hour",
]  # fmt: skip


@pytest.mark.parametrize(("text", "microseconds"), TAKEN.items())
def test_a_duration_is_read_as_spark_reads_it(text: str, microseconds: int) -> None:
    assert duration(text) == microseconds


@pytest.mark.parametrize("text", NOT_TAKEN)
def test_what_spark_does_not_take_is_not_taken(text: str) -> None:
    with pytest.raises(ValueError):
        duration(text)


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_duration_in_words_is_the_same_duration(microseconds: int) -> None:
    assert duration(duration_text(microseconds)) == microseconds
