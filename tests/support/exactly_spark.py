"""The law of whole queries: weft refuses a query at registration, or answers as `spark.sql`, or both fail.

    case = draw_case(spark, seed=7)          # a session's settings, a table, twenty queries
    for finding in check_together(case):
        print(finding.shrunk().script)

`python -m tests.support.exactly_spark --seed 7 --queries 10000` runs for hours and prints what it finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from time import monotonic
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

import weft
from tests.support.known_findings import is_rare, known
from tests.support.query_pool import CallDrawer, column_exprs
from tests.support.query_values import RandomQuery, expr
from tests.support.random_queries import QueryDrawer
from tests.support.random_rows import RandomTable, random_table
from tests.support.same_answers import Answer, differences, read_answer
from tests.support.spark_functions import SparkFunctions

TOGETHER = 20
"""Queries of a group. They share a table, settings, and arguments."""

CALLS = 25
"""Calls of Spark's functions that the queries of a group draw from."""

ZONES = ("UTC", "America/New_York", "Asia/Kolkata")

# Cases


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
        for name in ("quick", "compiled", "reversed", "stream"):
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
    settings = Settings(random.random() < 0.7, random.choice(ZONES), random.random() < 0.2)
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


def _draw_query(random: Random, drawer: QueryDrawer, case: Case) -> RandomQuery:
    """A query, mostly one that Spark's analyser accepts and that has no known defect."""
    invalid, defective = random.random() < 0.03, random.random() < 0.02
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
    return f"{type(error).__name__}: {_line(error)}" + (f" ... {lines[-1][:300]}" if len(lines) > 1 else "")


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

    def shrunk(self, seconds: float = 60) -> Finding:
        """The smallest case found in that time with a finding of the same kind."""
        return Shrinking(self, monotonic() + seconds).run()


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
        return Finding("fails, Spark answers", actual.message, case) if isinstance(expected, Answer) else None
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
        wrong = [q for q in dropped if isinstance(expected[q], Answer)]
        found = [_alone_or(case, q, Finding("fails together, Spark answers", raised, case)) for q in wrong]
        return None, dropped, found
    return None, *_find_culprits(case, raised)


def ask_together(case: Case) -> tuple[dict[RandomQuery, Answer] | None, list[int], str]:
    """Answers; or the places of the queries that an error names; or what was raised."""
    try:
        job = weft.weave(case.stream, [q.weft_sql for q in case.queries], event_time="ts")
        frames = list(job.answers().values())
        with ThreadPoolExecutor(2) as pool:
            return dict(zip(case.queries, pool.map(read_answer, frames))), [], ""
    except weft.WeftError as error:
        names = sorted({int(n) - 1 for n in re.findall(r"\bq(\d+) cannot be answered", str(error))})
        return None, [n for n in names if n < len(case.queries)], _last(error)
    except Exception as error:
        return None, [], _last(error)


def _judge_together(
    case: Case, expected: Mapping[RandomQuery, Answer | Refused | Failed], answers: Mapping[RandomQuery, Answer]
) -> Iterator[Finding]:
    for query, actual in answers.items():
        finding = _judge(case.with_queries([query]), expected[query], actual, "")
        if finding is not None:
            yield _alone_or(
                case,
                query,
                replace(
                    finding,
                    kind=f"together {finding.kind}",
                    case=case.with_queries([query, *(q for q in case.queries if q != query)]),
                ),
            )


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
        return set(case.queries), [Finding("raises together", raised, case)]
    # A query that fails on a row must be named even if others are in the job.
    findings += [Finding("names no query together", raised, case)] if not findings else []
    return dropped, findings


# Shrinking


@dataclass
class Shrinking:
    """Takes away from a case what its finding does not need, until the time is over."""

    finding: Finding
    until: float

    def run(self) -> Finding:
        self._queries()
        improved = True
        while improved and monotonic() < self.until:
            improved = any(self._try_query(i) for i in range(len(self.finding.case.queries)))
        self._rows()
        self._columns()
        return self.finding

    def _queries(self) -> None:
        for query in self.finding.case.queries[::-1]:
            left = [q for q in self.finding.case.queries if q != query]
            if left and monotonic() < self.until:
                self._keep(self.finding.case.with_queries(left))

    def _try_query(self, place: int) -> bool:
        queries = self.finding.case.queries
        for simpler in queries[place].simpler:
            if monotonic() > self.until:
                return False
            if self._keep(self.finding.case.with_queries((*queries[:place], simpler, *queries[place + 1 :]))):
                return True
        return False

    def _rows(self) -> None:
        size = len(self.finding.case.table.rows) // 2
        while size and monotonic() < self.until:
            begin = 0
            while begin < len(rows := self.finding.case.table.rows) and monotonic() < self.until:
                left = (*rows[:begin], *rows[begin + size :])
                if not left or not self._keep(_fresh(self.finding.case, self.finding.case.table.with_rows(left))):
                    begin += size
            size //= 2

    def _columns(self) -> None:
        text = " ".join(q.spark_sql for q in self.finding.case.queries)
        used = self.finding.case.table.only(lambda column: _names(column.name, text))
        self._keep(_fresh(self.finding.case, used))

    def _keep(self, case: Case) -> bool:
        found = again(case, self.finding.kind)
        if found is None or found.known != self.finding.known:
            return False
        self.finding = found
        return True


def _names(column: str, text: str) -> bool:
    return re.search(rf"(?<![\w'])`?{re.escape(column)}`?(?!\w)", text, re.IGNORECASE) is not None


def _fresh(case: Case, table: RandomTable) -> Case:
    return Case(case.spark, case.settings, table, case.queries, case.seed)


def again(case: Case, kind: str) -> Finding | None:
    """A finding of that kind for the case, if it has one."""
    try:
        found = check_together(case).findings if "together" in kind else [check_alone(case)]
    except AnalysisException:  # the table without a column
        return None
    return next((f for f in found if f is not None and f.kind == kind), None)
