"""Who builds the windows of a tree: what is fastest by the speeds given, and never what cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.aggregates.operators import OPERATOR_FACTS
from weft.calibration.file import BadCalibration, Calibration, load_speeds, save_calibration
from weft.calibration.speeds import DEFAULT_SPEEDS
from weft.kernels import OPERATORS, OWN, TECHNIQUES, accepts
from weft.model import ACQ, Call, Window
from weft.optimizer import optimize
from weft.optimizer.choose_techniques import (
    BadLatency,
    Counts,
    Speed,
    checked_latency,
    serve,
)
from weft.optimizer.cost.omega import TECHNIQUES as OMEGAS
from weft.plan import Plan, explain, to_json

SECOND = 1_000_000


def plan(length: int, slide: int, *functions: str, technique: str = "auto", queries: int = 1) -> Plan:
    calls = tuple(Call(f, ("x",)) for f in functions)
    windows = [Window((length + i) * slide * SECOND, slide * SECOND) for i in range(queries)]
    acqs = [ACQ(f"q{i}", w, calls, ()) for i, w in enumerate(windows)]
    return optimize(acqs, rate=100, strategy="shared", technique=technique)


def chosen(served: Plan) -> dict[str, str]:
    return {s.operator: s.technique for s in served.trees[0].serving}


def test_every_technique_has_an_omega_and_every_operator_a_speed() -> None:
    assert OMEGAS.keys() == {"auto", "blocks", *TECHNIQUES}
    for operator in OPERATORS.keys() - {"min"}:
        assert DEFAULT_SPEEDS[OPERATOR_FACTS[operator].priced_as or operator]
    for operator, speeds in DEFAULT_SPEEDS.items():
        assert all(accepts(name, operator) for name in speeds)


def test_small_windows_are_combined_anew_and_large_ones_are_not() -> None:
    assert chosen(serve(plan(2, 1, "max")))["max"] == "panes"
    assert chosen(serve(plan(3600, 1, "max")))["max"] != "panes"


def test_many_queries_share_tables_that_are_built_once() -> None:
    assert chosen(serve(plan(1000, 1, "max", queries=200)))["max"] == "blocks"
    assert chosen(serve(plan(1000, 1, "sum", queries=200)))["int_sum"] == "prefix"


def test_speeds_decide() -> None:
    slow, fast = Speed(passed=100.0), Speed(passed=1.0)
    speeds = {o: dict.fromkeys(of, slow) for o, of in DEFAULT_SPEEDS.items()}
    for name in DEFAULT_SPEEDS["max"]:
        served = serve(plan(8, 1, "max"), {**speeds, "max": {**speeds["max"], name: fast}})
        (most,) = (s for s in served.trees[0].serving if s.operator == "max")
        assert most.technique == name
        assert (most.next_nanoseconds or 0) == pytest.approx(100 * (most.nanoseconds or 0))


def test_what_is_counted() -> None:
    counts = Counts.of([Window(20 * SECOND, 2 * SECOND), Window(10 * SECOND, 5 * SECOND)], 1.0, 10.0)
    assert counts == Counts(kept=3.0, passed=5.0, combined=20 / 2 + 10 / 5, answers=0.7)
    assert counts.nanoseconds(Speed(1, 10, 100, 1000)) == pytest.approx(3 + 50 + 1200 + 700)


@pytest.mark.parametrize("technique", list(TECHNIQUES))
def test_a_technique_that_is_asked_for_serves_what_it_can(technique: str) -> None:
    served = chosen(serve(plan(9, 2, "max", "sum", "stddev_samp", technique=technique)))
    assert served.keys() == {"int_sum", "float_sum", "max", "argmax_last", "moments_2"}
    for operator, name in served.items():
        assert name == technique if accepts(technique, operator) else name in OWN


def test_bounded_latency_never_waits_for_a_turn_of_stacks() -> None:
    assert chosen(serve(plan(9, 1, "max", "sum"), latency="bounded")) == {
        "int_sum": "slick_deque_inv",
        "float_sum": "daba",
        "max": "daba",
        "argmax_last": "daba",
    }
    with pytest.raises(BadLatency, match="there is no latency 'low'; choose one of batch, bounded"):
        checked_latency("low")


def test_explain_says_who_serves_and_by_how_much() -> None:
    some = plan(500, 1, "sum", queries=100)
    default, measured = serve(some), serve(some, DEFAULT_SPEEDS)
    text = explain(default)
    assert "counts and sums of integers by prefix" in text
    assert "by weft's default speeds" in text
    assert "measured here" in explain(measured)
    served = to_json(measured)["trees"][0]["serving"]
    assert {s["operator"] for s in served} == {"int_sum", "float_sum"}
    assert all(s["nanoseconds"] <= s["next_nanoseconds"] for s in served)


def test_speeds_are_kept_and_a_torn_file_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "calibration.json"
    assert load_speeds(file) is None
    save_calibration(Calibration(speeds=DEFAULT_SPEEDS), file)
    assert load_speeds(file) == DEFAULT_SPEEDS
    incomplete = '{"version": 1, "speeds": {"max": {"panes": {"build": 1}}}}'
    for broken in ("{", "5", incomplete, file.read_text().replace("panes", "pains")):
        file.write_text(broken)
        with pytest.raises(BadCalibration, match="run `weft calibrate` again"):
            load_speeds(file)
