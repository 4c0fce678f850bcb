"""Planning many queries: what is counted, not how long it takes; and workloads at the edge of what there is."""

from __future__ import annotations

from fractions import Fraction

import pytest
from exhaustive import pair_by_pair, query

from weft.bench.plan import people, random_windows
from weft.model import InvalidWindow, Window, Workload
from weft.optimizer import TECHNIQUES, Cost, bounds, optimize
from weft.optimizer.parts import equal_edges
from weft.optimizer.weaving import Weaving


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
def test_bundles_of_equal_slides_merge_what_single_parts_merge(
    technique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Short slides at a low rate: some merge, some do not.
    workload = Workload(query(f"q{i}", 6 + i % 7 + i % 5, 3 + i % 4, i % 3) for i in range(24))
    for rate in (1, 4, 12):
        alone = optimize(workload, rate, "weave_share", technique)
        with monkeypatch.context() as patch:
            patch.setattr(bounds, "MOST_ROWS", 0)
            together = optimize(workload, rate, "weave_share", technique)
        assert [t.queries for t in together.trees] == [t.queries for t in alone.trees]


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


@pytest.mark.parametrize(("length", "slide"), [(10, 0), (10, -1), (-5, -5), (5, 10)])
def test_slides_of_nothing_and_ranges_below_the_slide_are_refused(length: int, slide: int) -> None:
    with pytest.raises(InvalidWindow, match="must be"):
        Window(length, slide)
