"""`optimize` as users call it: what it takes, what it refuses, and how long it may take."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from time import process_time

import pytest

from tests.support.exhaustive import drawn, queries, query
from weft.model import Workload
from weft.optimizer import STRATEGIES, CannotOptimize, optimize

TWO = queries((16, 4), (10, 5))


@pytest.mark.parametrize("rate", [1.2, "1.2", Fraction(6, 5), " 1.20 "])
def test_a_rate_is_the_number_that_it_reads_as(rate: object) -> None:
    assert optimize(TWO, rate=rate).rate == Fraction(6, 5)  # type: ignore[arg-type]


def test_ten_thousand_rows_a_second_and_tri_weave_with_auto_are_the_default() -> None:
    plan = optimize(TWO)
    assert (plan.rate, plan.strategy, plan.technique) == (10_000, "tri_weave", "auto")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategy": "best"}, f"no strategy 'best'; choose one of {', '.join(STRATEGIES)}"),
        ({"technique": "pains"}, "no technique 'pains'; choose one of blocks, auto, panes, panes_inv"),
        ({"rate": -1}, "must not be negative, got -1"),
        ({"rate": "many"}, "must be a number of rows per second, such as 10000 or 1.2, got 'many'"),
        ({"rate": float("nan")}, "must be a number"),
        ({"rate": float("inf")}, "must be a number"),
        ({"rate": "1/0"}, "must be a number"),
    ],
)
def test_what_does_not_exist_is_refused_with_the_choices(changes: dict[str, object], message: str) -> None:
    with pytest.raises(CannotOptimize, match=message.replace("(", r"\(")):
        optimize(TWO, **changes)  # type: ignore[arg-type]


def test_an_empty_workload_is_refused() -> None:
    with pytest.raises(CannotOptimize, match="give at least one"):
        optimize([])


def test_the_same_workload_gives_the_same_plan() -> None:
    workload = drawn(40, seed=1, unit=0.1)
    assert optimize(workload, 100) == optimize(workload, 100)


@pytest.mark.parametrize("strategy", ["weave_share", "tri_weave"])
def test_a_hundred_queries_with_ranges_of_milliseconds_are_planned_in_seconds(strategy: str) -> None:
    random = Random(5)
    slides = random.choices(range(1, 61), k=100)
    workload = Workload(query(f"q{i}", round(s * random.uniform(2, 20), 3), s) for i, s in enumerate(slides))
    begun = process_time()
    optimize(workload, 1000, strategy)
    assert process_time() - begun < 5  # a tenth of a second on an idle machine


@pytest.mark.parametrize("strategy", ["weave_share", "tri_weave"])
def test_a_thousand_queries_with_slides_that_people_choose_are_planned_in_seconds(strategy: str) -> None:
    random = Random(5)
    slides = random.choices([1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 86400], k=1000)
    workload = Workload(query(f"q{i}", s * random.randint(2, 20), s) for i, s in enumerate(slides))
    begun = process_time()
    optimize(workload, 1000, strategy)
    assert process_time() - begun < 8  # a tenth of a second on an idle machine
