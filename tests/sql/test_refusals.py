"""What cannot be served is refused: at its place, with a reason and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fixtures import read_cases
from weft.sql import Refused, parse

FIXTURES = Path(__file__).parent / "fixtures"
CASES = [case for file in sorted(FIXTURES.glob("refused_*.txt")) for case in read_cases(file)]

WINDOWED = "FROM trades GROUP BY window(ts, '1 hour')"


def refused(text: str) -> Refused:
    with pytest.raises(Refused) as caught:
        parse(text)
    return caught.value


def marked(error: Refused) -> str:
    """The text above the carets."""
    line, carets = error.snippet.split("\n")
    return line[len(carets) - len(carets.lstrip()) :][: len(carets.strip())]


def test_a_refusal_shows_the_place_the_reason_and_the_way_out() -> None:
    error = refused(f"SELECT count(*) {WINDOWED};\n\nSELECT\n\tcollect_list(price)\n{WINDOWED}")
    assert str(error) == (
        "line 4, column 2: collect_list(price) keeps every row, so its windows cannot be built from partial results.\n"
        "    \tcollect_list(price)\n"
        "    \t^^^^^^^^^^^^^^^^^^^\n"
        "Run this query outside weft, or use collect_set, approx_top_k or count(DISTINCT ...) if less will do."
    )
    assert (error.line, error.column) == (4, 2)


@pytest.mark.parametrize(("text", "message"), CASES)
def test_what_cannot_be_served_is_refused_with_place_reason_and_way_out(text: str, message: str) -> None:
    assert str(refused(text)) == message


@pytest.mark.parametrize("text", ["", "-- only a comment\n;;"])
def test_a_text_without_a_query_is_refused_at_its_beginning(text: str) -> None:
    error = refused(text)
    assert (error.line, error.column) == (1, 1)
    assert "no query" in error.reason


def test_an_aggregate_that_weft_does_not_know_is_refused_with_those_that_it_knows() -> None:
    error = refused(f"SELECT product(x) {WINDOWED}")
    assert (error.reason, marked(error)) == ("weft does not compute product.", "product(x)")
    assert "approx_count_distinct, approx_top_k, avg, " in error.way_out


def test_two_queries_of_one_name_are_refused_at_the_second() -> None:
    view = f"CREATE VIEW v AS SELECT count(*) {WINDOWED}"
    error = refused(f"{view};\n{view.replace('VIEW v', 'VIEW V')}")
    assert (error.line, error.column, marked(error)) == (2, 13, "V")


@pytest.mark.parametrize("name", ["n" * 201, "`" + "ü" * 34 + "`"])
def test_a_name_that_no_folder_can_have_is_refused_at_its_place(name: str) -> None:
    error = refused(f"CREATE VIEW {name} AS SELECT count(*) {WINDOWED}")
    assert "a name has at most 200 bytes" in str(error)
    assert marked(error) == name
    assert parse(f"CREATE VIEW {'n' * 200} AS SELECT count(*) {WINDOWED}")[0].name == "n" * 200


def test_an_alias_that_may_be_a_column_is_refused_as_a_key() -> None:
    error = refused("SELECT 'x' AS kind, count(*) FROM trades GROUP BY kind, window(ts, '1 hour')")
    assert (error.column, error.way_out) == (51, "Write GROUP BY 'x', or give the column in SELECT another name.")


def test_a_query_nested_without_end_is_refused() -> None:
    error = refused(f"SELECT {'(' * 5000}count(*){')' * 5000} {WINDOWED}")
    assert "nested too deeply" in error.reason
