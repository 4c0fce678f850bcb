"""Spark's own analyser as an oracle: what it refuses, what it calls a column, what type an expression has."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from weft.aggregates import USERS
from weft.model import ACQ
from weft.sql import refuse


class Analysis:
    """Spark's analyser over an empty table with the stream's columns."""

    def __init__(self, spark: SparkSession, source: str) -> None:
        self._spark = spark
        self._source = source

    def query(self, acq: ACQ, text: str) -> StructType:
        try:
            return self._spark.sql(text).schema
        except (AnalysisException, ParseException) as error:
            raise refuse(acq, _first_line(error), "Correct the query; Spark itself refuses it.") from None

    @property
    def in_utc(self) -> bool:
        return self._spark.conf.get("spark.sql.session.timeZone") in ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")

    def deterministic(self, expressions: Sequence[str]) -> bool:
        """Whether the same rows always give the same values, as Spark sees it: it knows about users' functions."""
        if not expressions:
            return True
        frame = self._spark.table(self._source).selectExpr(*(f"{e} AS c{i}" for i, e in enumerate(expressions)))
        return bool(frame._jdf.queryExecution().analyzed().deterministic())

    def types(self, expressions: Sequence[str], extra: str) -> list[tuple[str, pa.DataType]]:
        """The Spark and Arrow types of scalar expressions over the stream's columns and one more."""
        if not expressions:
            return []
        table = self._spark.table(self._source).selectExpr("*", extra)
        # An analysis at a time for as many expressions as there are: their number must not multiply it.
        schema = table.selectExpr(*(f"{e} AS c{i}" for i, e in enumerate(expressions))).schema
        return [(f.dataType.simpleString(), to_arrow_type(f.dataType, timezone="UTC")) for f in schema]


@contextmanager
def analysis(spark: SparkSession, schema: StructType, source: str) -> Iterator[Analysis]:
    """A copy of the session, with its settings and functions: the table's name touches nobody's catalogue."""
    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # a refusal says it better than Spark's structured log
    session.createDataFrame([], schema).createOrReplaceTempView(source.strip("`"))
    for name in USERS:
        session.udf.register(name, pandas_udf(_never_called, "double"))
    try:
        yield Analysis(session, source)
    finally:
        session.catalog.dropTempView(source.strip("`"))
        logger.setLevel(level)


def _never_called(*columns: pd.Series) -> float:
    """Stands for a user's aggregate where Spark only looks at types."""
    raise AssertionError("Spark analyses queries here and runs none")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(";")
