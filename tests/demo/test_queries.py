"""The hundred queries: readable, distinct, and cheap enough to share. No Spark."""

from weft.cli.demo import STRATEGY
from weft.demo import query_text
from weft.demo.show import TILES
from weft.model import Workload
from weft.optimizer import optimize
from weft.plan import check_plan
from weft.sql import parse

SECOND = 1_000_000

QUERIES = Workload(parse(query_text()))


def test_there_are_a_hundred_each_with_a_name_of_its_own() -> None:
    assert len(QUERIES) == len(QUERIES.by_name) == 100
    assert not any(name.startswith("q") and name[1:].isdigit() for name in QUERIES.by_name)


def test_all_read_the_trades_and_none_asks_the_same_as_another() -> None:
    assert {(q.source, q.event_time) for q in QUERIES} == {("trades", "ts")}
    asked = [(q.window, q.keys, q.where, q.having, tuple(o.expression for o in q.outputs)) for q in QUERIES]
    assert len(set(asked)) == 100


def test_windows_are_short_enough_to_change_within_half_a_minute() -> None:
    assert all(5 * SECOND <= q.window.length <= 120 * SECOND for q in QUERIES)
    assert all(1 * SECOND <= q.window.slide <= 30 * SECOND for q in QUERIES)


def test_the_plan_has_a_tree_for_each_of_five_groupings() -> None:
    plan = optimize(QUERIES, rate=20_000, strategy=STRATEGY)
    check_plan(plan)
    assert {feed.keys for feed in plan.feeds} == {("symbol",), ("venue",), ("symbol", "venue"), ("desk",), ()}
    assert len(plan.trees) == 5
    assert plan.cost * 10 < plan.unshared


def test_what_is_shown_is_asked() -> None:
    for tile in TILES:
        names = [output.name for output in QUERIES.by_name[tile.query].outputs]
        assert {"window", tile.column} <= {*names}
        assert tile.key is None or tile.key in names
