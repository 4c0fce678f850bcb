"""The last look at a physical plan: one that would lose rows or answers does not run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from weft.engine import FeedLayout, TreeLayout
from weft.model import Edges
from weft.plan import PlanRejected
from weft.spark import weave
from weft.spark.physical.check import check_physical
from weft.spark.physical.columns import PhysicalColumns
from weft.spark.physical.plan import FromRows, FromTables, HashTables, PartialsPlan, PhysicalPlan
from weft.spark.physical.rollup import choose_partials

QUERIES = [
    f"CREATE VIEW by_{key} AS SELECT {key}, window.start AS w, sum(v) AS x FROM stream WHERE v > 1 "
    f"GROUP BY {key}, window(ts, '20 seconds', '10 seconds')"
    for key in "ab"
]


@pytest.fixture(scope="module")
def rolled(spark: Any) -> PhysicalPlan:
    table = spark.sql("SELECT timestamp_millis(id) AS ts, id % 7 AS a, id % 5 AS b, id AS v FROM range(2000)")
    return weave(table, QUERIES, phantoms="always", groupings="native", buckets=2).physical


@pytest.fixture(scope="module")
def in_hash_tables(spark: Any) -> PhysicalPlan:
    table = spark.sql("SELECT timestamp_millis(id) AS ts, id % 7 AS a, id % 5 AS b, id AS v FROM range(2000)")
    job = weave(table, QUERIES, phantoms="always", groupings="lfta")
    job.run_bounded("noop")
    return job.physical


def with_feeds(plan: PhysicalPlan, change: Callable[[FeedLayout], FeedLayout]) -> PhysicalPlan:
    return plan.with_layout(replace(plan.layout, feeds=tuple(map(change, plan.layout.feeds))))


def with_trees(plan: PhysicalPlan, change: Callable[[TreeLayout], TreeLayout]) -> PhysicalPlan:
    return plan.with_layout(plan.layout.with_trees(change))


def with_tables(plan: PhysicalPlan, **changes: Any) -> PhysicalPlan:
    means = plan.partials.means
    assert isinstance(means, FromTables)
    tables = tuple(replace(table, **changes) for table in means.tables)
    return replace(plan, partials=replace(plan.partials, means=replace(means, tables=tables)))


def test_what_the_planner_makes_is_accepted(rolled: PhysicalPlan, in_hash_tables: PhysicalPlan) -> None:
    for plan in (rolled, in_hash_tables):
        check_physical(plan)


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (lambda p: with_trees(p, lambda t: replace(t, queries=())), "query by_a is in no tree"),
        (lambda p: with_trees(p, lambda t: replace(t, queries=t.queries * 2)), "query by_a is in 2 trees"),
        (lambda p: with_trees(p, lambda t: replace(t, pinned_bucket=2)), "tree 0 is in bucket 2 of 2"),
        (lambda p: with_trees(p, lambda t: replace(t, components=())), "tree 0 does not keep all components of query"),
        (lambda p: with_trees(p, lambda t: replace(t, filters={None: None})), "does not tell the rows of query by_a"),
        (lambda p: with_trees(p, lambda t: replace(t, edges=Edges(((7_000_000, 0),)))), "within a slice of tree 0"),
        (lambda p: with_feeds(p, lambda f: replace(f, edges=Edges(((7_000_000, 0),)))), "within a slice of feed 0"),
        (lambda p: with_feeds(p, lambda f: replace(f, number=3)), "2 feeds have the number 3"),
        (lambda p: with_feeds(p, lambda f: replace(f, components=f.components[:1])), "feed 0 does not make all"),
        (lambda p: replace(p, feeds=p.feeds[::-1]), "its native feeds are not those of the layout"),
        (lambda p: with_tables(p, feeds=()), "feed 0 is in no table; feed 1 is in no table"),
        (lambda p: with_tables(p, keys={}), "table 0 lacks keys of feed 0"),
        (lambda p: with_tables(p, columns={}), "table 0 lacks components of feed 0"),
        (lambda p: with_tables(p, edges=Edges(((7_000_000, 0),))), "table 0 cuts slices of feed 0"),
        (lambda p: replace(p, partials=replace(p.partials, means=FromRows(frozenset({9})))), "feed 9 is sent as rows"),
    ],
)  # fmt: skip
def test_a_broken_plan_is_rejected(
    rolled: PhysicalPlan, broken: Callable[[PhysicalPlan], PhysicalPlan], problem: str
) -> None:
    with pytest.raises(PlanRejected, match="this physical plan cannot run: ") as rejected:
        check_physical(broken(rolled))
    assert problem in str(rejected.value)


def test_hash_tables_that_lose_a_feed_are_rejected(in_hash_tables: PhysicalPlan) -> None:
    means = in_hash_tables.partials.means
    assert isinstance(means, HashTables)
    (root,) = means.roots
    lost = replace(means, roots=(replace(root, children=root.children[1:]),))
    coarse = replace(means, roots=(replace(root, attributes=root.attributes[:1]),))
    for broken, problem in ((lost, "leaves no hash table"), (coarse, "cannot feed one by")):
        with pytest.raises(PlanRejected, match=problem):
            check_physical(replace(in_hash_tables, partials=replace(in_hash_tables.partials, means=broken)))


def test_the_planner_looks_at_the_plan_after_the_last_decision(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_tables(*arguments: Any) -> PartialsPlan:
        return replace(choose_partials(*arguments), means=FromTables((), PhysicalColumns()))

    monkeypatch.setattr("weft.spark.physical.planner.choose_partials", without_tables)
    table = spark.sql("SELECT timestamp_millis(id) AS ts, id % 7 AS a, id % 5 AS b, id AS v FROM range(10)")
    with pytest.raises(PlanRejected, match="feed 0 is in no table"):
        weave(table, QUERIES, phantoms="always", groupings="native")
