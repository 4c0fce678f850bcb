"""Plans of fixture files: a strategy with a technique and a rate, queries, and how the plan explains itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.fixtures import read_cases
from weft.model import Workload
from weft.optimizer import optimize
from weft.plan import Plan, check_plan, explain
from weft.sql import parse

CASES = [case for file in sorted((Path(__file__).parent / "fixtures").glob("*.txt")) for case in read_cases(file)]


def planned(text: str) -> Plan:
    """The first line says how, as `-- weave_share with panes, 1.2 rows/s`."""
    how, _, queries = text.partition("\n")
    found = re.fullmatch(r"-- (\w+) with (\w+), (\S+) rows/s", how)
    assert found, how
    return optimize(Workload(parse(queries)), found[3], found[1], found[2])


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text.partition("\n")[0][3:] for text, _ in CASES])
def test_a_plan_explains_itself_as_its_fixture_says(text: str, expected: str) -> None:
    plan = planned(text)
    check_plan(plan)
    assert explain(plan) == expected
