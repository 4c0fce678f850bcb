"""Costs and divisions of the memory: the paper's formulas as printed, its worked values, and laws."""

from __future__ import annotations

from itertools import product
from math import lcm, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.plain_tables import (
    emptying,
    evictions,
    evictions_by_inclusion,
    query_sets,
    rates,
    row_cost,
    statistics,
)
from weft.model import WeftError
from weft.optimizer.phantoms import (
    ALLOCATIONS,
    Configuration,
    Flows,
    GroupStatistics,
    ProbeCosts,
    Relation,
    allocate,
    choose,
    collision_rate,
    configurations,
    estimate,
    parse,
    price,
    read,
)
from weft.optimizer.phantoms.allocation import NoMemory
from weft.optimizer.phantoms.collisions import MU
from weft.optimizer.phantoms.configuration_arrays import Forests
from weft.optimizer.phantoms.exhaustive_space import TooManyTables, exhaustive_space
from weft.optimizer.phantoms.statistics import UnknownGroups
from weft_bench.figures.phantoms.peak_load import PeakTooLow, shift, shrink, within_peak

COUNTS = {
    read(name): float(count)
    for name, count in {
        "A": 52, "B": 60, "C": 110, "D": 57, "AC": 160, "BD": 90, "AB": 180, "BC": 190, "CD": 185, "BCD": 211,
        "ABC": 230, "ABCD": 283, "ABD": 240, "ACD": 250, "AD": 170,
    }.items()
}  # fmt: skip

SOME = ["A B C", "ABC(A B C)", "ABCD(AB BCD(BC BD CD))", "ABCD(AC(A C) BD(B D))", "ABC(AB BC) BD CD"]


def space_of(buckets: dict[Relation, int]) -> dict[Relation, float]:
    return {relation: count * (len(relation) + 1.0) for relation, count in buckets.items()}


@pytest.mark.parametrize("text", SOME)
@pytest.mark.parametrize("flows", [Flows(), Flows((30, 4, 1))])
def test_costs_are_those_of_equations_7_and_8(text: str, flows: Flows) -> None:
    configuration, prices = parse(text), ProbeCosts(2, 31)
    known = GroupStatistics(COUNTS, flows)
    buckets = {r: 40 + 17 * place for place, r in enumerate(configuration.relations)}
    x = rates(configuration, known, buckets)
    found = price(configuration, known, space_of(buckets), prices)
    assert found.cost == pytest.approx(row_cost(configuration, x, prices))
    assert found.emptying == pytest.approx(emptying(configuration, x, buckets, prices))


def test_the_phantom_of_figure_2_saves_what_equation_3_says() -> None:
    known, prices = GroupStatistics({**dict.fromkeys(map(read, "ABC"), 100.0), read("ABC"): 400.0}), ProbeCosts(1, 15)
    without = price(parse("A B C"), known, dict.fromkeys(map(read, "ABC"), 400.0), prices).cost
    tables = {**dict.fromkeys(map(read, "ABC"), 200.0), read("ABC"): 600.0}
    with_it = price(parse("ABC(A B C)"), known, tables, prices).cost
    x1, x1_, x2 = (float(collision_rate(g, b)) for g, b in ((100, 200), (100, 100), (400, 150)))
    assert without == pytest.approx(3 + 3 * x1 * 15)
    assert with_it == pytest.approx(1 + 3 * x2 + 3 * x1_ * x2 * 15)
    assert without - with_it == pytest.approx((2 - 3 * x2) + 3 * (x1 - x1_ * x2) * 15)


def test_a_query_that_feeds_others_evicts_too() -> None:
    known = GroupStatistics({read("A"): 10.0, read("AB"): 50.0})
    buckets = {read("A"): 5, read("AB"): 20}
    xa, xab = (float(collision_rate(g, b)) for g, b in ((10, 5), (50, 20)))
    found = price(parse("AB*(A)"), known, space_of(buckets))
    assert found.cost == pytest.approx(1 + xab * (15 + 1 + xa * 15))


# Different epochs.


def test_a_table_above_epochs_of_2_3_and_5_is_emptied_22_times_in_30() -> None:
    assert (evictions((2, 3, 5)), evictions((2, 3)), evictions((2, 3), cycle=30)) == (22, 4, 20)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_evictions_are_those_of_equation_24(epochs: list[int]) -> None:
    cycle = lcm(*epochs)
    assert evictions(epochs) == evictions_by_inclusion(sorted(set(epochs)), cycle)
    assert evictions(epochs) == sum(any(t % epoch == 0 for epoch in epochs) for t in range(1, cycle + 1))


def test_a_cycle_that_is_no_multiple_is_refused() -> None:
    with pytest.raises(WeftError, match="no multiple"):
        evictions((2, 3), cycle=4)


def test_emptying_is_spread_over_the_rows_of_a_cycle_as_in_equation_29() -> None:
    configuration, prices = parse("ABC(AB(A B) C)"), ProbeCosts()
    epochs = dict(zip(map(read, "ABC"), ((2,), (3,), (5,))))
    known = GroupStatistics(COUNTS, Flows((10, 2)), rows=5000, epochs=epochs)
    buckets = dict.fromkeys(configuration.relations, 50)
    x = rates(configuration, known, buckets)
    a, b, c, ab, abc = (x[read(name)] for name in ("A", "B", "C", "AB", "ABC"))
    below_ab = 2 + (a + b) * 15
    # n_R * E_R by equations 24 and 27, in a cycle of 30.
    cee = 22 * 50 * ((1 + ab * below_ab) + (1 + c * 15)) + 20 * 50 * below_ab + (15 + 10 + 6) * 50 * 15
    cie = 30 * 5000 * row_cost(configuration, x, prices)
    assert abc < 1
    assert price(configuration, known, space_of(buckets)).cost == pytest.approx((cie + cee) / (30 * 5000))


# Dividing the memory.


def test_two_levels_are_divided_by_equations_21_and_22() -> None:
    known = GroupStatistics({read("A"): 400.0, read("B"): 100.0, read("C"): 900.0, read("ABC"): 3000.0})
    memory, c1, c2 = 20_000, 1.0, 15.0
    found = allocate(parse("ABC(A B C)"), known, memory, ProbeCosts(c1, c2)).space
    roots = {name: sqrt(known.groups[read(name)] * 2) for name in "ABC"}  # g * h instead of g: section 6.4
    total = sum(roots.values())
    bottom = MU * c2 * total + sqrt(MU**2 * c2**2 * total**2 + 3 * MU * c1 * c2 * memory)
    for name in "ABC":
        assert found[read(name)] == pytest.approx(MU * c2 * memory * roots[name] / bottom)
    assert found[read("ABC")] > memory / 2
    assert sum(found.values()) == pytest.approx(memory)


def test_two_levels_divided_so_are_the_optimum_of_the_line() -> None:
    known, memory = GroupStatistics({read("A"): 400.0, read("B"): 100.0, read("AB"): 3000.0}), 10_000

    def line(a: float, b: float) -> float:
        x0, xa, xb = MU * 9000 / (memory - a - b), MU * 800 / a, MU * 200 / b
        return 1 + 2 * x0 + x0 * (xa + xb) * 15

    found = allocate(parse("AB(A B)"), known, memory).space
    best = line(found[read("A")], found[read("B")])
    for da, db in product((-50, 0, 50), repeat=2):
        assert line(found[read("A")] + da, found[read("B")] + db) >= best


def test_one_level_is_divided_by_square_roots() -> None:
    known = GroupStatistics({read("A"): 400.0, read("B"): 100.0})
    for name in ("sl", "sr", "pr"):
        found = allocate(parse("A B"), known, 3000, allocation=name).space
        assert (found[read("A")], found[read("B")]) == (pytest.approx(2000), pytest.approx(1000))
    assert allocate(parse("A B"), known, 3000, allocation="pl").space[read("A")] == pytest.approx(2400)


def test_supernodes_add_groups_or_their_roots_as_in_figure_13() -> None:
    configuration = parse("ABCD(ABC(AB(A B) C) D)")
    widths = dict.fromkeys(configuration.relations, 1.0)
    counts = {"A": 100, "B": 100, "AB": 400, "C": 300, "ABC": 900, "D": 400, "ABCD": 2500}
    known = GroupStatistics({read(k): float(v) for k, v in counts.items()}, widths=widths)
    linear, root = (allocate(configuration, known, 9000, allocation=a).space for a in ("sl", "sr"))
    below = {r for r in configuration.relations if r not in (read("ABCD"), read("D"))}
    for space, expected in (
        (linear, sqrt(100 + 100 + 400 + 300 + 900)),
        (root, 10 + 10 + 20 + sqrt(300) + 30),
    ):
        assert sum(space[r] for r in below) / space[read("D")] == pytest.approx(expected / sqrt(400))


@st.composite
def some_configurations(draw: st.DrawFn) -> Configuration:
    return draw(st.sampled_from(configurations(draw(query_sets(most=4)))))


@given(some_configurations(), statistics(), st.floats(1, 1e6), st.sampled_from(["sl", "sr", "pl", "pr"]))
@settings(max_examples=60, deadline=None)
def test_a_division_gives_out_all_memory_and_nothing_negative(
    configuration: Configuration, known: GroupStatistics, memory: float, name: str
) -> None:
    found = allocate(configuration, known, memory, allocation=name)
    assert set(found.space) == set(configuration.relations)
    assert min(found.space.values()) >= 0
    assert sum(found.space.values()) == pytest.approx(memory)
    assert min(found.buckets(known).values()) >= 1
    assert np.isfinite(found.cost)


def every_division(shares: int, tables: int) -> list[tuple[int, ...]]:
    if tables == 1:
        return [(shares,)]
    return [(k, *rest) for k in range(1, shares - tables + 2) for rest in every_division(shares - k, tables - 1)]


@pytest.mark.parametrize("text", ["A B C", "ABC(A B C)", "ABC(AC(A C) B)", "AB*(A) C"])
@pytest.mark.parametrize("rows", [float("inf"), 2000.0])
def test_es_is_the_best_of_all_divisions(text: str, rows: float) -> None:
    configuration, prices, shares, memory = parse(text), ProbeCosts(), 10, 3000.0
    epochs = {read("A"): (2,), read("B"): (3,)}
    known = GroupStatistics(COUNTS, Flows((4, 2)), rows, epochs)
    forests = Forests.one(configuration, known)
    found = exhaustive_space(forests, memory, prices, shares)
    cost = float(forests.cost(found, prices)[0])
    # Where emptying costs, memory may be left over.
    most = range(len(configuration.relations), shares + 1)
    tried = [
        price(configuration, known, {r: k * memory / shares for r, k in zip(configuration.relations, division)}).cost
        for total in most
        for division in every_division(total, len(configuration.relations))
    ]
    assert cost == pytest.approx(min(tried), rel=1e-12)
    assert forests.by_table(found).sum() <= memory * (1 + 1e-12)


def test_es_gives_out_all_memory_where_emptying_costs_nothing() -> None:
    for text in SOME:
        found = allocate(parse(text), GroupStatistics(COUNTS), 5000, allocation="es")
        assert sum(found.space.values()) == pytest.approx(5000)


def test_es_refuses_more_tables_than_shares() -> None:
    forests = Forests.one(parse("A B C D"), GroupStatistics(COUNTS))
    with pytest.raises(TooManyTables, match="4 tables cannot each have one of 3 shares"):
        exhaustive_space(forests, 100, ProbeCosts(), shares=3)


@pytest.mark.parametrize("memory", [0, -1, float("nan"), float("inf")])
def test_no_memory_is_refused(memory: float) -> None:
    with pytest.raises(NoMemory, match="above 0"):
        allocate(parse("A"), GroupStatistics(COUNTS), memory)


def test_names_that_there_are_not_are_refused() -> None:
    with pytest.raises(WeftError, match="choose one of sl, sr, pl, pr, es"):
        allocate(parse("A"), GroupStatistics(COUNTS), 10, allocation="best")
    with pytest.raises(WeftError, match="choose one of gc, gp, epes"):
        choose([read("A")], GroupStatistics(COUNTS), 10, chooser="best")
    assert set(ALLOCATIONS) == {"sl", "sr", "pl", "pr", "es"}


# The peak.


@pytest.mark.parametrize("share", [0.99, 0.9, 0.8])
def test_shrink_and_shift_come_just_below_the_peak(share: float) -> None:
    # Long flows at all depths: few groups that a phantom throws down are thrown out of a query's table.
    known, prices = GroupStatistics(COUNTS, Flows((30, 20, 20))), ProbeCosts()
    begun = allocate(parse("ABCD(AB BCD(BC BD CD))"), known, 6000)
    peak = share * begun.emptying
    smaller, moved = (way(begun, known, prices, peak) for way in (shrink, shift))
    assert smaller is not None
    assert moved is not None
    assert smaller.emptying == pytest.approx(peak, rel=1e-6)
    assert smaller.emptying <= peak
    ratios = {smaller.space[r] / begun.space[r] for r in begun.space}
    assert max(ratios) - min(ratios) < 1e-9
    assert moved.emptying <= peak
    assert sum(moved.space.values()) == pytest.approx(6000)
    assert all((moved.space[r] > begun.space[r]) == (r in begun.configuration.phantoms) for r in begun.space)
    assert within_peak(begun, known, prices, peak).cost == min(smaller.cost, moved.cost)


def test_shift_gives_up_where_queries_collide_with_what_it_sends_them() -> None:
    known, prices = GroupStatistics(COUNTS), ProbeCosts()
    begun = allocate(parse("ABCD(AB BCD(BC BD CD))"), known, 600)
    assert shift(begun, known, prices, 0.9 * begun.emptying) is None
    assert within_peak(begun, known, prices, 0.9 * begun.emptying).emptying <= 0.9 * begun.emptying


def test_a_peak_that_is_high_enough_changes_nothing_and_one_too_low_is_refused() -> None:
    known, prices = GroupStatistics(COUNTS), ProbeCosts()
    begun = allocate(parse("ABC(A B C)"), known, 6000)
    assert within_peak(begun, known, prices, begun.emptying) is begun
    assert shift(allocate(parse("A B"), known, 6000), known, prices, 10) is None
    with pytest.raises(PeakTooLow, match="even with a bucket each"):
        within_peak(begun, known, prices, 10)


# Group counts.


def test_counts_that_are_known_stay_and_others_lie_between() -> None:
    known = {read("A"): 10.0, read("B"): 20.0, read("C"): 5.0, read("ABC"): 150.0}
    found = estimate([read(name) for name in ("A", "AB", "BC", "AC", "ABC")], known, rows=1e9)
    assert found == {
        read("A"): 10, read("AB"): 150, read("BC"): pytest.approx(100), read("AC"): pytest.approx(50), read("ABC"): 150
    }  # fmt: skip


def test_common_attributes_are_divided_out() -> None:
    known = {read("AB"): 100.0, read("BC"): 200.0, read("B"): 10.0}
    assert estimate([read("ABC")], known, rows=float("inf"))[read("ABC")] == pytest.approx(2000)


def test_no_more_groups_than_rows_can_show() -> None:
    known = {read("A"): 1000.0, read("B"): 1000.0}
    assert estimate([read("AB")], known, rows=1000)[read("AB")] == pytest.approx(1000, rel=0.01)


@given(query_sets(), statistics())
@settings(deadline=None)
def test_a_relation_has_no_fewer_groups_than_one_within_it(queries: list[Relation], known: GroupStatistics) -> None:
    found = estimate(queries, known.groups, known.rows)
    assert all(found[one] <= found[other] + 1e-9 for one in queries for other in queries if one < other)


def test_a_relation_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(UnknownGroups, match="the groups of AX cannot be estimated: no count has X"):
        estimate([read("AX")], {read("A"): 3.0}, rows=10)
    with pytest.raises(UnknownGroups, match="cannot have -1 groups"):
        GroupStatistics({read("A"): -1.0})
