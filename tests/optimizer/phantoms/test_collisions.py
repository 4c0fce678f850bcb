"""The collision model against its own sum, the paper's line, and tables that rows really go through."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plain_tables import collision_rate_by_occupancy, low_collision_rate, throw_by_loop
from weft.optimizer.phantoms import (
    Flows,
    ProbeCosts,
    TableCounts,
    allocate,
    collision_rate,
    measure_flows,
    parse,
    price,
    read,
)
from weft.optimizer.phantoms.collisions import InvalidFlows
from weft_bench.data.packets import FLOW, GROUPS, Packets, clustered, headers, uniform
from weft_bench.figures.phantoms.counted_tables import Streams, bucket_of, throw


@given(st.integers(1, 60), st.integers(1, 80))
def test_the_closed_form_is_the_sum_over_occupancies(groups: int, buckets: int) -> None:
    assert float(collision_rate(groups, buckets)) == pytest.approx(
        collision_rate_by_occupancy(groups, buckets), rel=1e-9, abs=1e-12
    )


@given(st.floats(1, 1e7), st.floats(0, 1e7))
def test_a_rate_is_a_share_and_falls_with_buckets(groups: float, buckets: float) -> None:
    rate, more = collision_rate(groups, [buckets, buckets * 2 + 1])
    assert 0 <= more <= rate + 1e-9 <= 1 + 1e-9


def test_one_bucket_collides_unless_the_group_repeats() -> None:
    assert float(collision_rate(10, 1)) == pytest.approx(0.9)
    assert float(collision_rate(1, 1)) == 0


def test_the_papers_line_is_near_the_curve_below_four_tenths() -> None:
    ratio = np.linspace(0.1, 1.1, 101)
    exact, line = collision_rate(3000, 3000 / ratio), low_collision_rate(3000, 3000 / ratio)
    assert exact.max() < 0.4
    assert np.mean(abs(line - exact) / exact) < 0.05
    slope, begin = np.polyfit(ratio, exact, 1)
    assert (begin, slope) == (pytest.approx(0.0267, abs=0.01), pytest.approx(0.354, abs=0.02))


@given(st.lists(st.integers(0, 9), max_size=80), st.integers(1, 7), st.integers(0, 3))
def test_columns_at_a_time_throw_out_what_a_loop_does(groups: list[int], buckets: int, seed: int) -> None:
    column = np.array(groups, np.int64)
    when, thrown = throw(column, buckets, seed)
    assert (when.tolist(), thrown.tolist()) == throw_by_loop(groups, bucket_of(column, buckets, seed).tolist())


@pytest.mark.parametrize("groups", [500, 1000, 2000])
@pytest.mark.parametrize("ratio", [0.5, 1, 2, 4])
def test_random_rows_collide_as_often_as_the_model_says(groups: int, ratio: float) -> None:
    # A loop over a dictionary. One hash in 16 may be off by a tenth, as few buckets are shared; 5 % is for their mean.
    buckets = int(groups / ratio)
    random = np.random.default_rng(groups)
    rows = random.integers(0, groups, 40_000).tolist()
    found = 0
    for _ in range(16):
        place = random.integers(0, buckets, groups).tolist()
        when, _ = throw_by_loop(rows, [place[group] for group in rows])
        found += sum(row >= 10_000 for row in when)  # the first rows find empty buckets
    assert found / (16 * 30_000) == pytest.approx(float(collision_rate(groups, buckets)), rel=0.05)


def test_clustered_rows_collide_so_much_less_as_flows_are_long() -> None:
    packets = Streams(clustered(300_000, seed=1))
    found = packets.run(parse("ABCD"), {read("ABCD"): 2000})
    (length,) = found.flows.by_depth
    assert 0.6 * FLOW < length < 1.2 * FLOW
    again = packets.run(parse("ABCD"), {read("ABCD"): 1500}).counts[read("ABCD")]
    expected = float(collision_rate(again.groups, 1500)) / length
    assert again.collisions / again.rows == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("draw", [uniform, clustered])
@pytest.mark.parametrize("text", ["ABCD(AC(A C) BD(B D))", "ABCD(AB BCD(BC BD CD))"])
def test_flow_lengths_of_the_last_window_tell_the_cost_of_the_next(
    draw: Callable[[int, int], Packets], text: str
) -> None:
    # Groups thrown out of one table are not random for the next, even where rows are: they come again and again.
    values = draw(400_000, 1).values
    last, following = (Streams(Packets(part)) for part in (values[:200_000], values[200_000:]))
    configuration = parse(text)
    begun = allocate(configuration, last.statistics(configuration.relations), 30_000)
    buckets = begun.buckets(last.statistics(configuration.relations))
    flows = last.run(configuration, buckets).flows
    expected = price(configuration, last.statistics(configuration.relations, flows), begun.space).cost
    assert following.run(configuration, buckets).row_cost(ProbeCosts()) == pytest.approx(expected, rel=0.1)


def test_flow_lengths_are_measured_by_depth_and_never_below_one() -> None:
    tables = [TableCounts(1, 100, 100, 1000, 18), TableCounts(1, 100, 100, 1000, 36), TableCounts(3, 100, 100, 100, 90)]
    one, other = (float(collision_rate(100, 100)) * 1000 / n for n in (18, 36))
    first = (one + other) / 2
    assert measure_flows(tables).by_depth == (pytest.approx(first), pytest.approx(first), 1.0)
    assert measure_flows([]).by_depth == (1.0,)
    assert measure_flows([TableCounts(1, 5, 100, 1000, 0)]).by_depth == (1.0,)


@pytest.mark.parametrize("lengths", [(), (0.5,), (30, float("nan"))])
def test_flows_that_cannot_be_are_refused(lengths: tuple[float, ...]) -> None:
    with pytest.raises(InvalidFlows):
        Flows(lengths)


def test_packets_are_like_those_of_the_paper() -> None:
    kinds = Packets(headers(1))
    counts = {name: kinds.count(name) for name in ("A", "BCD", "ABCD", "AC", "BD", "AB")}
    assert (counts["A"], counts["BCD"], counts["ABCD"]) == (552, 2117, GROUPS)
    assert max(counts["AC"], counts["BD"]) < counts["AB"]
    packets = clustered(10_000, seed=2)
    assert len(packets) == 10_000
    assert np.array_equal(packets.values, clustered(10_000, seed=2).values)
    assert not np.array_equal(packets.values, clustered(10_000, seed=3).values)
