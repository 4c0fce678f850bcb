"""Takes away from a case of the law of whole queries what its finding does not need."""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import monotonic

from pyspark.errors import AnalysisException

from tests.support.exactly_spark import Finding, check_alone, check_together
from tests.support.random_cases import Case
from tests.support.random_rows import RandomTable


def shrink(finding: Finding, seconds: float = 60) -> Finding:
    """The smallest case found in that time with a finding of the same kind."""
    return _Shrinking(finding, monotonic() + seconds).run()


@dataclass
class _Shrinking:
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
