"""Queries as people write them: those of analysts over three data sets, and those that Spark tests its own SQL with.

Every query of a set runs in one job beside all the others, so that one whose keys or filters harm another shows.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from tests.support.compare import assert_same_rows, spark_answers
from tests.support.datasets import DATASETS, Dataset, sql_tests
from tests.support.fixtures import read_cases
from tests.support.query_files import FileQuery, read_queries
from weft.model import WeftError
from weft.spark import weave

pytestmark = pytest.mark.spark

FIXTURES = Path(__file__).parent / "fixtures"
FOLDERS = dict.fromkeys(DATASETS, FIXTURES / "analysts") | {"spark_sql": FIXTURES / "spark_sql"}

COMPANIONS = {"spark_sql": {"group_by_2", "time_window_2"}} | {name: {f"{name}_1", f"{name}_2"} for name in DATASETS}
"""By set, queries with other keys and other edges: some defects show only beside them."""


def files(name: str, ending: str) -> list[Path]:
    return sorted(FOLDERS[name].glob(f"{name if name in DATASETS else '*'}{ending}"))


QUERIES = {name: [query for file in files(name, ".sql") for query in read_queries(file)] for name in FOLDERS}
SERVED = {name: [query for query in queries if query.known is None] for name, queries in QUERIES.items()}
KNOWN = [
    # A refusal costs nothing, and a job that fails costs seconds.
    pytest.param(name, query, id=query.name, marks=() if "refused" in query.known else pytest.mark.slow)
    for name, queries in QUERIES.items()
    for query in queries
    if query.known
]
REFUSED = [
    pytest.param(name, text, message, id=f"{file.stem}_{number}")
    for name in FOLDERS
    for file in files(name, ".refused.txt")
    for number, (text, message) in enumerate(read_cases(file), 1)
]


@cache
def dataset(name: str) -> Dataset:
    return sql_tests() if name == "spark_sql" else DATASETS[name]()


def answers(spark: Any, data: Dataset, queries: list[FileQuery]) -> dict[str, pa.Table]:
    job = weave(spark.createDataFrame(data.table), [query.view for query in queries], event_time=data.event_time)
    return {name: frame.toArrow() for name, frame in job.answers().items()}


def comparable(query: FileQuery, table: pa.Table) -> pa.Table:
    """The table with the values of `collect_set` in order: Spark promises none."""
    if "collect_set(" not in query.text:
        return table
    for index, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            values = [None if cell is None else sorted(cell) for cell in table.column(index).to_pylist()]
            table = table.set_column(index, field, pa.array(values, field.type))
    return table


def difference(query: FileQuery, actual: pa.Table, expected: pa.Table) -> str | None:
    """What differs, or None where both have the same columns and rows."""
    try:
        assert_same_rows(comparable(query, actual), comparable(query, expected), text=query.text)
    except AssertionError as error:
        return f"{query.name}: {error}"
    return None


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "taxi" else pytest.mark.slow) for name in FOLDERS]
)
def test_a_set_of_queries_in_one_job_gives_the_rows_of_plain_spark(spark: Any, name: str) -> None:
    data = dataset(name)
    actual = answers(spark, data, SERVED[name])
    expected = spark_answers(spark, data.table, SERVED[name], view=data.view)
    assert sum(table.num_rows > 0 for table in expected.values()) > 0.9 * len(expected)
    problems = [difference(query, actual[query.name], expected[query.name]) for query in SERVED[name]]
    assert not any(problems), "\n\n".join(filter(None, problems))


@pytest.mark.parametrize(("name", "query"), KNOWN)
def test_a_query_that_is_marked_as_known_to_differ_still_differs(spark: Any, name: str, query: FileQuery) -> None:
    data = dataset(name)
    companions = [other for other in QUERIES[name] if other.name in COMPANIONS[name]]
    try:
        actual = answers(spark, data, [query, *companions])[query.name]
    except (WeftError, PySparkException):  # a refusal, or an error of Spark that stops the job
        return
    expected = spark_answers(spark, data.table, [query], view=data.view)[query.name]
    assert difference(query, actual, expected), f"{query.name} gives Spark's rows now: delete its mark\n{query.text}"


@pytest.mark.parametrize(("name", "text", "message"), REFUSED)
def test_a_query_that_cannot_be_served_is_refused_with_place_reason_and_way_out(
    spark: Any, name: str, text: str, message: str
) -> None:
    data = dataset(name)
    with pytest.raises(WeftError) as caught:
        weave(spark.createDataFrame(data.table), text, event_time=data.event_time)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", DATASETS)
def test_a_data_set_has_sixty_queries(name: str) -> None:
    assert len(QUERIES[name]) == 60
