"""Seconds of work: each term grows with what it counts, and with nothing else."""

from __future__ import annotations

import pytest

from weft.model import ACQ, Call, Window
from weft.optimizer import optimize
from weft.optimizer.estimate import estimate
from weft.optimizer.weights import Weights

ONE = Weights(batch=1, query=1, row=1, partial=1, kept=1, operation=1, answer=1)


def query(name: str, seconds: int, slide: int) -> ACQ:
    return ACQ(name, Window(seconds * 1_000_000, slide * 1_000_000), (Call("max", ("v",)),), ())


def test_the_terms_of_one_query_are_what_they_say() -> None:
    plan = optimize([query("a", 10, 2)], rate=100, strategy="weave_share", technique="panes")
    found = estimate(plan, ONE, groups=4, batch_seconds=5)
    assert found.batches == (1 + 1) / 5
    assert found.rows == 100
    assert found.partials == 4 / 2  # a slice every two seconds, for each of the groups
    assert found.kept == 10 / 2 * 4 / 5  # five slices a group, once a batch
    assert found.operations == 4 / 2 * 5  # each slice is in five windows
    assert found.answers == 4 / 2
    assert found.seconds == pytest.approx(0.4 + 100 + 2 + 4 + 10 + 2)


def test_there_are_never_more_partials_than_rows() -> None:
    plan = optimize([query("a", 10, 2)], rate=100, strategy="weave_share", technique="panes")
    assert estimate(plan, ONE, groups=1_000_000).partials == 100


def test_more_rows_cost_only_their_passes() -> None:
    plans = [
        optimize([query("a", 10, 2), query("b", 9, 3)], rate=r, strategy="weave_share", technique="panes")
        for r in (1_000, 2_000)
    ]
    slow, fast = (estimate(plan, ONE) for plan in plans)
    assert fast.rows >= 2 * slow.rows * len(plans[1].feeds) / len(plans[0].feeds)
    assert fast.answers == slow.answers
