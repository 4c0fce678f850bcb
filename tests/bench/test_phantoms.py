"""`weft bench phantoms`: every bar is in the summary, and what is drawn is what was asked for."""

from __future__ import annotations

import json
from random import Random

from typer.testing import CliRunner

from weft.cli.app import app
from weft_bench.benchmarks.phantoms import SUMMARY, draw_queries, draw_statistics


def test_every_bar_is_in_the_summary() -> None:
    words = ["--queries", "12", "--attributes", "5", "--workloads", "2", "--small", "2", "--json"]
    done = CliRunner().invoke(app, ["bench", "phantoms", *words])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["summary"]) == set(SUMMARY)
    assert [row["queries"] for row in found["rows"][:2]] == [12, 12]
    assert all(row["gain"] >= 1 for row in found["rows"][:2])
    assert found["summary"]["gc_over_epes_most"] >= 0.99  # the optimum is one of whole hundredths
    assert 1 <= found["summary"]["gc_over_epes_mean"] <= found["summary"]["gc_over_epes_most"]


def test_group_bys_are_drawn_all_different_and_the_same_for_a_seed() -> None:
    one, again = (draw_queries(Random(3), 30, 8) for _ in range(2))
    assert one == again
    assert len(set(one)) == 30
    assert len(draw_queries(Random(3), 30, 3)) == 7  # there are no more
    counts = draw_statistics(Random(3), 8).groups
    assert max(counts, key=lambda relation: counts[relation]) == frozenset("ABCDEFGH")
