"""Queries out of scripts that people have: what is found, under which name, and what is left out for which reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft.sql import parse
from weft.sql.extract import ExtractedQuery, collect, to_sql

SCRIPTS = Path(__file__).parent / "scripts"
HEAD = "from pyspark.sql import functions as F\nfrom pyspark.sql.functions import col, window\n"
runner = CliRunner()


def found_in(folder: Path, text: str) -> list[ExtractedQuery]:
    (folder / "script.py").write_text(HEAD + text)
    imported = collect([folder])
    assert imported.skipped == ()
    return list(imported.queries)


def one_line(found: ExtractedQuery) -> str:
    return " ".join(found.sql.split())


def test_a_job_of_several_aggregations_is_taken_whole() -> None:
    imported = collect([SCRIPTS / "market.py"])
    assert imported.skipped == ()
    assert [one.name for one in imported.queries] == ["vwap", "flat", "busy", "by_side", "kept", "high"]
    assert "candles" not in to_sql(imported.queries), "what only another is made from is not a query"
    assert len(parse(to_sql(imported.queries))) == 6
    assert {(one.source, one.event_time) for one in imported.queries} == {("trades", "ts")}
    assert imported.queries[0].notes == ("run it with --event-time ts --watermark '10 seconds'",)


def test_what_cannot_be_taken_is_listed_with_its_line_and_the_reason() -> None:
    imported = collect([SCRIPTS / "awkward.py"])
    assert [(one.name, one.line) for one in imported.queries] == [("hourly", 26), ("half_minutes", 34)]
    reasons = {(skipped.line, word) for skipped in imported.skipped for word in skipped.reason.split()}
    for line, word in [
        (10, "join"), (12, "session_window"), (13, "collect_list(value)"), (15, "windowDuration"), (17, "scaled"),
        (19, "aggregated"), (32, "SQL"),
    ]:  # fmt: skip
        assert (line, word) in reasons
    assert len(imported.skipped) == 7


def test_statements_of_a_file_are_taken_one_by_one() -> None:
    imported = collect([SCRIPTS / "queries.sql"])
    assert [one.name for one in imported.queries] == ["volume", "queries_9"]
    assert [skipped.line for skipped in imported.skipped] == [7, 11]


@pytest.mark.parametrize(
    ("code", "sql"),
    [
        (
            "x = df.where('a > 1').where('b = 2 OR c = 3').groupBy(window('ts', '1 day')).count()",
            "SELECT window, count(*) AS count FROM df WHERE (a > 1) AND (b = 2 OR c = 3) GROUP BY window(ts, '1 day')",
        ),
        (
            "x = df.withColumn('d', col('a') + 1).filter('d > 2').groupBy('d', window('ts', '1 day')).agg(F.max('d'))",
            "SELECT (a + 1) AS d, window, max((a + 1)) FROM df WHERE (a + 1) > 2 GROUP BY (a + 1), window(ts, '1 day')",
        ),
        (
            "x = df.groupBy(window('ts', '9 days', startTime='1 day')).agg(F.first('a', ignorenulls=True).alias('f'))",
            "SELECT window, first(a) IGNORE NULLS AS f FROM df GROUP BY window(ts, '9 days', '9 days', '1 day')",
        ),
        (
            "x = df.groupBy(window('ts', '1 day')).agg(F.avg('a').alias('m')).withColumn('s', col('window')['start'])"
            ".withColumnRenamed('m', 'mean').drop('window')",
            "SELECT avg(a) AS mean, window.start AS s FROM df GROUP BY window(ts, '1 day')",
        ),
        (
            "x = df.groupBy(window('ts', '1 day'), F.date_trunc('hour', 'ts'), "
            "F.concat_ws('-', 'a', col('b')).alias('k'))"
            ".agg(F.sum(F.expr('a * 2')).alias('s'), F.corr('a', 'b').alias('c'))",
            "SELECT window, date_trunc('hour', ts), concat_ws('-', a, b) AS k, sum((a * 2)) AS s, corr(a, b) AS c "
            "FROM df GROUP BY date_trunc('hour', ts), concat_ws('-', a, b), window(ts, '1 day')",
        ),
        (
            "df = spark.readStream.table('db.clicks')\n"
            "x = df.groupBy(window(df.ts, '1 day')).agg(F.count('*').alias('n'))",
            "SELECT window, count(*) AS n FROM db.clicks GROUP BY window(ts, '1 day')",
        ),
        (
            "x = df.filter(col('a').isNotNull() & (col('s').startswith('o\\'n') | ~col('b').like('%x')))"
            ".groupBy(window('ts', '1 day')).agg(F.max(-col('a')).alias('m'))",
            "SELECT window, max((- a)) AS m FROM df WHERE ((a IS NOT NULL) AND (startswith(s, 'o\\'n') OR "
            "(NOT (b LIKE '%x')))) GROUP BY window(ts, '1 day')",
        ),
    ],
)
def test_columns_become_sql(code: str, sql: str, tmp_path: Path) -> None:
    (one,) = found_in(tmp_path, code)
    assert (one.name, one_line(one)) == ("x", sql)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("x = df.groupBy(window('ts', '1 day')).agg({'a': 'max'})", "dictionary"),
        ("x = df.groupBy(window('ts', '1 day')).sum()", "depends on the schema"),
        ("x = df.dropDuplicates().groupBy(window('ts', '1 day')).count()", "distinct"),
        ("x = df.groupBy(window('ts', '1 day').alias('w')).count()", "another name"),
        ("x = df.groupBy(window('ts', '1 day')).applyInPandas(f, s)", "Python code"),
        ("x = df.groupBy(window('ts', size)).count()", "no constant"),
        ("x = df.groupBy(window('ts', '1 day')).agg(F.max(mine('a')))", "script's own"),
        ("d = df.union(more)\nx = d.groupBy(window('ts', '1 day')).count()", "two DataFrames"),
        ("x = df.groupBy(window('ts', '1 day')).agg(F.max(", "not Python"),
    ],
)
def test_what_has_no_sql_is_told(code: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(HEAD + code)
    imported = collect([tmp_path])
    assert imported.queries == ()
    assert [reason in skipped.reason for skipped in imported.skipped] == [True]
    assert imported.skipped[0].line > 2


def test_code_that_aggregates_nothing_is_not_spoken_of(tmp_path: Path) -> None:
    code = "import os\nx = os.path.join('a', 'b')\ny = ', '.join(z.union(w))\nspark.sql('SELECT 1')"
    assert found_in(tmp_path, code) == []


def test_the_command_writes_a_file_that_weft_plans(tmp_path: Path) -> None:
    target = tmp_path / "woven.sql"
    result = runner.invoke(app, ["import", str(SCRIPTS / "market.py"), "-o", str(target)])
    assert result.exit_code == 0, result.output
    assert "6 queries found, 0 left out" in result.stderr
    planned = runner.invoke(app, ["plan", str(target)])
    assert planned.exit_code == 0, planned.output
    assert "by_side" in planned.stdout


def test_queries_of_several_streams_go_to_a_file_each(tmp_path: Path) -> None:
    target = tmp_path / "woven.sql"
    result = runner.invoke(app, ["import", str(SCRIPTS), "-o", str(target)])
    assert result.exit_code == 0, result.output
    assert sorted(f.name for f in tmp_path.iterdir()) == ["woven.readings.sql", "woven.trades.sql"]
    assert "left out" in result.stderr
    assert "awkward.py:10: .join" in result.stderr


def test_where_nothing_is_found_the_command_says_so(tmp_path: Path) -> None:
    assert runner.invoke(app, ["import", str(tmp_path)]).exit_code == 2
    missing = runner.invoke(app, ["import", str(tmp_path / "none.py")])
    assert missing.exit_code == 2
    assert "name one of these" in missing.stderr
