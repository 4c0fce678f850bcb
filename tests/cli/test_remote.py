"""`weft add`, `pause`, `resume`, `drop`, `list` and `ask` against the running service."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tests.support.serving import Served
from weft.cli.app import app
from weft.cli.client import NoService, call
from weft.service import Server, Service, make_app, open_socket

pytestmark = [pytest.mark.spark, pytest.mark.slow]

runner = CliRunner()
LEAST = "CREATE VIEW least AS SELECT k, min(v) AS least FROM stream GROUP BY k, window(ts, '10 seconds', '5 seconds')"


@pytest.fixture(autouse=True)
def _url(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_URL", served.server.url)
    monkeypatch.delenv("WEFT_TOKEN", raising=False)


def test_queries_are_added_listed_and_dropped(served: Served) -> None:
    added = runner.invoke(app, ["add", LEAST, "--json"])
    assert (added.exit_code, json.loads(added.stdout)) == (0, {"added": ["least"]}), added.stderr
    listed = json.loads(runner.invoke(app, ["list", "--json"]).stdout)
    assert "least" in [query["name"] for query in listed]
    table = runner.invoke(app, ["list"]).stdout
    assert "least" in table
    assert "by_key" in table
    dropped = runner.invoke(app, ["drop", "least"])
    assert (dropped.exit_code, dropped.stdout) == (0, "dropped least\n")
    assert "least" not in served.run.queries()


def test_queries_are_paused_and_resumed(served: Served) -> None:
    assert runner.invoke(app, ["add", LEAST.replace("least AS SELECT", "held AS SELECT")]).exit_code == 0
    served.write()
    paused = runner.invoke(app, ["pause", "held"])
    assert (paused.exit_code, paused.stdout) == (0, "paused held\n"), paused.stderr
    assert "held" not in served.run.queries()
    assert runner.invoke(app, ["list"]).stdout.splitlines()[-1] == "paused: held"
    resumed = runner.invoke(app, ["resume", "held", "--json"])
    assert (resumed.exit_code, json.loads(resumed.stdout)) == (0, {"resumed": ["held"]}), resumed.stderr
    assert "held" in served.run.queries()
    refused = runner.invoke(app, ["resume", "held"])
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (2, "no query held is paused")
    assert runner.invoke(app, ["drop", "held"]).exit_code == 0


def test_a_refusal_stands_under_the_word_that_is_wrong() -> None:
    sql = "SELECT k,\n  collect_list(v) AS x FROM stream GROUP BY k, window(ts, '2 seconds')"
    result = runner.invoke(app, ["add", "-"], input=sql)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert lines[0].startswith("line 2, column 3: ")
    at = lines[1].index("collect_list(v)")
    assert lines[2] == " " * at + "^" * len("collect_list(v)")
    assert lines[3]


def test_other_refusals_say_what_and_the_way_out() -> None:
    result = runner.invoke(app, ["drop", "nobody"])
    assert result.exit_code == 2
    assert result.stderr.startswith("there is no query nobody\nThere are by_key, high")


def test_a_question_is_answered_as_a_table_and_as_json(served: Served) -> None:
    sql = "SELECT k, count(*) AS n FROM stream GROUP BY k, window(ts, '10 seconds', '5 seconds')"
    found = json.loads(runner.invoke(app, ["ask", sql, "--json"]).stdout)
    assert len(found["rows"]) == served.run.ask(sql).num_rows > 0
    shown = runner.invoke(app, ["ask", sql]).stdout.splitlines()
    assert shown[0].split() == ["k", "n"]
    assert len(shown) == 1 + len(found["rows"])


def test_without_a_service_there_is_a_sentence() -> None:
    with open_socket("127.0.0.1", 0) as nobody:
        port = nobody.getsockname()[1]
        result = runner.invoke(app, ["list", "--url", f"http://127.0.0.1:{port}"])
    assert result.exit_code == 2
    assert "start one with weft serve" in result.stderr
    with pytest.raises(NoService, match="is not the address of a service"):
        call("localhost", "GET", "/queries")


def test_the_token_is_taken_from_the_environment(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(served.run, served.answers, served.limits)
    server = Server(make_app(service, "secret"), open_socket("127.0.0.1", 0))
    server.start()
    try:
        result = runner.invoke(app, ["list", "--url", server.url])
        assert (result.exit_code, result.stderr) == (2, "this needs a token\nSet WEFT_TOKEN to the token.\n")
        monkeypatch.setenv("WEFT_TOKEN", "secret")
        assert runner.invoke(app, ["list", "--url", server.url]).exit_code == 0
    finally:
        server.stop()
