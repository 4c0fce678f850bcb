"""The page in a real browser, over a real run."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.browser import open_browser
from weft.service import AnswerBuffer, Limits, Server, Service, make_app, open_socket
from weft.spark import weave

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BEGIN = 1_709_251_200_000_000
KEYS = 250
SCHEMA = "ts TIMESTAMP, k STRING, v INT"
QUERIES = """
CREATE VIEW each AS SELECT k, window, count(*) AS n, avg(v) AS mean FROM stream GROUP BY k, window(ts, '1 second');
CREATE VIEW all_of_them AS SELECT window, sum(v) AS total FROM stream GROUP BY window(ts, '5 seconds', '1 second');
CREATE VIEW high AS SELECT max(v) AS top, window FROM stream WHERE v > 5 GROUP BY window(ts, '8 seconds', '4 seconds');
"""
TOKEN = "of-the-page"


@dataclass
class Shown:
    """A run over files of four seconds, each of which brings a thousand answers of `each`."""

    folder: Path
    run: Any
    service: Service
    url: str
    written: int = 0

    def write(self) -> None:
        i, n = self.written, 4 * KEYS
        times = [BEGIN + (i * n + j) * 4_000_000 // n for j in range(n)]
        table = pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "k": [f"k{j % KEYS:03d}" for j in range(n)],
                "v": pa.array([(j * 37 + i) % 100 for j in range(n)], pa.int32()),
            }
        )
        pq.write_table(table, self.folder / "new.parquet")
        os.utime(self.folder / "new.parquet", (1_700_000_000 + i, 1_700_000_000 + i))
        (self.folder / "new.parquet").rename(self.folder / "rows" / f"{i:04d}.parquet")
        self.written += 1
        self.run.query.processAllAvailable()

    def answers(self, name: str) -> int:
        return int(self.run.metrics()["answers_by_query"].get(name, 0))


@pytest.fixture(scope="module")
def shown(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("shown")
    (folder / "rows").mkdir()
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    answers = AnswerBuffer(rows=2000)
    run = weave(stream, QUERIES, retention="1 minute").start(sink="noop", checkpoint=folder / "state", listener=answers)
    service = Service(run, answers, Limits())
    server = Server(make_app(service), open_socket("127.0.0.1", 0))
    server.start()
    one = Shown(folder, run, service, server.url)
    one.write()
    yield one
    server.stop()
    run.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as found:
        yield found


@dataclass
class Opened:
    page: Any
    url: str
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def go(self, view: str = "") -> Any:
        self.page.goto(f"{self.url}/#/{view}")
        self.page.wait_for_selector("#health.good")
        return self.page


@pytest.fixture
def opened(shown: Shown, browser: Any) -> Iterator[Opened]:
    """A page that must not complain: no error, nothing that its own policy forbids."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    found = Opened(context.new_page(), shown.url)
    watch(found)
    yield found
    context.close()
    assert not found.complaints
    assert found.hosts == {urlsplit(shown.url).netloc}


def watch(found: Opened) -> None:
    found.page.set_default_timeout(20_000)
    found.page.on("console", lambda m: found.complaints.append(m.text) if m.type == "error" else None)
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.on("request", lambda request: found.hosts.add(urlsplit(request.url).netloc))


def painted(page: Any, canvas: str) -> int:
    """How many colours a canvas shows: more than one is a picture."""
    return int(
        page.locator(canvas).first.evaluate(
            "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
        )
    )


def shows(page: Any, wanted: Callable[[], bool]) -> None:
    """A page draws a moment after it was told to: look again until it is there."""
    deadline = time.monotonic() + 20
    while not wanted() and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert wanted()


def test_the_plan_is_a_picture_with_a_table_behind_it(opened: Opened, shown: Shown) -> None:
    page = opened.go()
    page.wait_for_selector(".saved:has-text('sharing saves')")
    shows(page, lambda: painted(page, ".picture canvas") > 20)
    page.get_by_text("The plan as a table").click()
    names = page.locator(".picture tbody a")
    shows(page, lambda: sorted(names.all_text_contents()) == sorted(shown.run.queries()))


def test_hovering_a_box_says_why(opened: Opened) -> None:
    page = opened.go()
    page.wait_for_selector(".tip strong")
    box = page.locator(".picture canvas").bounding_box()
    said = set()
    for share in (0.01, 0.24, 0.48, 0.71):
        for step in range(0, int(box["height"]), 12):
            page.mouse.move(box["x"] + box["width"] * share, box["y"] + step)
            said.add(page.locator(".tip").inner_text())
    assert {"stream", "pass", "tree", "query"} <= {text.split()[0] for text in said}
    assert any("says which of 1 distinct filters it passes" in text for text in said), "signatures are told"
    assert any(" by " in text and " ns, " in text for text in said), "and why a technique was chosen"


def test_the_plan_is_walked_by_keys_and_a_query_opens(opened: Opened) -> None:
    page = opened.go()
    page.wait_for_selector(".tip strong")
    page.locator(".picture canvas").focus()
    for head in ("pass", "tree", "query"):
        page.keyboard.press("ArrowRight")
        shows(page, lambda head=head: page.locator(".tip strong").text_content().split()[0] == head)
    page.wait_for_selector("#said:has-text('operations per second')", state="attached")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('each'), h1:has-text('all_of_them'), h1:has-text('high')")
    page.wait_for_selector("pre.sql .keyword:has-text('SELECT')")
    page.wait_for_selector("main:has-text('share of the cost')")


def test_a_thousand_answers_a_second_are_all_seen(opened: Opened, shown: Shown) -> None:
    page = opened.go("answers")
    page.wait_for_selector("article:has-text('each') .keys li")
    for _ in range(3):
        shown.write()
    seen = shown.answers("each")
    assert seen >= 3000
    told = f"{seen:,} answers up to batch"
    page.wait_for_selector(f"article[aria-label=each] p:has-text('{told}')")
    assert f"the 8 largest of {KEYS} groups" in page.locator("article[aria-label=each]").inner_text()
    shows(page, lambda: painted(page, "article[aria-label=each] canvas") > 20)
    page.locator("article[aria-label=each] summary").click()
    page.wait_for_selector("article[aria-label=each] tbody tr")
    cells = page.locator("article[aria-label=each] tbody tr").first.locator("td").all_text_contents()
    assert re.fullmatch(r"k\d{3}", cells[0])


def test_a_picture_that_is_held_stands_still_and_then_catches_up(opened: Opened, shown: Shown) -> None:
    page = opened.go("query/each")
    note = page.locator("article p")
    page.wait_for_selector("article p:has-text('answers up to batch')")
    page.get_by_label("Pause the chart of each").click()
    before, answered = note.text_content(), shown.answers("each")
    shown.write()
    page.wait_for_timeout(300)
    assert note.text_content() == before
    page.get_by_label("Pause the chart of each").click()
    # The page has seen what the service still kept when it was opened, and all that came since.
    seen = int(before.split()[0].replace(",", "")) + shown.answers("each") - answered
    page.wait_for_selector(f"article p:has-text('{seen:,} answers')")


REFUSED = "CREATE VIEW good AS SELECT max(v) AS top FROM stream GROUP BY window(ts, '5 seconds');\n\n"


@pytest.mark.parametrize(
    ("sql", "wrong"),
    [
        (f"{REFUSED}SELECT\n  collect_list(v) AS x FROM stream GROUP BY window(ts, '2 seconds')", "collect_list(v)"),
        (f"{REFUSED}SELECT k,\n  max(nothing) AS x FROM stream GROUP BY k, window(ts, '2 seconds')", "nothing"),
        (f"{REFUSED}SELECT max(v) AS x FROM other GROUP BY window(ts, '2 seconds')", "other"),
    ],
)
def test_a_refusal_stands_under_the_words_that_are_wrong(opened: Opened, sql: str, wrong: str) -> None:
    page = opened.page
    page.on("console", lambda m: opened.complaints.clear())  # the browser tells of every 422
    opened.go("queries")
    page.locator("#sql").fill(sql)
    page.wait_for_selector("#refusal .refusal")
    assert "".join(page.locator(".editor mark").all_text_contents()) == wrong
    line = sql[: sql.index(wrong)].count("\n") + 1
    assert page.locator("#refusal strong").text_content().startswith(f"Line {line},")
    assert page.locator("#sql").get_attribute("aria-invalid") == "true"


def test_a_query_is_priced_before_it_joins_and_can_be_dropped(opened: Opened, shown: Shown) -> None:
    page = opened.go("queries")
    page.locator("#sql").fill(
        "CREATE VIEW `a/b` AS SELECT window, min(v) AS least FROM stream GROUP BY window(ts, '5 seconds', '1 second')"
    )
    page.wait_for_selector("#preview:has-text('operations per second more')")
    assert "a/b shares tree" in page.locator("#preview").inner_text()
    assert page.locator(".editor .keyword").first.text_content() == "CREATE"
    assert "a/b" not in shown.run.queries()
    page.locator("#sql").press("Control+Enter")
    page.get_by_role("link", name="a/b").wait_for()
    assert "a/b" in shown.run.queries()
    shown.write()
    page.get_by_label("Find").fill("a/b")
    shows(page, lambda: page.locator("main tbody tr").count() == 1)
    page.get_by_label("Drop a/b").click()
    page.get_by_label("Drop a/b: sure?").click()
    page.get_by_role("link", name="a/b").wait_for(state="detached")
    assert "a/b" not in shown.run.queries()
    shown.write()
    page.goto(f"{opened.url}/#/batches")
    page.wait_for_selector("main td:has-text('dropped a/b')")
    canvases = page.locator("article canvas")
    shows(page, lambda: all(canvases.nth(i).evaluate("c => c.width > 0") for i in range(6)))
    page.get_by_text("Batches as a table").click()
    page.locator("details tbody tr").nth(shown.written - 1).wait_for()  # filled when it has opened


def test_a_query_is_paused_and_resumed(opened: Opened, shown: Shown) -> None:
    shown.run.add("CREATE VIEW held AS SELECT k, window, max(v) AS top FROM stream GROUP BY k, window(ts, '2 seconds')")
    shown.write()
    page = opened.go("query/held")
    page.get_by_label("Pause held", exact=True).click()
    page.wait_for_selector("main h1:has-text('Queries')")
    page.get_by_label("Resume held").wait_for()
    assert "held" not in shown.run.queries()
    shows(page, lambda: page.get_by_role("link", name="held").count() == 0)
    shown.write()
    answered = shown.answers("held")
    shown.write()
    assert shown.answers("held") == answered, "it answers nothing while it is paused"
    page.get_by_label("Resume held").click()
    page.get_by_role("link", name="held").wait_for()
    assert "held" in shown.run.queries()
    shows(page, lambda: page.get_by_label("Resume held").count() == 0)
    shown.write()
    shown.write()
    assert shown.answers("held") > answered
    shown.run.drop("held")


def test_with_a_token_the_page_asks_for_it(shown: Shown, browser: Any) -> None:
    server = Server(make_app(shown.service, TOKEN), open_socket("127.0.0.1", 0))
    server.start()
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.goto(server.url)
        page.locator("#token").fill("wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("#token-why:has-text('token is wrong')")
        page.locator("#token").fill(TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_selector(".saved:has-text('sharing saves')")
        assert page.evaluate("sessionStorage.getItem('weft-token')") == TOKEN
        page.goto(f"{server.url}/#/answers")
        page.wait_for_selector("article p:has-text('answers up to batch')")
    finally:
        context.close()
        server.stop()


def test_light_and_dark_follow_the_system_until_somebody_chooses(opened: Opened) -> None:
    page = opened.go()
    colour = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(colour)
    assert light != dark
    page.locator("#theme").click()
    assert (page.locator("#theme").text_content(), page.evaluate(colour)) == ("Theme: light", light)
    page.reload()
    page.wait_for_selector("#theme:has-text('light')")
    assert page.evaluate(colour) == light


@pytest.mark.parametrize("view", ["", "answers", "queries", "batches", "query/each"])
def test_every_view_fits_a_phone_and_can_be_read_aloud(opened: Opened, view: str) -> None:
    page = opened.page
    page.set_viewport_size({"width": 390, "height": 800})
    opened.go(view)
    page.wait_for_selector("main h1")
    page.wait_for_timeout(400)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for role in ("banner", "navigation", "main"):
        assert page.get_by_role(role).count() == 1
    assert page.locator("main h1").count() == 1
    nameless = page.evaluate(
        """[...document.querySelectorAll('main button, main input, main select, main textarea, main canvas')]
           .filter((e) => !e.hidden && !e.ariaLabel && !e.labels?.length && !e.textContent.trim())
           .map((e) => e.outerHTML)"""
    )
    assert nameless == []


def test_the_files_of_the_page_are_small_and_bring_no_script_of_others(shown: Shown) -> None:
    with httpx.Client(base_url=shown.url, trust_env=False) as client:
        first = client.get("/")
        assert first.headers["content-type"] == "text/html; charset=utf-8"
        policy = first.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert client.get("/", headers={"If-None-Match": first.headers["etag"]}).status_code == 304
        assert client.get("/page/none.js").status_code == 404
        files = {path: client.get(path).text for path in set(re.findall(r"/page/[a-z.]+", first.text))}
        imported = {f"/page/{n}" for text in files.values() for n in re.findall(r'from "\./([a-z]+\.js)"', text)}
        assert imported <= files.keys(), "every module is asked for at once"
        assert 50_000 < sum(map(len, files.values())) < 1_000_000
