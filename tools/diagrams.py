"""The diagrams of docs/architecture.md: how a row becomes an answer, and the import layers of `pyproject.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]

INK, EDGE, PAPER = "#1f2933", "#52606d", "#ffffff"
FILLS = {"plan": "#e6effa", "data": "#e9f5ec", "disk": "#fbf1dd", "layer": "#eef1f4"}
LINE_HEIGHT, TITLE_SIZE, TEXT_SIZE = 17, 14, 12


@dataclass(frozen=True, slots=True)
class Box:
    """A titled rectangle; `kind` chooses its fill."""

    x: int
    y: int
    width: int
    kind: str
    title: str
    lines: Sequence[str] = ()

    @property
    def height(self) -> int:
        return 26 + LINE_HEIGHT * len(self.lines)

    @property
    def middle(self) -> int:
        return self.x + self.width // 2

    @property
    def bottom(self) -> int:
        return self.y + self.height

    @property
    def right(self) -> int:
        return self.x + self.width

    def draw(self) -> str:
        shape = (
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="6" '
            f'fill="{FILLS[self.kind]}" stroke="{EDGE}"/>'
        )
        title = _text(self.middle, self.y + 18, self.title, TITLE_SIZE, "600")
        rest = [
            _text(self.middle, self.y + 18 + LINE_HEIGHT * number, line, TEXT_SIZE)
            for number, line in enumerate(self.lines, 1)
        ]
        return "\n".join([shape, title, *rest])


def row_to_answer() -> str:
    """Three columns: planning, the data of a micro-batch, and what the checkpoint keeps."""
    queries = Box(20, 50, 250, "plan", "queries", ("SQL text; weft import finds it in scripts",))
    parsed = Box(20, 140, 250, "plan", "sql/", ("ACQ: aggregates, filter, keys, window",))
    planned = Box(20, 230, 250, "plan", "optimizer/", ("Plan: trees, feeds, techniques, cost",))
    physical = Box(
        20, 320, 250, "plan", "spark/physical/",
        ("PhysicalPlan: signatures, filter classes,", "roll-ups, buckets; checked last"),
    )  # fmt: skip
    rows = Box(340, 50, 300, "data", "spark/sources/", ("rows (columns...)",))
    sliced = Box(
        340, 140, 300, "data", "spark/physical/ slicing, signature",
        ("sliced rows (feed, slice, signature,", "keys, arguments, event time)"),
    )  # fmt: skip
    partials = Box(
        340, 247, 300, "data", "spark/partial/",
        ("one native aggregation, then one shuffle", "partials (bucket, feed, slice,", "signature, keys, components)"),
    )  # fmt: skip
    final = Box(
        340, 371, 300, "data", "spark/final/ calls engine/",
        ("advance(state, partials, watermark)", "once per bucket, in executors"),
    )  # fmt: skip
    answers = Box(340, 478, 300, "data", "spark/sinks/", ("answers (one table per query)",))
    watermark = Box(700, 255, 250, "disk", "spark/execution/watermark", ("greatest event time - delay",))
    state = Box(700, 371, 250, "disk", "spark/checkpoint/ state_store", ("append-only Arrow segments", "per bucket"))
    record = Box(700, 478, 250, "disk", "spark/checkpoint/ batch_log", ("batches/b.json: the commit",))
    log = Box(20, 478, 250, "disk", "spark/checkpoint/ plan_log", ("plans/b.json, before batch b runs",))
    boxes = [
        queries, parsed, planned, physical, rows, sliced, partials, final, answers, watermark, state, record, log
    ]  # fmt: skip
    down = [
        *_chain(queries, parsed, planned, physical, log),
        *_chain(rows, sliced, partials, final, answers),
    ]
    across = [
        _arrow(physical.right, physical.y + 20, sliced.x, sliced.y + 40),
        _arrow(physical.right, physical.y + 35, partials.x, partials.y + 60),
        _arrow(partials.right, 281, watermark.x, 281),
        _path(f"M {watermark.middle} {watermark.bottom} L {watermark.middle} 340 L 600 340 L 600 {final.y}"),
        _arrow(final.right, 391, state.x, 391),
        _arrow(state.x, 414, final.right, 414),
        _arrow(answers.right, 499, record.x, 499),
    ]
    heads = [
        _text(145, 30, "planning, no JVM until spark/", TEXT_SIZE),
        _text(490, 30, "every micro-batch, in foreachBatch", TEXT_SIZE),
        _text(825, 30, "carried to the next batch", TEXT_SIZE),
    ]
    return _svg(960, 545, "How a row becomes an answer", [*heads, *(box.draw() for box in boxes), *down, *across])


def layers() -> str:
    """The layers that import-linter checks: each may import the ones below it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    stacks = [contract for contract in contracts if contract["type"] == "layers"]
    drawn: list[str] = []
    tallest = 0
    for column, contract in enumerate(stacks):
        left = 20 + column * 480
        names = [re.sub(r"weft\.(spark\.)?", "", layer).replace(":", "|") for layer in contract["layers"]]
        boxes = [Box(left, 50 + 48 * row, 440, "layer", name) for row, name in enumerate(names)]
        drawn += [_text(left + 220, 30, contract["name"], TITLE_SIZE, "600")]
        drawn += [box.draw() for box in boxes] + _chain(*boxes)
        tallest = max(tallest, boxes[-1].bottom)
    return _svg(480 * len(stacks), tallest + 20, "Import layers", drawn)


def _chain(*boxes: Box) -> list[str]:
    return [_arrow(above.middle, above.bottom, below.middle, below.y) for above, below in pairwise(boxes)]


def _arrow(x: int, y: int, to_x: int, to_y: int) -> str:
    return _path(f"M {x} {y} L {to_x} {to_y}")


def _path(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="{EDGE}" stroke-width="1.4" marker-end="url(#head)"/>'


def _text(x: int, y: int, text: str, size: int, weight: str = "400") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="middle" '
        f'fill="{INK}">{escape(text)}</text>'
    )


def _svg(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" role="img">'
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M 0 0 L 8 4 L 0 8 z" fill="{EDGE}"/></marker></defs>'
    )
    paper = f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", marker, paper, *parts, "</svg>"]) + "\n"
