"""Cases of the law of whole queries: a session's settings, a table, and queries over it, all from one seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tests.support.known_findings import is_rare
from tests.support.query_pool import CallDrawer, column_exprs
from tests.support.query_values import RandomQuery, expr
from tests.support.random_queries import QueryDrawer
from tests.support.random_rows import RandomTable, random_table
from tests.support.spark_functions import SparkFunctions

TOGETHER = 20
"""Queries of a group. They share a table, settings, and arguments."""

CALLS = 12
"""Calls of Spark's functions that the queries of a group draw from."""

ZONES = ("UTC", "America/New_York", "Asia/Kolkata")


@dataclass(frozen=True)
class Settings:
    """What a user sets on a session that changes answers."""

    ansi: bool = True
    zone: str = "UTC"
    case_sensitive: bool = False

    @property
    def conf(self) -> dict[str, str]:
        return {
            "spark.sql.ansi.enabled": str(self.ansi).lower(),
            "spark.sql.session.timeZone": self.zone,
            "spark.sql.caseSensitive": str(self.case_sensitive).lower(),
        }


QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Interpreting beats compiling for a few rows."""


@dataclass(frozen=True)
class Case:
    """Queries over one table in a session with some settings."""

    spark: Any = field(repr=False, compare=False)
    settings: Settings
    table: RandomTable
    queries: tuple[RandomQuery, ...]
    seed: str

    @cached_property
    def quick(self) -> Any:
        """A session for Spark's side."""
        return self._session(QUICK, self.table)

    @cached_property
    def compiled(self) -> Any:
        """Spark's side as users run it, for a second opinion."""
        return self._session({}, self.table)

    @cached_property
    def reversed(self) -> Any:
        """The rows in another order: where Spark's answer changes with it, there is none to compare with."""
        return self._session(QUICK, self.table.with_rows(self.table.rows[::-1]))

    @cached_property
    def shuffled(self) -> tuple[Any, ...]:
        """The rows in three more orders."""
        rows, random = self.table.rows, Random(self.seed)
        orders = [random.sample(rows, len(rows)) for _ in range(3)]
        return tuple(self._session(QUICK, self.table.with_rows(order)) for order in orders)

    def _session(self, conf: Mapping[str, str], table: RandomTable) -> Any:
        session = self.spark.newSession()
        for name, value in {**self.settings.conf, **conf}.items():
            session.conf.set(name, value)
        session.sql(table.select).coalesce(1).createOrReplaceTempView("stream")
        return session

    @cached_property
    def stream(self) -> Any:
        """The table as weft takes it."""
        session = self.spark.newSession()
        for name, value in self.settings.conf.items():
            session.conf.set(name, value)
        return session.sql(self.table.select)

    def with_queries(self, queries: Sequence[RandomQuery]) -> Case:
        """Other queries, over the same sessions."""
        other = replace(self, queries=tuple(queries))
        for name in ("quick", "compiled", "reversed", "shuffled", "stream"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    @property
    def script(self) -> str:
        """A Python script that shows both sides."""
        texts = ",\n    ".join(repr(q.weft_sql) for q in self.queries)
        same = all(q.weft_sql == q.spark_sql for q in self.queries)
        spark = "queries" if same else "[\n    " + ",\n    ".join(repr(q.spark_sql) for q in self.queries) + ",\n]"
        return f'''import weft
from weft.spark import local_session

spark = local_session({{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}})
for name, value in {self.settings.conf!r}.items():
    spark.conf.set(name, value)
stream = spark.sql(r"""{self.table.select}""")
stream.coalesce(1).createOrReplaceTempView("stream")
queries = [
    {texts},
]
for text in {spark}:
    spark.sql(text).show(100, False)
for name, rows in weft.weave(stream, queries, event_time="ts").answers().items():
    rows.show(100, False)
'''


def draw_case(spark: Any, seed: str, functions: SparkFunctions, size: int = TOGETHER) -> Case:
    """A case by its seed alone."""
    random = Random(seed)
    settings = _draw_settings(random)
    table = random_table(random, settings.case_sensitive)
    case = Case(spark, settings, table, (), seed)
    frame = case.quick.table("stream")
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    columns = column_exprs(table, types)
    if not settings.case_sensitive:
        columns += tuple(
            expr(c.type, c.sql.swapcase(), tame=c.tame) for c in random.sample(columns, 3) if "`" not in c.sql
        )
    pool = CallDrawer(random, functions, frame, columns).draw(CALLS)
    drawer = QueryDrawer(random, table, pool)
    return case.with_queries([_draw_query(random, drawer, case) for _ in range(size)])


def _draw_settings(random: Random) -> Settings:
    while True:
        settings = Settings(random.random() < 0.7, random.choice(ZONES), random.random() < 0.2)
        if not is_rare("", settings.conf) or random.random() < 0.1:
            return settings


def _draw_query(random: Random, drawer: QueryDrawer, case: Case) -> RandomQuery:
    """A query, mostly one that Spark's analyser accepts and that has no known defect."""
    invalid, defective = random.random() < 0.03, random.random() < 0.01
    for _ in range(20):
        query = drawer.query()
        if is_rare(query.spark_sql, case.settings.conf) and not defective:
            continue
        if invalid or _analyses(case.quick, query):
            break
    return query


def _analyses(session: Any, query: RandomQuery) -> bool:
    try:
        session.sql(query.spark_sql)
    except (PySparkException, Py4JError):
        return False
    return True
