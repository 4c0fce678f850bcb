"""What sharing saves: the same queries over the same trades, woven into one job and one by one in plain Spark.

Both read one cached table, both throw their answers away, and neither is charged for parsing and analysing its queries,
which a stream does once. Plain Spark runs them as batches, which spares it the state of its streaming operators.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weft.demo.trades import Trades
from weft.model import ACQ, WeftError
from weft.spark import Job

ROWS = 200_000
"""Ten seconds of the stream at its usual rate."""

BUDGET = 60.0
"""Seconds for plain Spark; the queries that it answers in this time are the sample."""

CHECKED = 5
"""How many queries plain Spark answers in its warm-up, to be compared with weft's answers."""


class AnswersDiffer(WeftError):
    """weft and plain Spark gave a different number of rows."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Measured seconds. `apart` is for `sample` of the `queries`, `together` for all of them."""

    rows: int
    queries: int
    answers: int
    together: tuple[float, ...]
    """Of each run; the slowest one counts."""
    apart: float
    sample: int
    checked: tuple[str, ...]
    """Queries whose answers had as many rows both ways."""

    @property
    def is_complete(self) -> bool:
        return self.sample == self.queries

    @property
    def times(self) -> float:
        """How many times longer the queries take apart; with a sample, a lower bound."""
        return self.apart / max(self.together)

    def text(self) -> str:
        some, ratio = f"{self.queries} queries", f"{self.times:,.1f} times faster"
        if not self.is_complete:
            some = f"{self.sample} of the {self.queries} queries, a random sample"
            ratio = f"at least {ratio}: all {self.queries} queries against {self.sample}"
        return "\n".join(
            (
                f"What sharing saved, measured on {self.rows:,} of these trades and {self.answers:,} answers:",
                f"  together  {max(self.together):7.1f} s   {self.queries} queries as one weft job; "
                f"the slower of {' and '.join(f'{s:.1f} s' for s in self.together)}",
                f"  apart     {self.apart:7.1f} s   {some}, by plain Spark one after the other",
                f"  {ratio}; as many rows both ways in all {len(self.checked)} queries compared",
            )
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "queries": self.queries,
            "answers": self.answers,
            "together_seconds": list(self.together),
            "apart_seconds": self.apart,
            "apart_queries": self.sample,
            "sampled": not self.is_complete,
            "times_faster": self.times,
            "checked": list(self.checked),
        }


def over(job: Job, trades: DataFrame) -> Job:
    """The same woven queries over other trades: what was planned and analysed holds for all of the same columns."""
    return job.over(trades)


def measure(
    job: Job,
    trades: Trades,
    *,
    rows: int = ROWS,
    budget: float = BUDGET,
    say: Callable[[str], object] = lambda text: None,
) -> Saved:
    """Warm up and compare, then time weft, plain Spark, and weft again: the machine's speed may change in between."""
    spark, queries = job.stream.sparkSession, job.plan.workload
    say(f"measuring: {rows:,} trades in memory")
    table = trades.bounded(spark, rows).persist()
    table.count()
    table.createOrReplaceTempView(queries[0].source)
    woven = over(job, table)
    say("measuring: warming up")
    counts: dict[str, int] = {}
    woven.run_bounded(lambda batch, answers: counts.update(_sizes(answers)))
    woven.run_bounded("noop")
    # The order decides which queries are in the sample, so it is random.
    order = random.Random(trades.seed).sample(list(queries), len(queries))
    checked = tuple(_check(spark, query, counts) for query in order[:CHECKED])
    say("measuring: together")
    first = _seconds(lambda: woven.run_bounded("noop"))
    apart, sample = _apart(spark, order, budget, say)
    say("measuring: together, again")
    woven.run_bounded("noop")  # Spark ends Python workers that were idle for a minute
    second = _seconds(lambda: woven.run_bounded("noop"))
    spark.catalog.dropTempView(queries[0].source)
    table.unpersist()
    return Saved(rows, len(queries), sum(counts.values()), (first, second), apart, sample, checked)


def _check(spark: SparkSession, query: ACQ, counts: Mapping[str, int]) -> str:
    plain = spark.sql(query.spark_sql).toArrow().num_rows
    woven = counts.get(query.name, 0)
    if woven != plain:
        raise AnswersDiffer(f"{query.name}: weft gave {woven} rows, plain Spark {plain}; please report this")
    return query.name


def _apart(spark: SparkSession, order: list[ACQ], budget: float, say: Callable[[str], object]) -> tuple[float, int]:
    """The seconds, and the number of queries answered, until all are answered or the budget is spent."""
    spent = 0.0
    for answered, query in enumerate(order):
        if spent >= budget:
            return spent, answered
        if answered % 10 == 0:
            say(f"measuring: apart, {answered} of {len(order)} queries in {spent:.1f} s")
        writer = spark.sql(query.spark_sql).write.format("noop").mode("overwrite")
        spent += _seconds(writer.save)
    return spent, len(order)


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _sizes(answers: Mapping[str, pa.Table]) -> dict[str, int]:
    return {name: table.num_rows for name, table in answers.items()}
