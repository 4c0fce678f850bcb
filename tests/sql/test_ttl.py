"""How long a query lives, at the end of its text."""

from __future__ import annotations

import pytest

from weft.model import Life
from weft.sql import Refused, parse

HOUR = 3_600_000_000
PLAIN = "SELECT k, count(*) AS n FROM stream GROUP BY k, window(ts, '1 hour')"


@pytest.mark.parametrize(
    ("said", "life"),
    [
        ("FOR 8 HOURS", Life(length=8 * HOUR)),
        ("for 1 hour 30 minutes", Life(length=3 * HOUR // 2)),
        ("FOR INTERVAL '8' HOURS", Life(length=8 * HOUR)),
        ("UNTIL '1970-01-01 02:00:00'", Life(until=2 * HOUR)),
        ("UNTIL TIMESTAMP '1970-01-01T02:00:00+01:00'", Life(until=HOUR)),
    ],
)
def test_a_life_is_read_and_plain_spark_does_not_see_it(said: str, life: Life) -> None:
    for text in (PLAIN, f"{PLAIN} HAVING count(*) > 3", f"CREATE VIEW v AS {PLAIN}"):
        (with_life,), (without,) = parse(f"{text} {said}"), parse(text)
        assert (with_life.life, with_life.spark_sql) == (life, without.spark_sql)
        assert with_life == without, "the same query, as far as sharing goes"
        assert without.life is None


def test_a_life_ends_a_query_with_a_window_in_brackets() -> None:
    text = "SELECT count(*) AS n FROM trades [RANGE 1 HOUR SLIDE 10 MINUTES]"
    one, other, last = parse(f"{text} WHERE v > 1 FOR 2 HOURS; {text} FOR 1 HOUR; {PLAIN}")
    assert (one.life, one.where, other.life, last.life) == (Life(2 * HOUR), "v > 1", Life(HOUR), None)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("FOR 8 MOONS", "'moon' is not a unit of time"),
        ("FOR 0 HOURS", "a life of 0 HOURS is none"),
        ("UNTIL 'tomorrow'", "'tomorrow' is not an instant"),
    ],
)
def test_a_life_that_cannot_be_read_is_refused_at_its_place(said: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as caught:
        parse(f"{PLAIN}\n{said}")
    assert (caught.value.line, caught.value.column) == (2, 1)
    assert "Write FOR 8 HOURS" in str(caught.value)


def test_the_word_for_inside_an_expression_says_nothing_about_lives() -> None:
    (query,) = parse("SELECT max(substring(s FROM 1 FOR 3)) AS m FROM stream GROUP BY window(ts, '1 hour')")
    assert query.life is None
