"""Planning many queries: what is counted, not how long it takes; and workloads at the edge of what there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from tests.support.exhaustive import pair_by_pair, query
from weft.model import EdgeClass, Edges, InvalidWindow, Window, Workload
from weft.optimizer import TECHNIQUES, Cost, optimize
from weft.optimizer.edge_counting import exact, f1, interval
from weft.optimizer.incremental import change_plan
from weft.optimizer.merge import bounds, bundle
from weft.optimizer.merge.greedy import Weaving
from weft.optimizer.merge.part import equal_edges
from weft.plan import format
from weft.plan.explain import explain, to_json
from weft_bench.benchmarks.plan import people, random_windows


def woven(workload: Workload, saving: Fraction) -> Weaving:
    cost = Cost(TECHNIQUES["panes"])
    found = Weaving(equal_edges(list(enumerate(workload)), cost), saving, cost, above=0)
    while (merge := found.best()) is not None:
        found.merge(merge)
    return found


def test_about_one_pair_a_merge_is_counted_where_people_choose_the_slides() -> None:
    workload = people(300, seed=3)
    found = woven(workload, Fraction(1000))
    parts = len({(w.slide, w.shifts) for w in (q.window for q in workload)})
    assert found.counted <= 2 * (parts - len(found.parts))


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_bundles_of_equal_slides_merge_what_single_parts_merge(technique: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Short slides at a low rate: some merge, some do not.
    workload = Workload(query(f"q{i}", 6 + i % 7 + i % 5, 3 + i % 4, i % 3) for i in range(24))
    for rate in (1, 4, 12):
        alone = optimize(workload, rate, "weave_share", technique)
        with monkeypatch.context() as patch:
            patch.setattr(bundle, "MOST_ROWS", 0)
            together = optimize(workload, rate, "weave_share", technique)
        assert [t.queries for t in together.trees] == [t.queries for t in alone.trees]


@pytest.mark.parametrize("technique", ["blocks", "panes", "slick_deque_inv"])
def test_rows_of_merged_parts_that_find_no_room_change_no_merge(
    technique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = random_windows(30, seed=2)
    for rate in ("0.05", "0.5"):
        kept = optimize(workload, rate, "weave_share", technique)
        with monkeypatch.context() as patch:
            patch.setattr(bounds, "MOST_KEPT", 0)
            assert optimize(workload, rate, "weave_share", technique) == kept


def test_what_is_kept_of_pairs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_KEPT", 5_000)
    cost = Cost(TECHNIQUES["blocks"])
    found = Weaving(equal_edges(list(enumerate(people(400, seed=4))), cost), Fraction(1000), cost, above=0)
    merges = 0
    while (merge := found.best()) is not None:
        found.merge(merge)
        merges += 1
        assert found.kept_bounds <= 5_000
    assert merges > 100


@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1), Fraction(100)])
def test_random_slides_merge_as_pair_by_pair(rate: Fraction) -> None:
    workload, cost = random_windows(14, seed=5), Cost(TECHNIQUES["panes"])
    expected = pair_by_pair([[q] for q in workload], rate, cost)
    found = [[name for _, name in part.queries] for part in woven(workload, rate).parts.values()]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


def test_a_thousand_equal_queries_are_one_tree_and_nothing_is_counted() -> None:
    workload = Workload(query(f"q{i}", 60, 7) for i in range(1000))
    assert woven(workload, Fraction(0)).counted == 0
    (tree,) = optimize(workload, strategy="weave_share").trees
    assert len(tree.queries) == 1000


@pytest.mark.parametrize("rate", [0, "0", 1e-9])
def test_one_query_and_a_rate_of_nothing_have_a_plan(rate: float | str) -> None:
    plan = optimize([query("a", 10, 3)], rate, "weave_share", "panes")
    assert plan.cost == plan.rate + Fraction(2, 3) * Fraction(10, 3)


def test_composite_slides_beyond_64_bits_have_a_plan() -> None:
    slides = [86_399.999989, 86_399.999981, 86_399.999957, 3599.999981, 1234.567891]
    plan = optimize([query(f"q{i}", 2 * s, s) for i, s in enumerate(slides)], 1000, "weave_share", "panes")
    assert plan.trees[0].edges.period > 1 << 63
    assert 0 < plan.cost <= plan.unshared


def test_slides_next_to_the_longest_that_can_be_counted_have_a_plan() -> None:
    # Ten of them in one tree go through compiled code; a product of two passes 64 bits.
    windows = [Window((1 << 62) + 2 * i + 1, (1 << 62) - 2 * i - 1) for i in range(10)]
    workload = [replace(query("q", 1, 1), name=f"q{i}", window=w) for i, w in enumerate(windows)]
    tree = Cost(TECHNIQUES["panes"]).tree(workload)
    assert 0 < tree.edge_rate <= sum(Fraction(len(w.classes) * 1_000_000, w.slide) for w in windows)
    assert optimize(workload, 1, "weave_share").cost > 0


def test_slides_beyond_64_bits_have_a_clear_error() -> None:
    windows = [Window((1 << 70) + i, (1 << 64) + i) for i in range(6)]
    workload = [replace(query("q", 1, 1), name=f"q{i}", window=w) for i, w in enumerate(windows)]
    with pytest.raises(exact.SlideTooLong, match=r"the longest is 2\*\*63 - 1"):
        optimize(workload, 10**9, "weave_share", "panes")


def test_a_tree_too_large_to_count_has_a_cost_between_two_numbers_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = random_windows(40, seed=6)
    counted = optimize(workload, 10_000, "weave_share", "panes")
    interval.forget()
    monkeypatch.setattr(interval, "STEPS", 0)
    enclosed = optimize(workload, 10_000, "weave_share", "panes")
    interval.forget()
    assert counted.cost_high is None
    assert [t.queries for t in enclosed.trees] == [t.queries for t in counted.trees]
    assert enclosed.cost_high is not None
    assert enclosed.cost <= counted.cost <= enclosed.cost_high <= enclosed.cost * Fraction(1001, 1000)
    (tree,) = enclosed.trees
    assert tree.edge_rate < counted.trees[0].edge_rate < (tree.edge_rate_high or 0)
    assert f"cost {format.amount(enclosed.cost)} to {format.amount(enclosed.cost_high)} ops/s" in explain(enclosed)
    assert to_json(enclosed)["cost_high_exact"] == str(enclosed.cost_high)


def test_a_plan_whose_edges_are_enclosed_is_mended_without_counting_them(monkeypatch: pytest.MonkeyPatch) -> None:
    cost, workload = Cost(TECHNIQUES["panes"]), random_windows(40, seed=6)
    new, gone = replace(workload[7], name="again"), [workload[3].name]
    counted, _ = change_plan(optimize(workload, 10_000, "weave_share", "panes"), [new], gone, cost)
    interval.forget()
    monkeypatch.setattr(interval, "STEPS", 0)
    monkeypatch.setattr(exact, "missed", _only_few)
    plan = optimize(workload, 10_000, "weave_share", "panes")
    mended, _ = change_plan(plan, [new], gone, cost)
    together = optimize(workload, 10_000, "shared", "panes")
    interval.forget()
    assert mended.cost_high is not None
    assert mended.cost <= counted.cost <= mended.cost_high <= mended.cost * Fraction(1001, 1000)
    assert [t.queries for t in mended.trees] == [t.queries for t in counted.trees]
    assert together.cost_high is not None


def _only_few(classes: Sequence[EdgeClass]) -> Fraction:
    assert len(classes) <= exact.FEW, f"{len(classes)} classes were counted"
    return 1 - f1.density(Edges(tuple(classes)))


@pytest.mark.parametrize(("length", "slide"), [(10, 0), (10, -1), (-5, -5), (5, 10)])
def test_slides_of_nothing_and_ranges_below_the_slide_are_refused(length: int, slide: int) -> None:
    with pytest.raises(InvalidWindow, match="must be"):
        Window(length, slide)
