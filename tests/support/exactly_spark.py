"""The law of whole queries: weft refuses a query at registration, or answers as `spark.sql`, or both fail.

    case = draw_case(spark, "7", SparkFunctions(spark))   # a session's settings, a table, twenty queries
    for finding in check_together(case).findings:
        print(shrink(finding).case.script)

`python -m tests.support.exactly_spark_soak --seed 7 --queries 10000` does so for hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema

import weft
from tests.support.known_findings import is_rare, known
from tests.support.query_values import RandomQuery
from tests.support.random_cases import Case
from tests.support.same_answers import Answer, differences, read_answer
from weft.spark.sinks.simple import MemorySink

# What each side says


@dataclass(frozen=True)
class Refused:
    """An error before a row is read."""

    message: str


@dataclass(frozen=True)
class Failed:
    """An error on the rows."""

    message: str


def ask_spark(session: Any, query: RandomQuery) -> Answer | Refused | Failed:
    try:
        frame = session.sql(query.spark_sql)
    except (PySparkException, Py4JError) as error:
        return Refused(_line(error))
    try:
        return read_answer(frame)
    except Exception as error:
        return Failed(_line(error))


def _line(error: BaseException) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def _last(error: BaseException) -> str:
    """The line of an exception of a Python worker that says what happened."""
    lines = [
        line.strip() for line in str(error).strip().splitlines() if re.match(r"^\s*[\w.]+(Error|Exception)\b", line)
    ]
    return f"{type(error).__name__}: {_line(error)}" + (f" ... {lines[-1][:300]}" if lines else "")


# Findings


@dataclass(frozen=True)
class Finding:
    """One breach of the law."""

    kind: str
    detail: str
    case: Case
    """With the queries that it takes: one, or several if each alone is right."""

    @property
    def known(self) -> str | None:
        """The name of the known defect that this is."""
        texts = " ; ".join(q.spark_sql for q in self.case.queries)
        return known(texts, self.case.settings.conf, f"{self.kind}: {self.detail}")

    @property
    def report(self) -> str:
        queries = "\n".join(f"  {q.weft_sql}" for q in self.case.queries)
        return f"{self.kind}: {self.detail}\n{queries}\n  {self.case.settings}, seed {self.case.seed}"


def check_alone(case: Case) -> Finding | None:
    """The law for the first query of the case, by itself."""
    query = case.queries[0]
    return _judge(case.with_queries([query]), ask_spark(case.quick, query), *_ask_weft_alone(case, query))


def _ask_weft_alone(case: Case, query: RandomQuery) -> tuple[Answer | Refused | Failed | None, str]:
    """weft's answer; or None and what it raised if that was no error for users."""
    try:
        job = weft.weave(case.stream, [query.weft_sql], event_time="ts")
    except weft.WeftError as error:
        return Refused(_line(error)), ""
    except Exception as error:
        return None, f"at registration: {_last(error)}"
    try:
        return read_answer(next(iter(job.answers().values()))), ""
    except weft.WeftError as error:
        return (Failed(_line(error)), "") if "q1" in str(error) else (None, f"names no query: {_last(error)}")
    except Exception as error:
        return None, f"at run time: {_last(error)}"


def _judge(
    case: Case, expected: Answer | Refused | Failed, actual: Answer | Refused | Failed | None, raised: str
) -> Finding | None:
    """What one query says of the law."""
    if actual is None:
        spark = {Answer: "Spark answers", Refused: "Spark refuses", Failed: "Spark fails too"}[type(expected)]
        return Finding(f"raises {raised.split(':')[0]}, {spark}", raised.split(": ", 1)[1], case)
    if isinstance(actual, Refused):
        return None
    if isinstance(actual, Failed):
        if not isinstance(expected, Answer) or ("OVERFLOW" in actual.message and _overflows_in_some_order(case)):
            return None
        if not isinstance(ask_spark(case.compiled, case.queries[0]), Answer):
            return None  # Spark fails too, as users run it
        return Finding("fails, Spark answers", actual.message, case)
    if isinstance(expected, Failed):
        expected = ask_spark(case.compiled, case.queries[0])
    if not isinstance(expected, Answer):
        spark = "refuses" if isinstance(expected, Refused) else "fails"
        return Finding(f"answers, Spark {spark}", expected.message, case)
    return _judge_rows(case, expected, actual)


def _judge_rows(case: Case, expected: Answer, actual: Answer) -> Finding | None:
    query = case.queries[0]
    unordered = [c.unordered for c in query.columns]
    found = differences(actual, expected, unordered)
    if not found:
        return None
    if found.rows and not query.ordered and _is_undetermined(case, query, expected, actual, unordered):
        return None
    compiled = ask_spark(case.compiled, query)
    if not isinstance(compiled, Answer) or not differences(actual, compiled, unordered):
        return None  # Spark's two ways to evaluate it differ
    return Finding(found.kind, found.detail, case)


def _overflows_in_some_order(case: Case) -> bool:
    """Whether a sum of Spark's leaves its type on the way, with the rows in some other order."""
    return any(isinstance(ask_spark(session, case.queries[0]), Failed) for session in (case.reversed, *case.shuffled))


def _is_undetermined(case: Case, query: RandomQuery, expected: Answer, actual: Answer, unordered: list[bool]) -> bool:
    """Whether Spark's own answer depends on the order of rows, at least as much as the two answers differ."""
    other = ask_spark(case.reversed, query)
    if not isinstance(other, Answer):
        return True
    return (
        bool(differences(other, expected, unordered, relative=1e-13))
        and not differences(actual, expected, unordered, relative=1e-5)
    ) or not differences(actual, other, unordered)


# Twenty together


@dataclass(frozen=True)
class Together:
    """What one group of queries said of the law."""

    findings: tuple[Finding, ...]
    refused: int
    answered: int


def check_together(case: Case) -> Together:
    """The law for all queries of the case in one job: what Spark cannot answer is named, the others are answered."""
    with ThreadPoolExecutor(2) as pool:
        expected = dict(zip(case.queries, pool.map(lambda q: ask_spark(case.quick, q), case.queries)))
    findings: list[Finding] = []
    accepted: list[RandomQuery] = []
    for query in expected:
        verdict = _register(case, query, expected[query])
        if isinstance(verdict, Finding):
            findings.append(verdict)
        elif verdict:
            accepted.append(query)
    remaining = accepted
    while remaining:
        answers, dropped, found = _run(case.with_queries(remaining), expected)
        findings += found
        if answers is not None:
            break
        remaining = [q for q in remaining if q not in dropped]
    return Together(tuple(findings), len(expected) - len(accepted), len(remaining))


def _register(case: Case, query: RandomQuery, expected: Answer | Refused | Failed) -> Finding | bool:
    """Whether weft takes the query by itself."""
    try:
        weft.weave(case.stream, [query.weft_sql], event_time="ts")
    except weft.WeftError:
        return False
    except Exception as error:
        kind = "raises at registration, Spark " + ("answers" if isinstance(expected, Answer) else "refuses or fails")
        return Finding(kind, _last(error), case.with_queries([query]))
    if isinstance(expected, Refused):
        return Finding("accepts, Spark refuses", expected.message, case.with_queries([query]))
    return True


def _run(
    case: Case, expected: Mapping[RandomQuery, Answer | Refused | Failed]
) -> tuple[dict[RandomQuery, Answer] | None, set[RandomQuery], list[Finding]]:
    """The answers, or the queries to leave out; and what was found."""
    answers, names, raised = ask_together(case)
    if answers is not None:
        return answers, set(), list(_judge_together(case, expected, answers))
    if names:
        dropped = {case.queries[i] for i in names}
        wrong = [q for q in dropped if _judge(case.with_queries([q]), expected[q], Failed(raised), "")]
        found = [_alone_or(case, q, Finding("fails together, Spark answers", raised, case)) for q in wrong]
        return None, dropped, found
    return None, *_find_culprits(case, raised)


def ask_together(case: Case) -> tuple[dict[RandomQuery, Answer] | None, list[int], str]:
    """Answers; or the places of the queries that an error names; or what was raised."""
    try:
        job = weft.weave(case.stream, [q.weft_sql for q in case.queries], event_time="ts")
        frames = _frames_in_memory(job, case.quick)
        return {query: read_answer(frame) for query, frame in zip(case.queries, frames)}, [], ""
    except weft.WeftError as error:
        names = sorted({int(n) - 1 for n in re.findall(r"\bq(\d+) cannot be answered", str(error))})
        return None, [n for n in names if n < len(case.queries)], _last(error)
    except Exception as error:
        return None, [], _last(error)


def _frames_in_memory(job: Any, session: Any) -> list[Any]:
    """What `job.answers()` gives without its files: twenty queries are read in a tenth of the time."""
    sink = MemorySink()
    job.run_bounded(sink)
    tables = sink.tables()
    return [
        session.createDataFrame(tables[name], schema=from_arrow_schema(tables[name].schema, prefer_timestamp_ntz=True))
        for name in (query.name for query in job.plan.workload)
    ]


def _judge_together(
    case: Case, expected: Mapping[RandomQuery, Answer | Refused | Failed], answers: Mapping[RandomQuery, Answer]
) -> Iterator[Finding]:
    for query, actual in answers.items():
        finding = _judge(case.with_queries([query]), expected[query], actual, "")
        if finding is not None:
            others = [q for q in case.queries if q != query]
            both = replace(finding, kind=f"together {finding.kind}", case=case.with_queries([query, *others]))
            yield _alone_or(case, query, both)


def _alone_or(case: Case, query: RandomQuery, together: Finding) -> Finding:
    """The finding of the query alone, if it has one there."""
    return check_alone(case.with_queries([query])) or together


def _find_culprits(case: Case, raised: str) -> tuple[set[RandomQuery], list[Finding]]:
    """The queries that bring a job down without being named, by halves."""
    if len(case.queries) == 1:
        finding = check_alone(case)
        return set(case.queries), [finding] if finding else []
    half = len(case.queries) // 2
    dropped: set[RandomQuery] = set()
    findings: list[Finding] = []
    for part in (case.queries[:half], case.queries[half:]):
        smaller = case.with_queries(part)
        answers, names, again = ask_together(smaller)
        if answers is None and names:
            dropped |= {part[i] for i in names}
        elif answers is None:
            culprits, found = _find_culprits(smaller, again)
            dropped |= culprits
            findings += found
    if not dropped:
        rare = {q for q in case.queries if is_rare(q.spark_sql, case.settings.conf)}
        return rare or set(case.queries), [Finding("raises together", raised, case)]
    # A query that fails on a row must be named even if others are in the job.
    findings += [Finding("names no query together", raised, case)] if not findings else []
    return dropped, findings
