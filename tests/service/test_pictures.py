"""The pictures of the docs: the demo's hundred queries on the page, made when WEFT_PICTURES is set."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.browser import open_browser
from weft.demo import query_text
from weft.demo.trades import DELAY, Trades
from weft.service import AnswerBuffer, Limits, Server, Service, make_app, open_socket
from weft.spark import weave

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        "WEFT_PICTURES" not in os.environ,
        reason="WEFT_PICTURES=1 make test-slow makes the pictures of the docs",
    ),
]

FOLDER = ROOT / "docs" / "pictures"
LARGEST = 300_000
REFUSED = """CREATE VIEW everything AS
SELECT symbol, collect_list(price) AS prices
FROM trades GROUP BY symbol, window(ts, '1 minute', '10 seconds')"""


@pytest.fixture(scope="module")
def url(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    trades = Trades(rate=2_000).opened_at(time.time_ns() // 1000).live(spark)
    answers = AnswerBuffer()
    job = weave(trades, query_text(), watermark=DELAY, strategy="weave_share", rate=2_000)
    folder = tmp_path_factory.mktemp("pictures")
    run = job.start(sink="noop", checkpoint=folder / "state", trigger="1 second", listener=answers)
    server = Server(make_app(Service(run, answers, Limits())), open_socket("127.0.0.1", 0))
    server.start()
    deadline = time.monotonic() + 120
    while len(run.batches()) < 12 and time.monotonic() < deadline:
        time.sleep(1)
    yield server.url
    server.stop()
    run.stop()


def test_the_pictures_of_the_docs(url: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 1180, "height": 860}, color_scheme="light")
        page.set_default_timeout(60_000)
        page.goto(f"{url}/#/")
        page.wait_for_selector(".saved:has-text('sharing saves')")
        save(page, "plan", whole=True)
        page.goto(f"{url}/#/answers")
        page.wait_for_selector("article p:has-text('answers up to batch')")
        save(page, "answers")
        page.goto(f"{url}/#/queries")
        page.locator("#sql").fill(REFUSED)
        page.wait_for_selector("#refusal .refusal")
        save(page, "refusal")
        page.emulate_media(color_scheme="dark")
        page.goto(f"{url}/#/batches")
        page.wait_for_selector("main td")
        save(page, "batches")
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(f"{url}/#/query/vwap_10s")
        page.wait_for_selector("article p:has-text('answers up to batch')")
        save(page, "phone")


def save(page: Any, name: str, *, whole: bool = False) -> None:
    """What the window shows, or the whole page."""
    page.wait_for_timeout(1500)
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path, full_page=whole)
    assert path.stat().st_size < LARGEST
