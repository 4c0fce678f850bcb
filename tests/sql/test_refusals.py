"""What cannot be served is refused: at its place, with a reason and a way out."""

from __future__ import annotations

import pytest

from weft.sql import Refused, parse

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
        "Use collect_set, approx_top_k or count(DISTINCT ...), or run this query outside weft."
    )
    assert (error.line, error.column) == (4, 2)


@pytest.mark.parametrize(
    ("item", "mark", "reason"),
    [
        ("product(x)", "product(x)", "does not compute product"),
        ("regr_slope(y)", "regr_slope(y)", "takes 2 arguments"),
        ("percentile_cont(x, 0.5)", "percentile_cont(x, 0.5)", "does not say what is put in order"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC)", "DESC", "ascending order, by one expression"),
        ("percentile_disc(0.5) WITHIN GROUP (ORDER BY x, y)", ",", "ascending order, by one expression"),
        ("percentile_cont(y) WITHIN GROUP (ORDER BY x)", "y", "must be a number, or an array of numbers"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY max(x))", "max(x)", "cannot stand in WITHIN GROUP"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FILTER (WHERE max(y) > 1)", "max(y)", "FILTER"),
        ("sum(x) WITHIN GROUP (ORDER BY y)", "sum(x) WITHIN GROUP (ORDER BY y)", "does not hang on the order"),
        ("percentile(x, y)", "y", "must be a number, or an array of numbers, for percentile"),
        ("percentile_approx(x, array(0.5, y))", "array(0.5, y)", "must be a number, or an array of numbers"),
        ("histogram_numeric(x, y)", "y", "must be a number, or an array of numbers, for histogram_numeric"),
        ("top_k_sum(x)", "top_k_sum(x)", "takes 2 or 3 arguments"),
        ("top_k_sum(x, y, 0)", "0", "how many items top_k_sum gives"),
        ("count(DISTINCT x, y)", "count(DISTINCT x, y)", "tells pairs apart"),
        ("count(DISTINCT *)", "*", "names no column"),
        ("sum(DISTINCT x)", "sum(DISTINCT x)", "remember every value"),
        ("approx_top_k(x) FILTER (WHERE y > 1)", "approx_top_k(x) FILTER (WHERE y > 1)", "also counts NULL"),
        ("avg(DISTINCT x)", "avg(DISTINCT x)", "remember every value"),
        ("sum(x) OVER (ORDER BY ts)", "sum(x)", "rows around each row"),
        ("row_number() OVER (ORDER BY ts)", "row_number()", "rows around each row"),
        ("max(rand())", "rand()", "something else each time"),
        ("max(current_timestamp)", "current_timestamp", "something else each time"),
        ("max(now())", "now()", "something else each time"),
        ("max(uuid())", "uuid()", "something else each time"),
        ("sum(monotonically_increasing_id())", "monotonically_increasing_id()", "something else each time"),
        ("max(input_file_name())", "input_file_name()", "something else each time"),
        ("max(current_user())", "current_user()", "something else each time"),
        ("explode(xs)", "explode(xs)", "several rows of one"),
        ("sum(max(x))", "max(x)", "arguments of sum"),
        ("sum(x) FILTER (WHERE max(y) > 1)", "max(y)", "FILTER"),
        ("price", "price", "neither grouped nor aggregated"),
        ("max(x) + price", "price", "neither grouped nor aggregated"),
        ("a[0]", "a[0]", "neither grouped nor aggregated"),
        ("*", "*", "every column"),
        ("upper(max(s))", "upper(max(s))", "does not compute upper()"),
        ("max(s) || 'x'", "max(s) || 'x'", "does not compute"),
        ("round(max(s), 1, 2)", "round(max(s), 1, 2)", "does not compute round()"),
        ("date_format(window.start, 'HH')", "date_format(window.start, 'HH')", "over the window"),
        ("range(x)", "range(x)", "neither grouped nor aggregated"),
        ("(SELECT 1)", "SELECT 1)", "subquery"),
        ("corr(x)", "corr(x)", "takes 2 arguments"),
        ("sum(x, y)", "sum(x, y)", "takes 1 argument"),
        ("sum(*)", "*", "names no column"),
        ("first(x, y)", "y", "true or false"),
        ("sum(x) IGNORE NULLS", "sum(x) IGNORE NULLS", "does not see nulls"),
        ("window(ts, '2 hours')", "window(ts, '2 hours')", "one window"),
        ("'only a constant'", "'only a constant'", "aggregates nothing"),
    ],
)
def test_a_column_that_cannot_be_served_is_refused(item: str, mark: str, reason: str) -> None:
    error = refused(f"SELECT\n  {item}\n{WINDOWED}")
    assert error.line == 2
    assert error.column == 3 + item.index(mark)
    assert marked(error) == mark
    assert reason in error.reason
    assert error.reason.endswith(".")
    assert error.way_out.endswith(".")


@pytest.mark.parametrize(
    ("text", "mark", "reason"),
    [
        ("FROM trades JOIN b ON a = b GROUP BY window(ts, '1 hour')", "JOIN", "one stream"),
        ("FROM trades t LEFT JOIN b ON a = b GROUP BY window(ts, '1 hour')", "LEFT", "one stream"),
        ("FROM trades, b GROUP BY window(ts, '1 hour')", ",", "one stream"),
        ("FROM (SELECT 1 AS x) GROUP BY window(ts, '1 hour')", "(SELECT 1 AS x)", "subquery"),
        ("FROM range(3) GROUP BY window(ts, '1 hour')", "range(", "table function"),
        ("FROM trades TABLESAMPLE (10 PERCENT) GROUP BY window(ts, '1 hour')", "TABLESAMPLE", "other rows"),
        ("FROM trades LATERAL VIEW explode(xs) e AS x GROUP BY window(ts, '1 hour')", "LATERAL", "several rows"),
        ("FROM trades WHERE x IN (SELECT y FROM z) GROUP BY window(ts, '1 hour')", "SELECT y FROM z)", "subquery"),
        ("FROM trades WHERE max(x) > 1 GROUP BY window(ts, '1 hour')", "max(x)", "WHERE"),
        ("FROM trades WHERE x = :p GROUP BY window(ts, '1 hour')", ":", "parameter"),
        ("FROM trades WHERE x = ? GROUP BY window(ts, '1 hour')", "?", "parameter"),
        ("FROM trades WHERE rand() > 1 GROUP BY window(ts, '1 hour')", "rand()", "each time"),
        ("FROM trades WHERE window(ts, '1 hour').start > 1 GROUP BY window(ts, '1 hour')", "window",
         "window() in WHERE"),
        ("FROM trades GROUP BY window(ts, '1 hour') ORDER BY 1", "ORDER BY", "nothing to sort"),
        ("FROM trades GROUP BY window(ts, '1 hour') SORT BY x", "SORT BY", "nothing to sort"),
        ("FROM trades GROUP BY window(ts, '1 hour') LIMIT 3", "LIMIT", "no end"),
        ("FROM trades GROUP BY window(ts, '1 hour') QUALIFY true", "QUALIFY", "window functions"),
        ("FROM trades GROUP BY window(ts, '1 hour') UNION ALL SELECT 1", "UNION", "several"),
        ("FROM trades GROUP BY CUBE(a, b), window(ts, '1 hour')", "CUBE(a, b)", "several groupings"),
        ("FROM trades GROUP BY ROLLUP(a, b), window(ts, '1 hour')", "ROLLUP(a, b)", "several groupings"),
        ("FROM trades GROUP BY a, window(ts, '1 hour') GROUPING SETS ((a))", "GROUPING SETS ((a))",
         "several groupings"),
        ("FROM trades GROUP BY ALL", "ALL", "unsaid"),
        ("FROM trades GROUP BY max(a), window(ts, '1 hour')", "max(a)", "GROUP BY"),
        ("FROM trades GROUP BY 3, window(ts, '1 hour')", "3", "no column 3"),
        ("FROM trades GROUP BY 1, window(ts, '1 hour')", "1", "GROUP BY"),
        ("FROM trades", "trades", "no window"),
        ("FROM trades GROUP BY sym", "sym", "no window"),
        ("FROM trades GROUP BY session_window(ts, '5 minutes')", "session_window(ts, '5 minutes')",
         "depend on the data"),
        ("FROM trades GROUP BY window(ts, '1 hour'), window(ts, '2 hours')", "window(ts, '2 hours')", "one window"),
        ("FROM trades [RANGE 1 HOUR SLIDE 1 MINUTE PRIORITY 2]", "PRIORITY", "gets every window"),
        ("FROM trades [RANGE 1 HOUR SLIDE AT MOST 1 MINUTE PRIORITY x]", "PRIORITY x", "a whole number"),
        ("FROM trades [RANGE 1 HOUR] GROUP BY window(ts, '2 hours')", "window(ts, '2 hours')", "one window"),
        ("FROM trades [RANGE 1 HOUR] GROUP BY window.start", "window.start", "not a key"),
        ("FROM trades GROUP BY window(ts, '1 hour').start", "window(ts, '1 hour').start", "by itself"),
        ("FROM trades GROUP BY window(now(), '1 hour')", "now()", "each time"),
        ("FROM trades GROUP BY window(ts)", "window(ts)", "takes a time and a range"),
        ("FROM trades GROUP BY window('2024-01-01', '1 hour')", "'2024-01-01'", "constant"),
        ("FROM trades GROUP BY window(ts, '1 month')", "'1 month'", "no fixed length"),
        ("FROM trades GROUP BY window(ts, 'soon')", "'soon'", "not a duration"),
        ("FROM trades GROUP BY window(ts, INTERVAL 1 HOUR)", "INTERVAL 1 HOUR", "as literals"),
        ("FROM trades GROUP BY window(ts, '0 seconds')", "'0 seconds'", "longer than nothing"),
        ("FROM trades GROUP BY window(ts, '1 hour', '-1 hour')", "'-1 hour'", "move on"),
        ("FROM trades GROUP BY window(ts, '1 hour', '2 hours')", "'2 hours'", "longer than the range"),
        ("FROM trades GROUP BY window(ts, '1 hour', '1 minute', '1 minute')", "'1 minute'",
         "not shorter than the slide"),
        ("FROM trades [ROWS 10]", "ROWS 10", "so many rows"),
        ("FROM trades [NOW]", "NOW", "no window over time"),
        ("FROM trades [RANGE UNBOUNDED]", "RANGE UNBOUNDED", "never closes"),
        ("FROM trades [RANGE 1 HOUR SLIDE]", "SLIDE", "nothing follows"),
        ("FROM trades [RANGE 1 HOUR SLIDE 2 HOURS]", "2 HOURS", "longer than the range"),
        ("FROM trades [RANGE 1 HOUR RANGE 2 HOURS]", "RANGE", "twice"),
        ("FROM trades [RANGE 1 HOUR", "[", "never closed"),
        ("FROM trades GROUP BY window(ts, '1 hour') HAVING x > 1", "x", "neither grouped nor aggregated"),
        ("FROM trades GROUP BY window(ts, '1 hour') HAVING n LIKE 'x'", "n LIKE 'x'", "does not compute"),
        ("FROM trades WHERE x > ) 3 GROUP BY window(ts, '1 hour')", ")", "missing"),
        ("FROM trades WHERE 'x GROUP BY window(ts, '1 hour')", "'", "never closed"),
        ("FROM trades /* x GROUP BY window(ts, '1 hour')", "/*", "never closed"),
    ],
)  # fmt: skip
def test_a_clause_that_cannot_be_served_is_refused(text: str, mark: str, reason: str) -> None:
    error = refused(f"SELECT count(*) FROM a [RANGE 1 HOUR];\nSELECT count(*) AS n\n{text}")
    assert error.line == 3
    assert text[error.column - 1 :].startswith(mark)
    assert marked(error) == mark
    assert reason in error.reason


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("", 1, 1, "no query"),
        ("-- only a comment\n;;", 1, 1, "no query"),
        (f"SELECT count(*) {WINDOWED};\n DROP TABLE x", 2, 2, "does not begin a query"),
        ("WITH a AS (SELECT 1) SELECT 1", 1, 1, "WITH"),
        ("(SELECT 1)", 1, 1, "parentheses"),
        ("CREATE TABLE x AS SELECT 1", 1, 1, "does not begin a query"),
        (f"CREATE VIEW v (a) AS SELECT count(*) {WINDOWED}", 1, 15, "columns"),
        (f"SELECT DISTINCT count(*) {WINDOWED}", 1, 8, "DISTINCT"),
        ("SELECT count(*)", 1, 1, "no stream"),
        ("SELECT sum(a FROM t", 1, 14, "expecting )"),
        ("SELECT a,\n  sum(b) c d FROM t", 2, 12, "not expected"),
        ("SELECT count(*) FROM", 1, 17, "missing"),
        ("SELECT count(*), FROM t [RANGE 1 HOUR]", 1, 16, "missing"),
        ("SELECT count(*) FROM t [RANGE 1 HOUR] GROUP BY", 1, 39, "nothing follows"),
        ("SELECT 5 + $x FROM t", 1, 12, "no part of Spark SQL"),
    ],
)
def test_what_is_no_query_is_refused_where_it_stops_being_one(text: str, line: int, column: int, reason: str) -> None:
    error = refused(text)
    assert (error.line, error.column) == (line, column)
    assert reason in error.reason


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
