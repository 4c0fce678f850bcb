"""The gate rejects each kind of plan that would give wrong answers, and says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

import pytest

from weft.model import ACQ, Call, Edges, Window, Workload
from weft.optimizer import optimize as optimize_by
from weft.plan import Plan, PlanRejected, check_plan

optimize = partial(optimize_by, technique="panes")
"""The papers' technique, which their numbers are for."""


def query(name: str, seconds: int, slide: int, keys: tuple[str, ...] = ()) -> ACQ:
    return ACQ(name, Window(seconds * 1_000_000, slide * 1_000_000), (Call("max", ("price",)),), (), keys=keys)


WORKLOAD = Workload([query("a", 16, 4), query("b", 10, 5), query("c", 8, 4), query("d", 7, 3, ("symbol",))])
PLAN = optimize(WORKLOAD, rate=1.2, strategy="tri_weave")


def with_tree(number: int, **changes: object) -> Plan:
    trees = list(PLAN.trees)
    trees[number] = replace(trees[number], **changes)  # type: ignore[arg-type]
    return replace(PLAN, trees=tuple(trees))


def with_feed(number: int, **changes: object) -> Plan:
    feeds = list(PLAN.feeds)
    feeds[number] = replace(feeds[number], **changes)  # type: ignore[arg-type]
    return replace(PLAN, feeds=tuple(feeds))


def test_the_plan_that_the_others_are_made_from_passes() -> None:
    assert [tree.queries for tree in PLAN.trees] == [("a", "c"), ("b",), ("d",)]
    assert [feed.trees for feed in PLAN.feeds] == [(0, 1), (2,)]
    check_plan(PLAN)


CORRUPTED: dict[str, tuple[Callable[[], Plan], str]] = {
    "a lost query": (lambda: with_tree(0, queries=("a",)), "query c is in no tree"),
    "a doubled query": (lambda: with_tree(1, queries=("b", "a")), "query a is in 2 trees"),
    "an unknown query": (
        lambda: with_tree(1, queries=("b", "x")),
        "has x, which is not in the workload",
    ),
    "an empty tree": (
        lambda: replace(PLAN, trees=(*PLAN.trees, replace(PLAN.trees[0], queries=()))),
        "tree 4 has no query",
    ),
    "a tree too coarse for its windows": (
        lambda: with_tree(0, edges=Edges(((8_000_000, 0),))),
        "windows of a begin or end within a slice of tree 1; windows of c",
    ),
    "a tree shifted against its windows": (lambda: with_tree(1, edges=Edges(((5_000_000, 1),))), "windows of b"),
    "a feed too coarse for its trees": (
        lambda: with_feed(0, edges=PLAN.trees[0].edges),
        "slices of tree 2 begin or end within a slice of feed 1",
    ),
    "a tree without a feed": (lambda: with_feed(0, trees=(0,)), "tree 2 is in no feed"),
    "a tree in two feeds": (lambda: with_feed(1, trees=(1, 2)), "tree 2 is in 2 feeds"),
    "a feed of a tree that is not there": (lambda: with_feed(1, trees=(2, 3)), "tree 4, which is not there"),
    "an empty feed": (
        lambda: replace(PLAN, feeds=(*PLAN.feeds, replace(PLAN.feeds[0], trees=()))),
        "feed 3 has no tree",
    ),
    "a feed with other keys": (lambda: with_feed(1, keys=("venue",)), "query d is not grouped as feed 2 is"),
    "groupings mixed in a feed": (
        lambda: replace(with_feed(0, trees=(0, 1, 2)), feeds=(replace(PLAN.feeds[0], trees=(0, 1, 2)),)),
        "query d is not grouped as feed 1 is",
    ),
    "a negative cost": (lambda: replace(PLAN, cost=Fraction(-1, 2)), "the cost is negative: -1/2"),
    "a negative edge rate": (lambda: with_tree(2, edge_rate=Fraction(-1)), "the edge rate of tree 3 is negative"),
    "a negative fold": (lambda: with_feed(0, fold_cost=Fraction(-1)), "the fold cost of feed 1 is negative"),
}


@pytest.mark.parametrize(("corrupt", "reason"), CORRUPTED.values(), ids=CORRUPTED.keys())
def test_a_corrupted_plan_is_rejected_with_its_reason(corrupt: Callable[[], Plan], reason: str) -> None:
    with pytest.raises(PlanRejected, match=f"^this tri_weave plan cannot run: .*{reason}"):
        check_plan(corrupt())


def test_queries_of_one_source_and_clock_are_told_from_those_of_another() -> None:
    a, b = query("a", 16, 4), replace(query("b", 16, 4), source="quotes")
    plan = optimize([a, b], strategy="weave_share")
    together = replace(
        plan,
        trees=(replace(plan.trees[0], queries=("a", "b")),),
        feeds=(plan.feeds[0],),
    )
    with pytest.raises(PlanRejected, match="query b is not grouped as feed 1 is"):
        check_plan(together)
