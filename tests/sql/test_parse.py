"""What a text means: windows, keys, filters, calls and columns."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fixtures import read_cases
from weft.model import ACQ, Call, Window
from weft.sql import parse, refuse

MINUTE = 60_000_000
HOUR = 60 * MINUTE
FIXTURES = Path(__file__).parent / "fixtures"

HOURLY = "FROM trades GROUP BY window(ts, '1 hour')"


def one(text: str, **options: str) -> ACQ:
    (query,) = parse(text, **options)
    return query


def calls(items: str) -> tuple[Call, ...]:
    return one(f"SELECT {items} {HOURLY}").calls


def where(condition: str) -> str | None:
    return one(f"SELECT count(*) FROM trades WHERE {condition} GROUP BY window(ts, '1 hour')").where


def lowered(item: str) -> str:
    """An expression as nested operations, c for calls, k for keys."""

    def show(e) -> str:  # type: ignore[no-untyped-def]
        if e.op in ("call", "key"):
            return f"{e.op[0]}{e.value}"
        if e.op == "literal":
            return str(e.value)
        return f"{e.op}({', '.join(map(show, e.args))})" if e.args else e.op

    query = one(f"SELECT {item} FROM trades GROUP BY sym, a + b, window(ts, '1 hour') HAVING count(*) > 0")
    return show(query.outputs[0].expression)


def test_a_query_has_its_window_keys_filter_calls_and_columns() -> None:
    q = one(
        "SELECT sym, window.end AS until, avg(price) AS mean FROM trades WHERE price > 0 "
        "GROUP BY sym, window(ts, '1 hour', '10 minutes', '5 minutes')"
    )
    assert (q.name, q.source, q.event_time, q.refresh) == ("q1", "trades", "ts", "exact")
    assert q.window == Window(HOUR, 10 * MINUTE, 5 * MINUTE)
    assert (q.keys, q.where, q.calls) == (("sym",), "price > 0", (Call("avg", ("price",)),))
    assert [o.name for o in q.outputs] == ["sym", "until", "mean"]
    assert [o.expression.op for o in q.outputs] == ["key", "window_end", "call"]


def test_statements_are_named_by_their_view_or_by_their_place() -> None:
    text = f"""
    -- the first; with a semicolon
    SELECT count(*) {HOURLY};
    /* the second /* nested; */ */
    CREATE OR REPLACE TEMPORARY VIEW Busy AS SELECT sum(vol) {HOURLY};;
    SELECT max(price) {HOURLY}
    """
    assert [q.name for q in parse(text)] == ["q1", "Busy", "q3"]
    assert parse(text)[1].text == f"CREATE OR REPLACE TEMPORARY VIEW Busy AS SELECT sum(vol) {HOURLY}"


def test_a_given_name_is_for_the_query_that_does_not_name_itself() -> None:
    assert one(f"SELECT count(*) {HOURLY}", name="mine").name == "mine"
    assert one(f"CREATE VIEW own AS SELECT count(*) {HOURLY}", name="mine").name == "own"


@pytest.mark.parametrize(
    ("bracket", "window", "refresh", "clock"),
    [
        ("RANGE 1 HOUR", Window(HOUR, HOUR), "exact", "event"),
        ("RANGE 1 HOUR SLIDE 10 MINUTES", Window(HOUR, 10 * MINUTE), "exact", "event"),
        ("WINDOW '1 hour' SLIDE AT MOST 2 MINUTES", Window(HOUR, 2 * MINUTE), "at_most", "event"),
        ("range 1 hour slide 10 minutes offset 1 minute", Window(HOUR, 10 * MINUTE, MINUTE), "exact", "event"),
        ("range 1 hour 30 minutes", Window(90 * MINUTE, 90 * MINUTE), "exact", "event"),
        ("RANGE INTERVAL '1' HOUR ON t.Seen", Window(HOUR, HOUR), "exact", "seen"),
    ],
)  # fmt: skip
def test_a_cql_window_becomes_a_window_of_spark(bracket: str, window: Window, refresh: str, clock: str) -> None:
    q = one(f"SELECT max(price), window.start FROM trades [{bracket}] AS t", event_time="Event")
    assert (q.window, q.refresh, q.event_time) == (window, refresh, clock)
    again = one(q.spark_sql)
    assert again == replace(q, refresh="exact")


def test_a_priority_stands_beside_the_window_and_leaves_it_as_it_is() -> None:
    with_priority = one("SELECT max(p) FROM s [RANGE 1 HOUR SLIDE AT MOST 2 MINUTES PRIORITY 3 ON seen]")
    without = one("SELECT max(p) FROM s [RANGE 1 HOUR SLIDE AT MOST 2 MINUTES ON seen]")
    assert (with_priority.priority, without.priority) == (3, 0)
    assert with_priority == replace(without, priority=3)
    assert with_priority.spark_sql == without.spark_sql


@pytest.mark.parametrize(("text", "sql"), read_cases(FIXTURES / "cql_windows.txt"))
def test_only_the_cql_window_is_rewritten(text: str, sql: str) -> None:
    assert one(text).spark_sql == sql


def test_names_are_compared_as_spark_compares_them() -> None:
    q = one("SELECT T.Sym, Sum(`Price`) FROM Trades AS t WHERE t.VOL > 1 GROUP BY sym, window(T.TS, '1 hour')")
    assert (q.source, q.keys, q.where, q.event_time) == ("trades", ("sym",), "vol > 1", "ts")
    assert q.calls == (Call("sum", ("price",)),)
    assert q.outputs[0].name == "Sym"


def test_a_name_that_is_part_of_a_value_keeps_its_case() -> None:
    assert calls("max(Props.Kind)")[0].arguments == ("props.Kind",)
    assert calls("max(struct(Price, `Vol`))")[0].arguments == ("struct(Price, Vol)",)
    assert calls("max((Price, Vol))")[0].arguments == ("(Price, Vol)",)
    q = one("SELECT m.Key, m.key, count(*) FROM trades GROUP BY m.Key, m.key, window(ts, '1 hour')")
    assert [o.expression.value for o in q.outputs] == [0, 1, 0]


def test_a_lambda_s_variable_is_not_the_table() -> None:
    q = one("SELECT sum(size(filter(xs, t -> t.a > t.b))) FROM trades t GROUP BY window(t.ts, '1 hour')")
    assert q.calls[0].arguments == ("size(filter(xs, t -> t.a > t.b))",)


def test_keys_are_found_by_position_alias_and_expression() -> None:
    items = "date_trunc('day', ts) AS d, upper(sym), (a) + b, count(*)"
    q = one(f"SELECT {items} FROM trades GROUP BY d, 2, (a)+b, window(ts, '1 day')")
    assert q.keys == ("date_trunc('day', ts)", "upper(sym)", "(a) + b")
    assert [o.expression.op for o in q.outputs] == ["key", "key", "key", "call"]
    assert [o.name for o in q.outputs] == ["d", "", "", ""]


def test_a_column_of_the_stream_comes_before_an_alias_of_the_same_name() -> None:
    text = "SELECT sym, max(price) AS vol FROM trades WHERE vol > 1 GROUP BY sym, vol, window(ts, '1 hour')"
    q = one(f"{text} HAVING vol < 2")
    assert q.keys == ("sym", "vol")
    assert q.having is not None
    assert q.having.args[0].op == "key"


def test_the_window_may_be_grouped_by_alias_and_selected_as_a_call() -> None:
    q = one("SELECT window(ts, '60 minutes') AS w, w.start, window(ts, '1 hour').end, count(*) FROM trades GROUP BY w")
    assert [o.expression.op for o in q.outputs] == ["window", "window_start", "window_end", "call"]


@pytest.mark.parametrize(("condition", "text"), read_cases(FIXTURES / "filters.txt"))
def test_equal_filters_have_equal_text(condition: str, text: str) -> None:
    assert where(condition) == text
    assert where(text) == text


def test_a_conjunct_that_guards_another_stays_before_it() -> None:
    assert where("z != 0 AND 1 / z > 2 AND a > 1") == "z != 0 AND 1 / z > 2 AND a > 1"
    assert where("try_cast(s AS int) IS NOT NULL AND a > 5") == "try_cast(s AS int) IS NOT NULL AND a > 5"
    # What cannot raise may always go first: it only spares work.
    assert where("1 / z > 2 AND kind = 'n'") == "kind = 'n' AND 1 / z > 2"


@pytest.mark.parametrize(
    ("written", "call"),
    [
        ("count(*)", Call("count")),
        ("count(1)", Call("count")),
        ("count('x')", Call("count")),
        ("count(NULL)", Call("count", ("NULL",))),
        ("count(a, b)", Call("count", ("a", "b"))),
        ("count(ALL a)", Call("count", ("a",))),
        ("count_if(a > 1)", Call("count_if", ("a > 1",))),
        ("mean(x)", Call("avg", ("x",))),
        ("std(x)", Call("stddev_samp", ("x",))),
        ("stddev(x)", Call("stddev_samp", ("x",))),
        ("variance(x)", Call("var_samp", ("x",))),
        ("every(x)", Call("bool_and", ("x",))),
        ("some(x)", Call("bool_or", ("x",))),
        ("any(x)", Call("bool_or", ("x",))),
        ("MAX_BY(a, B)", Call("max_by", ("a", "b"))),
        ("corr(a, b)", Call("corr", ("a", "b"))),
        ("regr_slope(a, B)", Call("regr_slope", ("a", "b"))),
        ("max(DISTINCT x)", Call("max", ("x",))),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY X + 1)", Call("percentile", ("x + 1", "0.5"))),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY (x) ASC)", Call("percentile", ("x", "0.5"))),
        (
            "percentile_disc(array(0.1, 0.9)) WITHIN GROUP (ORDER BY x) FILTER (WHERE y)",
            Call("percentile_disc", ("x", "array(0.1, 0.9)"), condition="y"),
        ),
        ("mode() WITHIN GROUP (ORDER BY x)", Call("mode", ("x",))),
        ("first(x)", Call("first", ("x",))),
        ("first(x, true)", Call("first", ("x",), ignore_nulls=True)),
        ("first(x IGNORE NULLS)", Call("first", ("x",), ignore_nulls=True)),
        ("first_value(x) IGNORE NULLS", Call("first", ("x",), ignore_nulls=True)),
        ("any_value(x)", Call("first", ("x",))),
        ("last_value(x) RESPECT NULLS", Call("last", ("x",))),
        ("sum((x))", Call("sum", ("x",))),
        ("sum(x) FILTER (WHERE 3 < y)", Call("sum", ("x",), condition="y > 3")),
        ("skewness(x)", Call("skewness", ("x",))),
        ("bit_xor(x)", Call("bit_xor", ("x",))),
        ("sum(if(a <=> b, 10L, -1.5e3))", Call("sum", ("if(a <=> b, 10L, -1.5E3)",))),
    ],
)
def test_calls_with_one_meaning_are_one_call(written: str, call: Call) -> None:
    assert calls(written) == (call,)


def test_a_call_that_repeats_is_kept_once() -> None:
    assert calls("avg(x) + mean(X), avg( x ), count(*) / count(1)") == (Call("avg", ("x",)), Call("count"))


@pytest.mark.parametrize(("item", "tree"), read_cases(FIXTURES / "expressions.txt"))
def test_what_is_done_with_aggregates_is_a_tree(item: str, tree: str) -> None:
    assert lowered(item) == tree


def test_a_cast_keeps_its_type() -> None:
    q = one(f"SELECT cast(sum(x) AS decimal(10, 2)), max(y)::string, double(min(z)) {HOURLY}")
    assert [(o.expression.op, o.expression.value) for o in q.outputs] == [
        ("cast", "decimal(10, 2)"),
        ("cast", "string"),
        ("cast", "DOUBLE"),
    ]


def test_having_may_use_aliases_and_aggregates_of_its_own() -> None:
    q = one(f"SELECT sum(x) AS s {HOURLY} HAVING s > 1 AND max(y) < 2")
    assert q.calls == (Call("sum", ("x",)), Call("max", ("y",)))
    assert q.having is not None
    assert q.having.sql == "sum(x) > 1 AND max(y) < 2"


def test_a_column_may_use_the_alias_of_one_before_it() -> None:
    q = one(f"SELECT max(x) - min(x) AS spread, spread * 2 AS twice {HOURLY}")
    assert q.outputs[1].expression.sql == "(max(x) - min(x)) * 2"


def test_a_query_that_spark_rejects_is_refused_at_the_fragment_that_it_names() -> None:
    q = one("SELECT sym,\n  sum( Prize )\nFROM trades GROUP BY sym, window(ts, '1 hour')")
    found = refuse(q, "there is no column prize.", "Did you mean price?", "sum(prize)")
    assert str(found) == (
        "line 2, column 3: there is no column prize.\n      sum( Prize )\n      ^^^^^^^^^^^^\nDid you mean price?"
    )
    assert (refuse(q, "no.", "none.", "else").line, refuse(q, "no.", "none.").column) == (1, 1)
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
