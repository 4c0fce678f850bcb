"""The page of a running service with many queries, in a real browser: when its picture is there, and how it moves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from weft.model import WeftError
from weft_bench.benchmark import Benchmark, Report, Row, Say, option
from weft_bench.machine import describe_machine, load

if TYPE_CHECKING:
    from playwright.sync_api import Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

SUMMARY = {
    "first_picture_ms": "from asking for the page to the plan's first drawing, the median of three",
    "page_bytes": "files of the page, in bytes",
    "plan_frames_per_second": "frames per second while the pointer moves over the plan",
    "plan_longest_ms": "the longest time between two of them",
    "answers_frames_per_second": "frames per second while answers come and are drawn",
    "answers_longest_ms": "the longest time between two of them",
    "answers_per_second": "answers that the job gave a second meanwhile",
}

FRAMES = """async (seconds) => {
  const times = [];
  const end = performance.now() + 1000 * seconds;
  await new Promise((done) => {
    const tick = (now) => { times.push(now); if (now < end) requestAnimationFrame(tick); else done(); };
    requestAnimationFrame(tick);
  });
  return times;
}"""


class NoBrowser(WeftError):
    """There is no browser for the page."""


class ServiceDidNotStart(WeftError):
    """The service did not start."""


@dataclass(frozen=True, slots=True)
class PageSettings:
    queries: int = option(1_000, "Queries in the job.", quick=200)
    rate: int = option(1_000, "Rows per second.")
    seconds: int = option(10, "How long frames are counted, in each view.", quick=4)


def run(settings: PageSettings, say: Say) -> Report:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None or find_spec("playwright") is None:
        raise NoBrowser("weft bench page needs a browser: pip install playwright, apt-get install chromium")
    from playwright.sync_api import sync_playwright

    say(f"  starting a service with {settings.queries} queries")
    rows: list[Row] = []
    with serving(settings) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        firsts = []
        for _ in range(3):
            page = browser.new_page()
            firsts.append(_first_picture(page, url))
            page.close()
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{url}/#/")
        page.wait_for_selector(".saved:has-text('sharing saves')")
        say("  counting frames over the plan")
        rows.append({"view": "plan", "load": load(), **_frames(page, settings.seconds, _wander(page))})
        page.goto(f"{url}/#/answers")
        page.wait_for_selector("article p:has-text('answers up to batch')", timeout=120_000)
        say("  counting frames while answers come")
        before = _answers(page)
        rows.append({"view": "answers", "load": load(), **_frames(page, settings.seconds, iter(()))})
        answered = _answers(page) - before
        size = page.evaluate("performance.getEntriesByType('resource').filter(r => r.name.includes('/page/'))"
                             ".reduce((sum, r) => sum + r.decodedBodySize, 0)")  # fmt: skip
        browser.close()
    plan, answers = rows
    summary = {
        "first_picture_ms": sorted(firsts)[1],
        "page_bytes": size,
        "plan_frames_per_second": plan["frames_per_second"],
        "plan_longest_ms": plan["longest_ms"],
        "answers_frames_per_second": answers["frames_per_second"],
        "answers_longest_ms": answers["longest_ms"],
        "answers_per_second": answered / settings.seconds,
    }
    return Report("page", describe_machine(), asdict(settings), rows, summary)


def _first_picture(page: Page, url: str) -> float:
    page.goto(url)
    page.wait_for_selector(".saved:has-text('sharing saves')")
    page.wait_for_timeout(200)
    return float(page.evaluate("performance.getEntriesByName('picture')[0].startTime"))


def _wander(page: Page) -> Iterator[None]:
    """The pointer goes over the picture, up and down and to the right."""
    box = page.locator(".picture canvas").bounding_box()
    assert box is not None
    step = 0
    while True:
        x, y = (step * 7) % box["width"], (step * 11) % min(box["height"], 600)
        page.mouse.move(box["x"] + x, box["y"] + y)
        step += 1
        yield


def _frames(page: Page, seconds: int, moving: Iterator[None]) -> Row:
    page.evaluate(f"window.frames_seen = ({FRAMES})({seconds}); undefined")
    deadline = page.evaluate("performance.now()") + 1000 * seconds
    for _ in moving:
        if page.evaluate("performance.now()") >= deadline:
            break
    times = page.evaluate("window.frames_seen")
    gaps = sorted(after - before for before, after in pairwise(times))
    return {
        "frames": len(times),
        "frames_per_second": 1000 * len(gaps) / (times[-1] - times[0]),
        "middle_ms": gaps[len(gaps) // 2],
        "p95_ms": gaps[int(0.95 * len(gaps))],
        "longest_ms": gaps[-1],
    }


def _answers(page: Page) -> int:
    return int(page.evaluate("fetch('/status?brief=true').then(r => r.json()).then(s => s.answers)"))


@contextmanager
def serving(settings: PageSettings) -> Iterator[str]:
    """`weft serve` in a process of its own; its address."""
    folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    (folder / "queries.sql").write_text(queries(settings.queries))
    command = [
        sys.executable, "-m", "weft", "serve", str(folder / "queries.sql"), "--source", f"rate:{settings.rate}",
        "--event-time", "timestamp", "--watermark", "0 seconds", "--sink", "noop", "--checkpoint",
        str(folder / "state"), "--port", "0", "--json", "--max-queries", str(settings.queries),
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "WEFT_TOKEN"}
    log = (folder / "log").open("w")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first:
            raise ServiceDidNotStart(f"weft serve ended: {(folder / 'log').read_text().strip()[-500:]}")
        for line in process.stdout:  # progress, a batch a line
            if json.loads(line)["answers"]:
                break
        drained = threading.Thread(target=process.stdout.read, daemon=True)
        drained.start()
        yield str(json.loads(first)["url"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def queries(number: int) -> str:
    """Queries over Spark's rate source: five groupings, four filters, windows of many lengths."""
    keys = ("", "value % 7", "value % 10", "value % 100", "value % 3")
    filters = ("", " WHERE value % 2 = 0", " WHERE value % 5 = 1", " WHERE value % 10 < 3")
    texts = []
    for i in range(number):
        key, slide = keys[i % len(keys)], 1 + i % 12
        select, group = (f"{key} AS k, ", f"{key}, ") if key else ("", "")
        window = f"window(timestamp, '{slide * (1 + i % 9)} seconds', '{slide} seconds')"
        texts.append(
            f"CREATE VIEW q{i:04d} AS SELECT {select}window, count(*) AS n, max(value) AS top FROM stream"
            f"{filters[i // 5 % len(filters)]} GROUP BY {group}{window};"
        )
    return "\n".join(texts)


PAGE = Benchmark(
    name="page",
    about="the page of a service with a thousand queries in a real browser: its first picture, and frames per second",
    summary=SUMMARY,
    settings=PageSettings,
    run=run,
)
