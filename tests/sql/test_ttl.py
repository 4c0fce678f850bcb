"""How long a query lives, at the end of its text."""

from __future__ import annotations

import pytest

from weft.model import Ttl
from weft.sql import Refused, parse

HOUR = 3_600_000_000
PLAIN = "SELECT k, count(*) AS n FROM stream GROUP BY k, window(ts, '1 hour')"


@pytest.mark.parametrize(
    ("said", "ttl"),
    [
        ("FOR 8 HOURS", Ttl(length=8 * HOUR)),
        ("for 1 hour 30 minutes", Ttl(length=3 * HOUR // 2)),
        ("FOR INTERVAL '8' HOURS", Ttl(length=8 * HOUR)),
        ("UNTIL '1970-01-01 02:00:00'", Ttl(until=2 * HOUR)),
        ("UNTIL TIMESTAMP '1970-01-01T02:00:00+01:00'", Ttl(until=HOUR)),
    ],
)
def test_a_ttl_is_read_and_plain_spark_does_not_see_it(said: str, ttl: Ttl) -> None:
    for text in (PLAIN, f"{PLAIN} HAVING count(*) > 3", f"CREATE VIEW v AS {PLAIN}"):
        (with_life,), (without,) = parse(f"{text} {said}"), parse(text)
        assert (with_life.ttl, with_life.spark_sql) == (ttl, without.spark_sql)
        assert with_life == without, "the same query, as far as sharing goes"
        assert without.ttl is None


def test_a_life_ends_a_query_with_a_window_in_brackets() -> None:
    text = "SELECT count(*) AS n FROM trades [RANGE 1 HOUR SLIDE 10 MINUTES]"
    one, other, last = parse(f"{text} WHERE v > 1 FOR 2 HOURS; {text} FOR 1 HOUR; {PLAIN}")
    assert (one.ttl, one.where, other.ttl, last.ttl) == (Ttl(2 * HOUR), "v > 1", Ttl(HOUR), None)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("FOR 8 MOONS", "'moon' is not a unit of time"),
        ("FOR 0 HOURS", "a query that lives for 0 HOURS answers nothing"),
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
    assert query.ttl is None
