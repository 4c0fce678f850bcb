"""One row to several, natively: UNPIVOT becomes Spark's Expand operator, which only copies what is computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame


def spread(rows: DataFrame, arms: Sequence[Mapping[str, str]], kept: Mapping[str, str]) -> DataFrame:
    """rows    (columns...)
    spread  (kept..., columns of the arms), a row for each arm

    Arms have the same columns, each an expression over `rows`; an expression that several have is computed once. What
    is kept is the same for all of them.
    """
    names = list(arms[0])
    if len(arms) == 1:
        return rows.selectExpr(*(f"{text} AS {name}" for name, text in {**kept, **arms[0]}.items()))
    texts = {text: f"x{i}" for i, text in enumerate(dict.fromkeys(text for arm in arms for text in arm.values()))}
    computed = rows.selectExpr(
        *(f"{text} AS {name}" for name, text in kept.items()), *(f"{text} AS {name}" for text, name in texts.items())
    )
    choices = ", ".join(
        f"({', '.join(texts[arm[name]] for name in names)}) AS `{number}`" for number, arm in enumerate(arms)
    )
    values = f"({', '.join(names)}) FOR arm IN ({choices})"
    found = rows.sparkSession.sql(f"SELECT * FROM {{computed}} UNPIVOT INCLUDE NULLS ({values})", computed=computed)
    return found.select(*kept, *names)
