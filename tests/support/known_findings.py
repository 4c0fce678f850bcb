"""Breaches of the law that are known and not repaired yet: delete an entry with its repair.

A random query that one of these entries describes is drawn rarely, and what it finds is not reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Known:
    """A defect, by the text of queries and the settings that have it, and by what then happens."""

    name: str
    text: str = ""
    outcome: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    rare: bool = True
    """Whether queries of that text are drawn rarely: most of them have the defect, and every one costs a job."""


ANSI_OFF = {"spark.sql.ansi.enabled": "false"}
GUARDED = (
    r"1 / k|n % k|n div k|cast\(num|arr\[0\]|element_at\(arr|split\(s|to_date\(s\)|cast\((n|i|wild) AS|i \+ 1|abs\(i\)"
    r"|big \* 2|factorial\(k\)|date_add\(day|make_date\(2024|\(9,2\)\) / k"
)
"""The partial functions of the pool."""

KNOWN: tuple[Known, ...] = (
    Known(
        "WHERE does not guard arguments and keys",
        rf"(?=.*({GUARDED}))(?=.*FROM stream( \[[^]]*\])? WHERE )",
        r"^(fails|raises).*(CAST_|DIVIDE_BY_ZERO|OVERFLOW|INVALID_ARRAY_INDEX|INVALID_INPUT|REMAINDER|VALUE_OUT_OF_RANGE)",
    ),
    Known(
        "FILTER does not guard max_by and first",
        rf"(max_by|min_by|first\w*|last\w*|any_value)\(({GUARDED}).*FILTER",
        "^(fails|raises)",
    ),
    Known(
        "Spark's count(DISTINCT) is not guarded by FILTER",
        r"count\(DISTINCT .*FILTER",
        "answers, Spark fails",
        rare=False,
    ),
    Known("count of what is never NULL", r"count\(", "^fails", rare=False),
    Known("HAVING that Spark evaluates before the aggregates", " HAVING ", "^fails", rare=False),
    Known("what Spark's optimizer never evaluates", r"(map|array|struct)\(", "^fails", rare=False),
    Known("ordering by struct or array", r"struct\(k, id\)|array\(id\)|(max|min)\((DISTINCT )?(arr|texts|st)\)"),
    Known(
        "ordering by struct or array, of a function's result",
        r"\b(max|min)(_by)?\(",
        r"(raises|names no query).*PythonException",
        rare=False,
    ),
    Known("caseSensitive", settings={"spark.sql.caseSensitive": "true"}),
    Known(
        "time zone in literals after the aggregate",
        r"(?<!WHERE )(window\.(start|end) (>|<=|>=|BETWEEN)|TIMESTAMP'|:timestamp|AS timestamp)",
    ),
    Known("collations", r"\bcol\b|collate"),
    Known("two output columns of one name", outcome=r"raises.*(o\d+\.parquet|COLUMN_ALREADY_EXISTS)", rare=False),
    Known("struct fields that need backquotes", r"GROUP BY (.*, )?(stream\.)?st,"),
    Known("struct fields that need backquotes, together", r"\bst\b", "PARSE_SYNTAX_ERROR", rare=False),
    Known("GROUP BY a map", r"GROUP BY (.*, )?map,", "HASH_MAP_TYPE"),
    Known("GROUP BY a map of a function", r"map", "HASH_MAP_TYPE", rare=False),
    Known("HAVING NULL", "HAVING NULL"),
    Known("void columns", r"NULL AS|NULL \+ 1|void|, NULL", "raises|types differ.*void", rare=False),
    Known(
        "year-month and calendar intervals",
        "make_ym_interval|make_interval|INTERVAL .*(year|month|week)",
        "UNSUPPORTED_DATA_TYPE",
        rare=False,
    ),
    Known("count_if of a string", r"count_if\(", "raises at registration.*CASE WHEN", rare=False),
    Known("_weft_time", "_weft_time"),
    Known("ANSI off: text as a number", r"(sum|avg|mean|stddev\w*|std)\(", "differ|fails", ANSI_OFF, rare=False),
    Known("ANSI off: overflow across slices", r"sum\(", "fails.*leaves the range", ANSI_OFF, rare=False),
)


def known(text: str, settings: Mapping[str, str], outcome: str) -> str | None:
    """The name of the entry for such an outcome of such a query."""
    entries = (e for e in KNOWN if _describes(e, text, settings) and re.search(e.outcome, outcome, re.DOTALL))
    return next((entry.name for entry in entries), None)


def is_rare(text: str, settings: Mapping[str, str]) -> bool:
    """Whether the query is drawn rarely."""
    return any(entry.rare and _describes(entry, text, settings) for entry in KNOWN)


def _describes(entry: Known, text: str, settings: Mapping[str, str]) -> bool:
    in_such_a_session = all(settings.get(name) == value for name, value in entry.settings.items())
    return in_such_a_session and re.search(entry.text, text, re.IGNORECASE | re.DOTALL) is not None
