"""Spark's own analyser as an oracle: what it refuses, what it calls a column, what type an expression has."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import pandas as pd  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, ParseException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import pandas_udf
from pyspark.sql.types import DataType, StructType

from weft.aggregates import USERS
from weft.engine import QueryLayout
from weft.model import ACQ
from weft.spark.physical.settings import CASE_SENSITIVE, SessionSettings
from weft.spark.session import AS_WEFT_WRITES, settings_for
from weft.sql import refuse, standing_in
from weft.sql.refuse import Source
from weft.sql.tokens import tokenize

SPARE = 1000
"""Queries that left and are remembered in any case."""


class AnalysisCache:
    """Spark's earlier answers about one stream: a query that stays is not analysed again when another one joins.

    Refusals are not kept: Spark may accept the same text later, for example after a function was registered.
    """

    def __init__(self) -> None:
        self.schemas: dict[str, StructType] = {}
        self.types: dict[tuple[str, str], DataType] = {}
        self.deterministic: set[str] = set()
        self.filters: set[str] = set()
        self.shapes: dict[ACQ | str, QueryLayout] = {}
        """The first of the queries that differ in name, window and filter only."""
        self.bound: dict[str, tuple[ACQ, QueryLayout]] = {}
        """Queries as they were bound, by name."""

    def copy(self) -> AnalysisCache:
        """A separate cache that begins with the same answers."""
        other = AnalysisCache()
        other.schemas, other.types = dict(self.schemas), dict(self.types)
        other.deterministic, other.filters = set(self.deterministic), set(self.filters)
        other.shapes, other.bound = dict(self.shapes), dict(self.bound)
        return other

    def forget_all_but(self, active: Collection[str]) -> None:
        """Forget queries that left, once there are more of them than active ones."""
        if len(self.bound) > 2 * len(active) + SPARE:
            self.bound = {name: bound for name, bound in self.bound.items() if name in active}

    def layout(self, acq: ACQ) -> QueryLayout | None:
        bound_acq, layout = self.bound.get(acq.name, (None, None))
        return layout if bound_acq is acq else None


class Analyzer:
    """Spark's analyser over an empty table with the stream's columns."""

    def __init__(
        self,
        open_session: Callable[[], SparkSession],
        schema: StructType,
        settings: SessionSettings,
        source: str,
        cache: AnalysisCache,
    ) -> None:
        self._open_session = open_session
        self._source = source
        self.schema = schema
        self.settings = settings
        self.cache = cache

    def query(self, acq: ACQ, text: str) -> StructType:
        """The columns of a query; the user's own text is read as the user's settings say."""
        if text not in self.cache.schemas:
            try:
                if self.settings.case_sensitive and text == acq.spark_sql:
                    self.cache.schemas[text] = self._as_written(acq, text)
                else:
                    self.cache.schemas[text] = self._open_session().sql(standing_in(text)).schema
            except (AnalysisException, ParseException) as error:
                raise refuse(
                    acq, _first_line(error), "Correct the query; Spark itself refuses it.", fragment=_fragment(error)
                ) from None
        return self.cache.schemas[text]

    def _as_written(self, acq: ACQ, text: str) -> StructType:
        """Names mean what they mean in a session that distinguishes their case; that of the table too."""
        session = self._open_session()
        rows = session.table(self._source)
        with settings_for(session, {CASE_SENSITIVE: "true"}):
            for spelling in {token.plain for token in tokenize(Source(text)) if token.name == self._source.strip("`")}:
                rows.createOrReplaceTempView(spelling)
            return session.sql(standing_in(text)).schema

    def filters(self, expressions: Sequence[str], extra: str) -> bool:
        """Whether Spark accepts each of them as a WHERE condition; one analysis of all of them."""
        new = [e for e in expressions if e not in self.cache.filters]
        if not new:
            return True
        text = " AND ".join(f"({e})" for e in new)
        try:
            types = [type_.simpleString() for type_ in self.types(new, extra)]
            self._open_session().table(self._source).where(text)
        except (AnalysisException, ParseException):
            return False
        accepted = set(types) == {"boolean"}
        if accepted:
            self.cache.filters.update(new)
        return accepted

    def deterministic(self, expressions: Sequence[str]) -> bool:
        """Whether the same rows always give the same values; Spark also knows this of users' functions."""
        new = [e for e in expressions if e not in self.cache.deterministic]
        if not new:
            return True
        table = self._open_session().table(self._source)
        frame = table.selectExpr(*(f"{e} AS c{i}" for i, e in enumerate(new)))
        deterministic = bool(frame._jdf.queryExecution().analyzed().deterministic())
        if deterministic:
            self.cache.deterministic.update(new)
        return deterministic

    def types(self, expressions: Sequence[str], extra: str) -> list[DataType]:
        """The types of scalar expressions over the stream's columns and one more."""
        new = [e for e in dict.fromkeys(expressions) if (e, extra) not in self.cache.types]
        if new:
            table = self._open_session().table(self._source).selectExpr("*", extra)
            # One analysis for all expressions, however many there are.
            schema = table.selectExpr(*(f"{e} AS c{i}" for i, e in enumerate(new))).schema
            for e, field in zip(new, schema, strict=True):
                self.cache.types[e, extra] = field.dataType
        return [self.cache.types[e, extra] for e in expressions]


class AnalyzedStream:
    """A stream, and a cache of Spark's analyses of queries over it."""

    def __init__(self, frame: DataFrame, cache: AnalysisCache | None = None) -> None:
        self.frame = frame
        self._cache = cache or AnalysisCache()

    def over(self, frame: DataFrame) -> AnalyzedStream:
        """Another stream with the same columns, for which the cached analyses hold too."""
        return AnalyzedStream(frame, self._cache)

    def copy(self) -> AnalyzedStream:
        """The same stream; later analyses are not cached for others."""
        return AnalyzedStream(self.frame, self._cache.copy())

    @contextmanager
    def analyzer(self, source: str) -> Iterator[Analyzer]:
        """A copy of the session, with its settings and functions: the table's name touches no catalogue of users.

        It is made for the first question that is not in the cache.
        """
        logger = PySparkLogger.getLogger("SQLQueryContextLogger")
        level = logger.level
        logger.setLevel(logging.CRITICAL)  # a refusal says it better than Spark's structured log
        spark, schema = self.frame.sparkSession, self.frame.schema
        settings = SessionSettings.of(spark)

        @cache
        def open_session() -> SparkSession:
            session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
            for key, value in AS_WEFT_WRITES.items():
                session.conf.set(key, value)
            session.createDataFrame([], schema).createOrReplaceTempView(source.strip("`"))
            for name in USERS:
                session.udf.register(name, pandas_udf(_never_called, "double"))
            return session

        try:
            yield Analyzer(open_session, schema, settings, source, self._cache)
        finally:
            if open_session.cache_info().currsize:
                open_session().catalog.dropTempView(source.strip("`"))
            logger.setLevel(level)


def _never_called(*columns: pd.Series) -> float:
    """Stands for a user's aggregate where Spark only looks at types."""
    raise AssertionError("Spark analyses queries here and runs none")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(";")


def _fragment(error: AnalysisException) -> str | None:
    """The part of the query that Spark's error is about, if the error names it."""
    return next((context.fragment() for context in error.getQueryContext() if context.fragment()), None)
