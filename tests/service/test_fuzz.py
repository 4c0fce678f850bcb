"""Whatever is sent, the service answers as its OpenAPI description says: no 500, no hang, and the job goes on."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.serving import Served

pytestmark = [pytest.mark.spark, pytest.mark.slow]

load_all_checks()
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
HANG_SECONDS = 60
STATEMENT = (
    "CREATE VIEW fuzzed AS SELECT k , count ( * ) AS n , avg ( v ) FROM stream WHERE v > 5 "
    "GROUP BY k , window ( ts , '10 seconds' , '5 seconds' ) HAVING max ( v ) > 1 FOR 8 HOURS"
)
ODD = [";", "NULL", "'", '"', "`", "--", "/*", "\x00", "é", "🙂", "-1", "1e999", "DISTINCT", "OVER"]
WORDS = [*STATEMENT.split(), *ODD]


def bounded(examples: int) -> settings:
    """The same examples in every run, generated only: what fails is not made smaller at the cost of minutes."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name.lower())
def test_every_route_answers_as_it_is_described(served: Served, mode: GenerationMode) -> None:
    description = schemathesis.openapi.from_url(f"{served.server.url}/openapi.json")
    operations = [found.ok() for found in description.get_all_operations()]
    assert len(operations) >= 16
    sent = 0
    for operation in operations:
        if mode is GenerationMode.NEGATIVE and not (operation.query or operation.headers or operation.body):
            continue  # nothing that could be wrong

        @bounded(12)
        @given(operation.as_strategy(generation_mode=mode), st.booleans())
        def answer(case: Any, known: bool) -> None:
            nonlocal sent
            leaves = case.method == "DELETE" or case.path.endswith("/pause")
            if known and not leaves and "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = "by_key"
            if case.path.endswith("/live"):  # which ends when it is told to
                case.query = {"seconds": "0.05", **(case.query or {})}
                if _number(case.query["seconds"]) > 0.05:
                    case.query["seconds"] = "0.05"
            case.call_and_validate(checks=CHECKS, timeout=HANG_SECONDS)
            sent += 1

        answer()
    assert sent > 80
    assert {"by_key", "high"} <= set(served.run.queries())
    assert served.client.get("/health/ready").status_code == 200


def _number(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return 0.0


@st.composite
def statements(draw: st.DrawFn) -> str:
    """A good statement, with some words left out, put in or changed."""
    words = STATEMENT.split()
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(words) - 1))
        words[at : at + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from(WORDS), max_size=2))
        words = words or [";"]
    return " ".join(words)


def test_any_statement_is_taken_or_refused_with_the_reason(served: Served) -> None:
    def send(path: str, sql: str) -> Any:
        return served.client.post(path, json={"sql": sql}, timeout=HANG_SECONDS)

    @bounded(60)
    @given(statements(), st.sampled_from(["/queries", "/ask"]))
    def try_one(sql: str, path: str) -> None:
        response = send(path, sql)
        assert response.status_code in (200, 201, 409, 422), (sql, response.text)
        if response.status_code >= 400:
            assert response.json()["what"], sql
        if response.status_code == 201:
            for name in response.json()["added"]:
                assert served.client.delete(f"/queries/{name}").status_code == 204, sql

    try_one()
    assert send("/queries", STATEMENT).status_code == 201, "the statement itself is good"
    assert served.client.delete("/queries/fuzzed").status_code == 204
    served.write()
    assert served.client.get("/health/ready").status_code == 200
