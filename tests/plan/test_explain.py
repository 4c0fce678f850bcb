"""A plan as text, JSON and a page: fixtures that a person can read."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from functools import partial
from html.parser import HTMLParser
from textwrap import dedent
from xml.etree import ElementTree

import pytest

from weft.model import ACQ, Call, Window
from weft.optimizer import STRATEGIES, TECHNIQUES
from weft.optimizer import optimize as optimize_by
from weft.plan import explain, query_cost, query_costs, to_html, to_json
from weft.plan.format import between, saving
from weft.plan.value_memory import warn_of_synopses
from weft.sql import parse

optimize = partial(optimize_by, technique="panes")
"""The papers' technique, which their numbers are for."""

MINUTE = 60


def query(name: str, seconds: int, slide: int, offset: int = 0, **others: object) -> ACQ:
    window = Window(seconds * 1_000_000, slide * 1_000_000, offset * 1_000_000)
    fields = {"calls": (Call("max", ("price",)),), "outputs": (), **others}
    return ACQ(name=name, window=window, **fields)  # type: ignore[arg-type]


EXAMPLE_3 = [query("q1", 16, 4), query("q2", 10, 5), query("q3", 8, 4)]


def text(block: str) -> str:
    return dedent(block).strip("\n")


def test_one_tree_has_nothing_left_to_merge_and_a_limit_says_what_it_leaves_out() -> None:
    assert explain(optimize(EXAMPLE_3, rate=1.2, strategy="shared"), limit=1) == text("""
        Plan  shared  cost 4.40 ops/s  unshared 5.50  saves 20 %   rate 1.2/s
          tree 1  0.400 slices/s   rows 1.20   final 3.20   panes
            q1  max(price)   range 16 s  slide 4 s   costs 2.00
            ... and 2 more
          guarantee  at least 45 % of all possible savings
          theorem 1  does not hold: the plan is shared with panes, and the theorem is about weave_share with panes; \
q1 has range 16 s and slide 4 s
    """)


def test_offset_filter_keys_and_several_aggregates_are_shown_where_there_are_any() -> None:
    busy = query(
        "busy",
        90 * MINUTE,
        30 * MINUTE,
        offset=15,
        keys=("symbol", "venue"),
        where="price > 3",
        refresh="at_most",
        calls=(Call("avg", ("price",)), Call("count", ("*",), condition="volume > 9")),
    )
    assert explain(optimize([busy], rate=10_000)).splitlines()[-3].split("   ") == [
        "",
        " busy  avg(price), count(*) FILTER (WHERE volume > 9)",
        "range 1 h 30 min  slide 30 min",
        "costs 10,024.00",
        "offset 15 s  answers at most a slide apart, at multiples of 15 s  by symbol, venue  where price > 3",
    ]


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_queries_cost_adds_up_to_the_plan(strategy: str, technique: str) -> None:
    queries = [*EXAMPLE_3, query("k", 9, 3, keys=("symbol",)), query("l", 8, 3, keys=("symbol",))]
    plan = optimize(queries, rate=7, strategy=strategy, technique=technique)
    costs = query_costs(plan)
    assert list(costs) == [q.name for q in queries]
    assert sum(costs.values()) == plan.cost
    assert query_cost(plan, "k") == costs["k"]


def test_without_sharing_a_query_costs_its_own_tree() -> None:
    plan = optimize(EXAMPLE_3, rate=1.2, strategy="no_share")
    assert query_costs(plan) == {"q1": Fraction(22, 10), "q2": Fraction(16, 10), "q3": Fraction(17, 10)}


def test_json_has_exact_amounts_beside_their_floats() -> None:
    plan = json.loads(json.dumps(to_json(optimize(EXAMPLE_3, rate=1.2, strategy="weave_share"))))
    assert (plan["strategy"], plan["cost"], plan["cost_exact"]) == ("weave_share", 4.3, "43/10")
    assert (plan["rate_exact"], plan["unshared_exact"], plan["saves"]) == ("6/5", "11/2", pytest.approx(12 / 55))
    assert [[q["name"] for q in tree["queries"]] for tree in plan["trees"]] == [["q1", "q3"], ["q2"]]
    assert [feed["trees"] for feed in plan["feeds"]] == [[1], [2]]
    assert plan["trees"][0]["edges"] == [[4_000_000, 0]]
    assert plan["trees"][0]["edge_rate_exact"] == "1/4"
    assert plan["trees"][1]["queries"][0] == {
        "name": "q2",
        "calls": ["max(price)"],
        "range_us": 10_000_000,
        "slide_us": 5_000_000,
        "offset_us": 0,
        "refresh": "exact",
        "source": "stream",
        "event_time": "ts",
        "keys": [],
        "where": None,
        "cost": 1.6,
        "cost_exact": "8/5",
    }
    assert plan["refused"] == {
        "trees": [1, 2],
        "cost": 4.4,
        "cost_exact": "22/5",
        "increase": 0.1,
        "increase_exact": "1/10",
    }


def test_a_guarantee_is_text_json_and_a_line_of_the_page() -> None:
    tumbling = [query("a", 4, 4), query("b", 6, 6), query("c", 9, 9)]
    plan = optimize(tumbling, rate=2, strategy="weave_share")
    assert "  theorem 1  holds: at least a quarter of all possible savings" in explain(plan).splitlines()
    found = to_json(plan)["guarantee"]
    assert (found["theorem_1"], [c["holds"] for c in found["conditions"]]) == (True, [True] * 4)
    assert found["share"] >= 0.25
    assert "<p>Theorem 1: holds: at least a quarter of all possible savings.</p>" in to_html(plan)


def test_a_plan_that_no_other_beats_says_so() -> None:
    plan = optimize(EXAMPLE_3, rate=1.2, strategy="auto")
    assert "  guarantee  optimal: no plan saves more" in explain(plan).splitlines()
    assert (to_json(plan)["optimal"], to_json(plan)["guarantee"]["share_exact"]) == (True, "1")


class Tags(HTMLParser):
    """Notes tags, and that each is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_complete_and_fetches_nothing() -> None:
    page = to_html(optimize(EXAMPLE_3, rate=1.2, strategy="tri_weave"))
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert not {"script", "link", "img", "iframe"} & set(tags.seen)
    assert not re.search(r"https?://|url\(|@import", page)
    assert "prefers-color-scheme: dark" in page
    assert tags.seen.count("rect") == 1 + 1 + 2 + 3
    assert tags.seen.count("path") == 1 + 2 + 3
    assert tags.seen.count("tr") == 1 + 3


def test_what_users_wrote_is_text_on_the_page_never_markup() -> None:
    evil = "<script>alert('x')</script>"
    nasty = query(evil, 10, 5, keys=(evil,), where=f"{evil} AND a < b", calls=(Call("max", (evil,)),))
    page = to_html(optimize([nasty]))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4


def test_explaining_hundreds_of_queries_is_the_same_every_time() -> None:
    queries = [query(f"q{i}", (i % 17 + 2) * (i % 9 + 1), i % 9 + 1) for i in range(200)]
    one, two = optimize(queries, rate=50), optimize(queries, rate=50)
    assert explain(one) == explain(two)
    assert to_html(one) == to_html(two)
    assert to_json(one) == to_json(two)
    assert len(explain(one).splitlines()) > 200 > len(explain(one, limit=3).splitlines())


def test_where_edges_were_enclosed_the_page_shows_both_ends() -> None:
    plan = optimize([query("a", 16, 4), query("b", 10, 5)], rate=100, strategy="shared", technique="panes")
    (tree,) = plan.trees
    high = tree.edge_rate + 1
    enclosed = replace(plan, trees=(replace(tree, edge_rate_high=high),), cost_high=plan.cost + 5)
    page = to_html(enclosed)
    assert f"costs {between(plan.cost, plan.cost + 5)} ops/s" in page
    assert page.count(f"{float(tree.edge_rate):,.3f} to {float(high):,.3f}") == 3, "a box, and a line for each query"
    assert f"saves {saving(plan.cost + 5, plan.unshared)}" in page, "what is promised is promised by the dear end"


def test_in_a_notebook_a_plan_is_its_picture_and_leaves_the_notebook_s_looks_alone() -> None:
    plan = optimize(EXAMPLE_3, rate=1.2, strategy="weave_share")
    shown = plan._repr_html_()
    assert shown.startswith('<div class="weft-plan">')
    root = ElementTree.fromstring(shown)
    assert root.find(".//svg") is not None
    names = [cell.text for cell in root.findall(".//tbody/tr/td[1]")]
    assert names == [name for tree in plan.trees for name in tree.queries]
    style = root.find("style")
    assert style is not None
    rules = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]*", "", style.text or ""))
    selectors = [selector.strip() for rule in rules if rule.strip() for selector in rule.split(",")]
    assert selectors
    assert all(selector.startswith(".weft-plan") for selector in selectors)


def test_values_that_are_kept_are_told_with_the_sketch_that_would_fit() -> None:
    texts = ["SELECT count(DISTINCT u) AS a FROM s GROUP BY window(ts, '1 hour', '1 minute')",
             "SELECT approx_count_distinct(u) AS a FROM s GROUP BY window(ts, '1 hour', '1 minute')"]  # fmt: skip
    plan = optimize(parse(";".join(texts)), rate=1000)
    exact, sketch = (line for line in explain(plan).splitlines() if line.startswith("  values of"))
    assert exact.startswith("  values of count(DISTINCT u)  tree 1  at most 54.9 MiB for 1 h   2,000 moves/s")
    assert "at most 900.0 KiB for 1 h, and 15.0 KiB per group and slice   32 moves/s" in sketch
    assert warn_of_synopses(plan, 2**30) == []
    warning, way_out = warn_of_synopses(plan, 2**20)
    assert "55.8 MiB, above the limit of 1.0 MiB" in warning
    assert way_out.endswith("use approx_count_distinct(u) (900.0 KiB per group at most)")


@pytest.mark.parametrize(("limit", "accuracy"), [(300, 10_000), (5, 1000), (0.2, 100), (0.01, 100)])
def test_the_percentile_that_is_named_is_the_finest_that_fits(limit: float, accuracy: int) -> None:
    text = "SELECT median(v) FILTER (WHERE v > 1) AS a FROM s GROUP BY window(ts, '1 hour', '10 minutes')"
    plan = optimize(parse(text), rate=10_000)
    _, way_out = warn_of_synopses(plan, int(limit * 2**20))
    assert f"use percentile_approx(v, 0.5, {accuracy}) FILTER (WHERE v > 1) (" in way_out


def test_no_sketch_is_named_that_would_not_keep_less() -> None:
    plan = optimize(parse("SELECT median(v) AS a FROM s GROUP BY window(ts, '1 minute', '1 second')"), rate=100)
    (warning,) = warn_of_synopses(plan, 100)
    assert "above the limit of 100 B" in warning
