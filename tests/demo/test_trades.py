"""The trades: the same for the same seed, skewed, a little out of order, and answered as plain Spark would."""

import json
import random
import time
from functools import partial
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.compare import assert_same_rows
from weft.cli.app import app
from weft.demo import measure as measuring
from weft.demo import query_text
from weft.demo.trades import DELAY, DESKS, OPENING, SYMBOLS, VENUES, Trades
from weft.model import Workload
from weft.spark import weave
from weft.sql import parse

pytestmark = pytest.mark.spark

QUERIES = Workload(parse(query_text()))


def test_the_same_seed_brings_the_same_trades(spark: Any) -> None:
    once, again, other = (Trades(seed).bounded(spark, 2000).toArrow() for seed in (7, 7, 8))
    assert once == again
    assert once != other
    assert once.schema.names == ["ts", "symbol", "venue", "desk", "side", "price", "volume"]


def test_the_first_trades_are_the_same_however_many_follow(spark: Any) -> None:
    few, many = (Trades().bounded(spark, rows).toArrow() for rows in (500, 3000))
    assert few.to_pylist() == many.slice(0, 500).to_pylist()


def test_a_few_symbols_carry_most_of_the_trades_and_all_names_occur(spark: Any) -> None:
    table = Trades().bounded(spark, 50_000).toArrow()
    counts = {c["values"]: c["counts"] for c in table["symbol"].value_counts().to_pylist()}
    assert counts.keys() == SYMBOLS.keys()
    assert counts["NVDA"] > 50_000 / 8 > 10 * counts["IBM"]
    assert set(table["venue"].to_pylist()) == {*VENUES}
    assert set(table["desk"].to_pylist()) == {*DESKS}
    assert set(table["side"].to_pylist()) == {"buy", "sell"}


def test_some_trades_come_out_of_order_within_the_delay_and_very_few_beyond_it(spark: Any) -> None:
    rows = Trades().bounded(spark, 100_000).selectExpr("unix_micros(ts) AS at").toArrow()["at"].to_pylist()
    behind = [OPENING + n * 50 - at for n, at in enumerate(rows)]
    within, beyond = (sum(0 < b <= 3_000_000 for b in behind), sum(b > 3_000_000 for b in behind))
    assert DELAY == "3 seconds"
    assert min(behind) == 0
    assert 0.03 < within / len(rows) < 0.05
    assert 0 < beyond < 20
    assert len(set(rows)) == len(rows), "two trades at one instant leave open which of them was the last"


def test_a_live_stream_brings_the_trades_of_the_table(spark: Any) -> None:
    trades, seen = Trades(seed=3, rate=100), []
    query = trades.live(spark).writeStream.foreachBatch(lambda batch, _: seen.extend(batch.collect())).start()
    deadline = time.monotonic() + 60
    while len(seen) < 150 and time.monotonic() < deadline and query.isActive:
        time.sleep(0.1)
    query.stop()
    wanted = {tuple(row) for row in trades.bounded(spark, 10_000).collect()}
    assert len(seen) >= 150
    assert {tuple(row) for row in seen} <= wanted


@pytest.mark.slow
def test_woven_answers_are_those_of_plain_spark(spark: Any) -> None:
    table = Trades(seed=5, rate=100).bounded(spark, 2000).persist()
    table.createOrReplaceTempView("trades")
    answers: dict[str, Any] = {}
    weave(table, QUERIES, watermark=DELAY).run_bounded(lambda batch, found: answers.update(found))
    for query in random.Random(5).sample(list(QUERIES), 10):
        expected = spark.sql(query.spark_sql).toArrow()
        actual = answers.get(query.name, expected.slice(0, 0))
        assert_same_rows(actual, expected, text=query.text)
    spark.catalog.dropTempView("trades")
    table.unpersist()


@pytest.mark.slow
def test_the_whole_command_streams_then_measures(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "measure", partial(measuring.measure, rows=2000, budget=0.001))
    done = CliRunner().invoke(app, ["demo", "--for", "6s", "--rate", "200", "--seed", "4", "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["plan"]["queries"] == 100
    assert report["stream"]["rows"] > 0
    assert report["first_answers_seconds"] is None or report["stream"]["answers"] > 0
    assert report["saved"]["sampled"] is True
    assert report["saved"]["apart_queries"] < 100
    assert len(report["saved"]["checked"]) == measuring.CHECKED
    assert "trees" in done.stderr
