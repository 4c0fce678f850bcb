"""Trees without keys in buckets: hot ones are divided by their queries, as far as that is worth it."""

from __future__ import annotations

from collections import Counter

from weft.optimizer import optimize
from weft.optimizer.placement.ungrouped import pin_buckets
from weft.plan import Plan
from weft.sql import parse


def _plan(*windows: tuple[str, int, int], keys: str = "", call: str = "sum(v)") -> Plan:
    text = ";".join(
        f"CREATE VIEW {name} AS SELECT {call} AS a FROM stream "
        f"GROUP BY {keys} window(ts, '{length} seconds', '{slide} seconds')"
        for name, length, slide in windows
    )
    return optimize(parse(text), 10_000, "tri_weave", "auto")


def test_a_hot_tree_is_divided_by_its_queries_and_the_parts_are_even() -> None:
    plan = _plan(*((f"q{i}", 60, 1) for i in range(40)))
    assert len(plan.trees) == 1
    pinned = pin_buckets(plan, 4)
    assert Counter(pinned.bucket_of_query.values()) == dict.fromkeys(range(4), 10)
    assert pinned.maximum <= 1.01 * pinned.total / 4


def test_a_tree_that_costs_more_in_parts_than_they_even_out_stays_whole() -> None:
    # A slice a second for ten minutes of range, and two answers a minute: each part would pay for all slices again.
    pinned = pin_buckets(_plan(("a", 601, 60), ("b", 602, 60)), 4)
    assert len(set(pinned.bucket_of_query.values())) == 1


def test_trees_go_to_different_nodes_and_none_has_more_than_its_dearest_needs() -> None:
    plan = optimize(_plan(*((f"q{i}", 100 + i, 100 + i) for i in range(8))).workload, 10_000, "no_share", "auto")
    pinned = pin_buckets(plan, 2)
    assert set(pinned.bucket_of_query.values()) == {0, 1}
    assert pinned.maximum < 0.6 * pinned.total


def test_values_of_no_fixed_size_are_kept_in_one_place() -> None:
    pinned = pin_buckets(_plan(*((f"q{i}", 60, 1) for i in range(40)), call="percentile(v, 0.5)"), 4)
    assert len(set(pinned.bucket_of_query.values())) == 1


def test_queries_with_keys_have_no_home_since_their_groups_have() -> None:
    assert not pin_buckets(_plan(("q", 60, 1), keys="k,"), 4).bucket_of_query
