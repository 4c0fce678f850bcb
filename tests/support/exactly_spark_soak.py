"""Runs the law of whole queries for hours: `python -m tests.support.exactly_spark_soak --seed 7 --queries 10000`.

Prints the queries per hour, and for each finding that is not known the smallest case as a script.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import Any

from tests.support.exactly_spark import Finding, Together, check_alone, check_together
from tests.support.random_cases import TOGETHER, Case, draw_case
from tests.support.shrinking import shrink
from tests.support.spark_functions import SparkFunctions

Report = Callable[[str], object]


def run(
    spark: Any,
    seed: str,
    queries: int,
    seconds: float = float("inf"),
    shrink_seconds: float = 60,
    report: Report = print,
) -> list[Finding]:
    """The findings of this number of queries, without the known ones; the first of each kind is shrunk."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # failing queries are no news here
    functions, progress = SparkFunctions(spark), Progress(seed)
    for group in count():
        if progress.checked >= queries or monotonic() - progress.begun > seconds:
            break
        case = draw_case(spark, f"{seed}-{group}", functions, min(TOGETHER, queries - progress.checked))
        together = check_together(case)
        alone = check_alone(case)  # its first query, as a sample
        progress.add(case, together)
        for finding in (*together.findings, *([alone] if alone else [])):
            if progress.is_news(finding):
                finding = shrink(finding, shrink_seconds)
                report(f"\n{finding.report}\n{finding.case.script}")
        report(str(progress))
    return progress.found


class Progress:
    """What a run has seen so far."""

    def __init__(self, seed: str) -> None:
        self.begun = monotonic()
        self.checked = 0
        self.found: list[Finding] = []
        self._seed = seed
        self._refused = self._answered = 0
        self._seen: Counter[str] = Counter()

    def add(self, case: Case, together: Together) -> None:
        self.checked += len(case.queries)
        self._seed = case.seed
        self._refused += together.refused
        self._answered += together.answered

    def is_news(self, finding: Finding) -> bool:
        """Whether it is the first or second of its kind, and not known."""
        name = finding.known or f"NEW {finding.kind}: {finding.detail[:60]}"
        self._seen[name] += 1
        if finding.known is None:
            self.found.append(finding)
        return finding.known is None and self._seen[name] <= 2

    def __str__(self) -> str:
        per_hour = self.checked / (monotonic() - self.begun) * 3600
        return (
            f"{self.checked} queries, {per_hour:.0f} per hour, {self._answered} answered, {self._refused} refused, "
            f"seed {self._seed}, {len(self.found)} findings; by kind: {dict(self._seen)}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default=os.environ.get("WEFT_SEED", "1"))
    parser.add_argument("--queries", type=int, default=int(os.environ.get("WEFT_QUERIES", "10000")))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    chosen = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    from weft.spark import local_session

    spark = local_session(
        {"spark.master": "local[2]", "spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
    )
    spark.sparkContext.setLogLevel("OFF")
    found = run(spark, chosen.seed, chosen.queries, chosen.seconds, report=lambda line: print(line, flush=True))
    print(f"{len(found)} findings that are not known")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
