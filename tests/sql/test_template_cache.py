"""Queries of one shape are read once and mean what each means by itself; plain ones need no second reader."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot

from weft.model import ACQ
from weft.sql import Refused, parse
from weft.sql.fast_path import is_plain
from weft.sql.refuse import Source
from weft.sql.statements import Statement
from weft.sql.template_cache import Shapes
from weft.sql.tokens import tokenize

SELECTS = (
    "SELECT max(price) FROM trades GROUP BY window(ts, '{r} seconds', '{s} seconds')",
    "SELECT sym, window.start AS since, sum(size) / count(*) AS mean FROM trades WHERE venue = 'X' "
    "GROUP BY sym, window(ts, '{r} seconds', '{s} seconds') HAVING count(*) > 3",
    "select t.sym, count(*) n from trades t group by t.sym, WINDOW(t.ts, '{r} seconds', '{s} seconds')",
    "SELECT window(ts, '{r} seconds', '{s} seconds') AS w, min(price) FROM trades GROUP BY w",
    "SELECT window(ts, '{r} seconds').start, min(price) FROM trades GROUP BY window(ts, '{r} seconds')",
    "SELECT avg(price) FROM trades GROUP BY window(to_timestamp(day, 'yyyy-MM-dd'), '{r} seconds', '{s} seconds')",
    "SELECT avg(price) FROM trades GROUP BY window(to_timestamp(day, 'dd.MM.yyyy'), '{r} seconds', '{s} seconds')",
    "SELECT max(price) FROM trades [RANGE {r} SECONDS SLIDE {s} SECONDS]",
    "SELECT max(price) FROM trades GROUP BY window(ts, '{r} seconds', '{s} seconds') FOR {r} HOURS",
    "SELECT percentile(price, 0.5) FROM trades GROUP BY window(ts, '{r} seconds', '{s} seconds')",
    "SELECT percentile(price, 0.9) FROM trades GROUP BY window(ts, '{r} seconds', '{s} seconds', '1 second')",
)


def alone(text: str, together: ACQ) -> ACQ:
    (query,) = parse(text)
    return replace(query, begins=together.begins)


def test_together_they_mean_what_each_means_alone() -> None:
    texts = [
        f"CREATE VIEW v{r}_{i} AS {select.format(r=r, s=s)}"
        for r, s in ((60, 5), (90, 10), (61, 7))
        for i, select in enumerate(SELECTS)
    ]
    found = parse(";\n".join(texts))
    assert list(found) == [alone(text, query) for text, query in zip(texts, found)]


def test_a_thousand_of_one_shape_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []
    keep = Shapes.keep

    def counted(self: Shapes, statement: Statement, acq: ACQ) -> None:
        kept.append(acq.name)
        keep(self, statement, acq)

    monkeypatch.setattr(Shapes, "keep", counted)
    assert len(parse(";".join(SELECTS[0].format(r=60 + i, s=5) for i in range(1000)))) == 1000
    assert kept == ["q1"]


def test_a_window_that_is_refused_is_refused_at_its_own_place() -> None:
    good, bad = SELECTS[0].format(r=60, s=5), SELECTS[0].format(r=5, s=60)
    with pytest.raises(Refused) as refused:
        parse(f"{good};\n{bad}")
    assert (refused.value.line, refused.value.column) == (2, bad.index("'60 seconds'") + 1)
    with pytest.raises(Refused, match="is not a unit of time"):
        parse(f"{good};\n{good.replace('5 seconds', '5 parsecs')}")


PLAIN = (*SELECTS[:4], SELECTS[9])


@pytest.mark.parametrize("select", PLAIN)
def test_what_is_plain_is_sql_to_the_second_reader_too(select: str) -> None:
    text = select.format(r=60, s=5)
    assert is_plain(Source(text), tokenize(Source(text)))
    assert sqlglot.parse(text.replace("window(", "window_(").replace("WINDOW(", "window_("), dialect="spark")


@pytest.mark.parametrize(
    "wrong",
    [
        "SELECT max(price,) FROM t {g}",
        "SELECT max(price) max FROM {g}",
        "SELECT price price price FROM t {g}",
        "SELECT max(price) + FROM t {g}",
        "SELECT max(price) FROM t WHERE {g}",
        "SELECT max(order) FROM t {g}",
        "SELECT max(price) AS end FROM t {g}",
        "SELECT count(t.*) FROM t {g}",
        "SELECT upper(max(a)) FROM t {g}",
        "SELECT max(price) FROM t JOIN u {g}",
        "SELECT sum(x) FILTER (WHERE) FROM t {g}",
        "SELECT 1 2 FROM t {g}",
    ],
)
def test_what_may_be_wrong_is_not_plain(wrong: str) -> None:
    text = wrong.format(g="GROUP BY window(ts, '1 hour')")
    assert not is_plain(Source(text), tokenize(Source(text)))
