"""The routes against a real run: what they answer, and how they refuse."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.serving import LIMITS, Served
from weft.service import AnswerBuffer, Limits, Service
from weft.service.errors import problem_of
from weft.service.limits import LimitReached

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MAXIMUM = "CREATE VIEW {name} AS SELECT k, max(v) AS top FROM stream GROUP BY k, window(ts, '10 seconds', '5 seconds')"

YEARS = "SELECT max(INTERVAL 1 YEAR) AS y FROM stream GROUP BY window(ts, '5 seconds')"
ENDLESS = "SELECT max(v) AS top FROM stream GROUP BY window(ts, '1000000 days', '1 microsecond')"


def refused(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    problem = response.json()
    assert problem.keys() == {"status", "what", "where", "way_out"}
    assert (problem["status"], bool(problem["what"]), bool(problem["way_out"])) == (status, True, True)
    return problem


def test_the_process_lives_and_the_stream_is_ready(served: Served) -> None:
    assert served.client.get("/health/live").json() == {"status": "live"}
    ready = served.client.get("/health/ready")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


def test_queries_join_change_and_leave(served: Served) -> None:
    added = served.client.post("/queries", json={"sql": MAXIMUM.format(name="top"), "for": "8 hours"})
    assert (added.status_code, added.json()) == (201, {"added": ["top"]})
    served.write()
    one = served.client.get("/queries/top").json()
    assert one["joined"]
    assert (one["range"], one["slide"], one["keys"]) == ("10 s", "5 s", ["k"])
    assert one["since"] > "2024-03-01T00:00:2"
    assert one["until"] > "2024-03-01T08:00:2"
    put = served.client.put("/queries/top", json={"sql": MAXIMUM.format(name="top") + " HAVING max(v) > 3"})
    assert put.status_code == 200, put.text
    assert "HAVING" in put.json()["sql"]
    names = [query["name"] for query in served.client.get("/queries").json()["queries"]]
    assert {"by_key", "high", "top"} <= set(names)
    assert served.client.delete("/queries/top").status_code == 204
    refused(served.client.get("/queries/top"), 404)
    reasons = [change["reason"] for change in served.client.get("/changes").json()["changes"]]
    assert reasons[0] == "woven"
    assert "added top" in reasons


def test_a_query_is_refused_with_the_word_that_is_wrong(served: Served) -> None:
    sql = "SELECT k,\n  max(nothing) AS x FROM stream GROUP BY k, window(ts, '2 seconds')"
    problem = refused(served.client.post("/queries", json={"sql": sql}), 422)
    assert "nothing" in problem["what"]
    sql = "SELECT k,\n  collect_list(v) AS x FROM stream GROUP BY k, window(ts, '2 seconds')"
    where = refused(served.client.post("/queries", json={"sql": sql}), 422)["where"]
    assert (where["line"], where["column"]) == (2, 3)
    assert where["snippet"].splitlines()[1].strip() == "^" * len("collect_list(v)")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "says"),
    [
        ("POST", "/queries", {"sql": ""}, 422, "no query here"),
        ("POST", "/queries", {"sql": "/etc/queries.sql"}, 422, "SELECT"),
        ("POST", "/queries", {"sql": "(" * 9000}, 422, ""),
        ("POST", "/queries", {"sql": "SELECT " + "(" * 900 + "1" + ")" * 900}, 422, ""),
        ("POST", "/queries", {"sql": "SELECT 1", "since": "ever"}, 422, "since"),
        ("POST", "/queries", {"sql": "SELECT 1", "more": 1}, 422, "more"),
        ("POST", "/queries", {}, 422, "sql"),
        ("POST", "/queries", {"sql": MAXIMUM.format(name="by_key")}, 409, "by_key already"),
        ("POST", "/queries", {"sql": MAXIMUM.format(name="soon"), "for": "soon"}, 409, "8 hours"),
        ("POST", "/queries", {"sql": MAXIMUM.format(name="soon"), "begin": "2026-01-01"}, 409, "source"),
        ("POST", "/queries", {"sql": ENDLESS}, 422, "longer slide"),
        ("PUT", "/queries/by_key", {"sql": ENDLESS}, 422, "longer slide"),
        ("POST", "/queries", {"sql": MAXIMUM.format(name="`a\nb`")}, 422, "be part of a URL"),
        ("POST", "/queries", {"sql": MAXIMUM.format(name="`..`")}, 422, "be part of a URL"),
        ("POST", "/queries", {"sql": MAXIMUM.format(name="x" * 300)}, 422, "at most 200 bytes"),
        ("POST", "/queries", {"sql": YEARS}, 422, ""),
        ("POST", "/ask", {"sql": ENDLESS}, 422, "longer slide"),
        ("POST", "/queries", {"sql": "x" * 30_000}, 413, "20000 bytes"),
        ("PUT", "/queries/by_key", {"sql": MAXIMUM.format(name="by_key")}, 409, "same columns"),
        ("PUT", "/queries/nobody", {"sql": "SELECT 1"}, 404, "no query nobody"),
        ("DELETE", "/queries/a%2Fb", None, 404, "no query a/b"),
        ("GET", "/queries/nobody/answers", None, 404, "no query nobody"),
        ("GET", "/queries/nobody/answers/live", None, 404, "no query nobody"),
        ("GET", "/queries/by_key/answers?limit=0", None, 422, "limit"),
        ("GET", "/plan?format=png", None, 422, "format"),
        ("GET", "/nowhere", None, 404, "Not Found"),
        ("PATCH", "/queries", None, 405, "Method Not Allowed"),
    ],
)
def test_what_cannot_be_is_refused_in_one_shape(
    served: Served, method: str, path: str, body: Any, status: int, says: str
) -> None:
    problem = refused(served.client.request(method, path, json=body), status)
    assert says in problem["what"] + problem["way_out"]


@pytest.mark.parametrize(
    "body", [rb'{"sql": "\ud800"}', rb'{"sql": "x", "begin": "\udfff"}', b'{"sql": "\xff"}', b"[" * 9000]
)
def test_a_body_that_is_no_text_is_refused(served: Served, body: bytes) -> None:
    response = served.client.post("/queries", content=body, headers={"Content-Type": "application/json"})
    refused(response, response.status_code)
    assert response.status_code in (400, 422)


def test_a_body_that_does_not_say_how_long_it_is_is_bounded_too(served: Served) -> None:
    parts = (b"x" * 1000 for _ in range(100))
    refused(served.client.post("/queries", content=parts, headers={"Content-Type": "application/json"}), 413)


def test_no_more_queries_join_than_may(served: Served) -> None:
    many = ";".join(MAXIMUM.format(name=f"many{i}") for i in range(12))
    problem = refused(served.client.post("/queries", json={"sql": many}), 409)
    assert "more than the 12" in problem["what"]
    assert "--max-queries" in problem["way_out"]


def test_no_query_joins_a_state_that_is_full(served: Served) -> None:
    full = Service(served.run, served.answers, Limits(state_bytes=1))
    with pytest.raises(LimitReached, match="--max-state") as refusal:
        full.add(MAXIMUM.format(name="large"))
    assert problem_of(refusal.value).status == 409


def test_the_plan_comes_as_json_text_and_page(served: Served) -> None:
    plan = served.client.get("/plan").json()
    assert {q["name"] for tree in plan["trees"] for q in tree["queries"]} >= {"by_key", "high"}
    assert served.client.get("/plan?format=text").text.startswith("Plan ")
    page = served.client.get("/plan?format=html")
    assert page.headers["content-type"].startswith("text/html")
    assert "<html" in page.text


def test_answers_are_those_of_the_sink(spark: Any, served: Served) -> None:
    served.write()
    found = served.client.get("/queries/by_key/answers", params={"limit": 1000}).json()
    assert [c["name"] for c in found["columns"]] == ["k", "start", "n", "mean"]
    shown = [row for batch in found["batches"] for row in batch["rows"]]
    assert 0 < len(shown) <= 50
    sink: pa.Table = spark.read.parquet(str(served.folder / "answers" / "by_key")).toArrow()
    written = {(r["k"], r["start"].strftime("%Y-%m-%dT%H:%M:%SZ"), r["n"], r["mean"]) for r in sink.to_pylist()}
    assert {tuple(row.values()) for row in shown} <= written
    newest = max(start for _, start, _, _ in written)
    assert newest in {row["start"] for row in shown}
    last = found["batches"][-1]["batch"]
    after = served.client.get("/queries/by_key/answers", params={"after": last - 1}).json()
    assert [b["batch"] for b in after["batches"]] == [last]
    few = served.client.get("/queries/by_key/answers", params={"limit": 2}).json()
    assert sum(len(b["rows"]) for b in few["batches"]) == 2


def test_a_question_is_answered_once_from_what_is_kept(served: Served) -> None:
    sql = "SELECT k, count(*) AS n FROM stream GROUP BY k, window(ts, '10 seconds', '5 seconds')"
    answer = served.client.post("/ask", json={"sql": sql})
    assert answer.status_code == 200, answer.text
    table = served.run.ask(sql)
    assert len(answer.json()["rows"]) == table.num_rows
    assert [c["name"] for c in answer.json()["columns"]] == ["k", "n"]
    assert "ask" not in served.run.queries()
    sql = "SELECT k, count(*) AS n FROM stream GROUP BY k, window(ts, '7 seconds', '1 second')"
    refused(served.client.post("/ask", json={"sql": sql}), 422)


def test_status_and_batches_say_where_the_job_stands(served: Served) -> None:
    status = served.client.get("/status").json()
    assert status["running"]
    assert status["rows"] == 40 * served.written
    assert status["state_bytes"] == sum(tree["state_bytes"] for tree in status["tree_states"]) > 0
    assert status["matched_by_query"]["by_key"] == status["rows"]
    batches = served.client.get("/batches", params={"limit": 2}).json()["batches"]
    assert [b["batch"] for b in batches] == [status["batch"] - 1, status["batch"]]
    assert {"native", "final"} <= batches[0]["phases"].keys()


def test_a_preview_prices_queries_and_changes_nothing(served: Served) -> None:
    before = served.client.get("/plan").json()
    other = "CREATE VIEW second AS SELECT k, sum(v) AS s FROM stream GROUP BY k, window(ts, '7 seconds', '3 seconds')"
    added = f"{MAXIMUM.format(name='first')}; {other}"
    found = served.client.post("/preview", json={"sql": added}).json()
    assert [query["name"] for query in found["queries"]] == ["first", "second"]
    assert found["queries"][0]["shares_with"] > 0, "by_key has this window too"
    assert found["cost_before"] == pytest.approx(before["cost"])
    assert found["more"] == pytest.approx(found["cost_after"] - found["cost_before"])
    assert 0 < found["more"] < found["alone"], "together they cost less than each by itself"
    assert served.client.get("/plan").json() == before
    joined = served.client.post("/queries", json={"sql": added})
    assert joined.json() == {"added": ["first", "second"]}
    assert served.client.get("/plan").json()["cost"] == pytest.approx(found["cost_after"])
    for name in ("first", "second"):
        served.client.delete(f"/queries/{name}")


GOOD = MAXIMUM.format(name="good")
OTHER = f"{GOOD};  SELECT max(v) AS x FROM other GROUP BY window(ts, '2 seconds')"


@pytest.mark.parametrize(
    ("sql", "status", "line", "column"),
    [
        (MAXIMUM.format(name="by_key"), 409, None, None),
        ("SELECT k,\n  collect_list(v) AS x FROM stream GROUP BY k, window(ts, '2 seconds')", 422, 2, 3),
        (f"{GOOD};\n\n  SELECT k,\n max(nothing) AS x FROM stream GROUP BY k, window(ts, '2 seconds')", 422, 4, 6),
        (OTHER, 422, 1, OTHER.index("other") + 1),
    ],
)
def test_a_preview_refuses_as_adding_would_and_at_the_same_place(
    served: Served, sql: str, status: int, line: int | None, column: int | None
) -> None:
    problems = [refused(served.client.post(path, json={"sql": sql}), status) for path in ("/preview", "/queries")]
    assert problems[0] == problems[1]
    where = problems[0]["where"]
    assert (where and where["line"], where and where["column"]) == (line, column)


def test_the_picture_has_every_query_under_its_tree_and_pass(served: Served) -> None:
    found = served.client.get("/picture").json()
    plan = served.client.get("/plan").json()
    trees = [tree for one in found["passes"] for tree in one["trees"]]
    assert {tree["tree"]: {q["name"] for q in tree["queries"]} for tree in trees} == {
        tree["tree"]: {q["name"] for q in tree["queries"]} for tree in plan["trees"]
    }
    assert sum(one["cost"] for one in found["passes"]) == pytest.approx(plan["cost"])
    assert {tuple(one["keys"]): one["filters"] for one in found["passes"]}[()] == 1
    assert found["saves"] == pytest.approx(1 - found["cost"] / found["unshared"])


def test_a_brief_status_leaves_out_what_is_told_of_each_query(served: Served) -> None:
    whole, brief = (served.client.get(f"/status{how}").json() for how in ("", "?brief=true"))
    assert whole["answers_by_query"]
    assert whole["tree_states"]
    assert (brief["answers_by_query"], brief["tree_states"]) == ({}, [])
    assert (brief["rows"], brief["state_bytes"]) == (whole["rows"], whole["state_bytes"])


def test_live_answers_of_some_queries(served: Served) -> None:
    with served.client.stream("GET", "/answers/live?query=high&query=high&after=-1&seconds=1") as response:
        text = response.read().decode()
    assert '"query":"high"' in text
    assert '"query":"by_key"' not in text
    ids = [line for line in text.splitlines() if line.startswith("id: ")]
    assert len(ids) == len(set(ids)), "a name that is given twice is followed once"
    refused(served.client.get("/answers/live?query=high&query=nobody"), 404)


def test_a_paused_query_costs_nothing_and_comes_back_from_what_is_kept(served: Served) -> None:
    client, run = served.client, served.run
    sql = "SELECT k, window, min(v) AS m FROM stream GROUP BY k, window(ts, '5 seconds')"
    (name,) = client.post("/queries", json={"sql": sql}).json()["added"]
    served.write()
    before = client.get("/picture").json()["unshared"]
    assert client.post(f"/queries/{name}/pause").status_code == 204
    assert name not in run.queries()
    assert client.get("/picture").json()["unshared"] < before
    assert client.get("/queries").json()["paused"] == [{"name": name, "sql": f"CREATE VIEW `{name}` AS {sql}"}]
    assert client.post(f"/queries/{name}/pause").status_code == 404
    again = Service(run, AnswerBuffer(), LIMITS)
    assert name in again.paused(), "a service that starts with the same checkpoint remembers it"
    assert client.post(f"/queries/{name}/resume").status_code == 204
    assert name in run.queries()
    assert client.get("/queries").json()["paused"] == []
    assert client.post(f"/queries/{name}/resume").status_code == 404
    served.write()
    assert run.since(name) is not None
    assert client.post(f"/queries/{name}/pause").status_code == 204
    assert client.delete(f"/queries/{name}").status_code == 204
    assert client.get("/queries").json()["paused"] == []
    served.write()
