"""An imported script answers what it answered: its DataFrames run by Spark, the SQL that it became by weft."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.compare import assert_same_rows
from weft.spark import weave
from weft.sql.extract import collect, to_sql

pytestmark = pytest.mark.spark

SCRIPT = ROOT / "tests" / "sql" / "extract" / "scripts" / "market.py"


def test_an_imported_script_gives_the_rows_of_the_script(spark: Any) -> None:
    trades = spark.range(4000).selectExpr(
        "timestamp_micros(1709251200000000L + id * 20011L) AS ts",
        "element_at(array('A', 'B', 'C'), CAST(1 + id % 3 AS INT)) AS symbol",
        "element_at(array('X', 'Y', 'Z'), CAST(1 + id % 7 % 3 AS INT)) AS venue",
        "element_at(array('buy', 'sell', 'cross'), CAST(1 + id % 11 % 3 AS INT)) AS side",
        "CAST((id * 37) % 100 - 2 AS DOUBLE) AS price",
        "IF(id % 97 = 0, NULL, CAST((id * 13) % 50 AS INT)) AS volume",
    )
    spec = importlib.util.spec_from_file_location("market", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    market = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(market)
    wanted = market.build(spark, trades)
    given = weave(trades, to_sql(collect([SCRIPT]).queries)).answers()
    assert given.keys() == wanted.keys()
    for name, plain in wanted.items():
        rows = plain.toArrow()
        assert rows.num_rows > 0
        assert_same_rows(given[name].toArrow(), rows, text=name)
