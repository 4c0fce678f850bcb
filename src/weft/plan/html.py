"""A plan as one HTML page: a diagram from stream to queries, and the numbers below it. Needs only a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from itertools import pairwise

from weft.plan import format
from weft.plan.attribution import pass_cost, query_costs
from weft.plan.logical import Plan

COLUMNS = (20, 250, 500, 750)
"""The x positions of stream, feeds, trees and queries, in pixels."""
BOX_WIDTH = 14
PAGE_WIDTH = 1180
ROW = 22
"""Height of a query: room for its label."""
WIDEST_BAND = 18
"""The band of the most expensive query, in pixels; all others in proportion, but never thinner than one pixel."""

STYLE = """
.weft-plan { color-scheme: light dark; --ink: #1c2330; --dim: #667085; --page: #fcfcfa; --line: #dcdfe4;
  --stream: #44506b; --feed: #2f7f86; --tree: #b4672b; --query: #7656a5;
  background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { .weft-plan { --ink: #e6e8ec; --dim: #98a2b3; --page: #14171d; --line: #343a46;
  --stream: #93a1c2; --feed: #5bb5bd; --tree: #e09a60; --query: #ab8fd8; } }
.weft-plan h1 { font-size: 1.3rem; margin: 0; } .weft-plan h2 { font-size: 1.1rem; margin: 1.5rem 0 0; }
.weft-plan p { margin: .3rem 0 1.2rem; color: var(--dim); }
.weft-plan svg { width: 100%; height: auto; } .weft-plan svg text { font-size: 12px; fill: var(--ink); }
.weft-plan svg .dim { fill: var(--dim); } .weft-plan .stream { fill: var(--stream); }
.weft-plan .feed { fill: var(--feed); } .weft-plan .tree { fill: var(--tree); }
.weft-plan .query { fill: var(--query); }
.weft-plan .band { fill: none; stroke-opacity: .35; } .weft-plan .band.feed { stroke: var(--feed); }
.weft-plan .band.tree { stroke: var(--tree); } .weft-plan .band.query { stroke: var(--query); }
.weft-plan .wide { overflow-x: auto; }
.weft-plan table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
.weft-plan th, .weft-plan td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
.weft-plan th { color: var(--dim); font-weight: 500; } .weft-plan .n { text-align: right; white-space: nowrap; }
"""
"""All rules are under one class, so that they do not change the rest of a notebook."""

PAGE_STYLE = "body { margin: 2rem auto; max-width: 1180px; padding: 0 1rem; }"


@dataclass(frozen=True, slots=True)
class _Box:
    """A box of the diagram: the rows of its queries, and their total cost."""

    kind: str
    first: int
    last: int
    cost: Fraction
    label: str
    note: str = ""

    @property
    def middle(self) -> float:
        return (self.first + self.last + 1) * ROW / 2


def to_html(plan: Plan, more: str = "") -> str:
    """A complete page without scripts or external files. `more` is appended at its end."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>weft plan: {len(plan.workload)} queries, {len(plan.trees)} trees</title>\n"
        f'<style>{STYLE}{PAGE_STYLE}</style></head><body class="weft-plan">\n'
        f"{_said(plan)}{_picture(plan)}\n{_table(plan)}\n{more}</body></html>\n"
    )


def to_fragment(plan: Plan) -> str:
    """The same as a fragment for a notebook, with the table collapsed."""
    return (
        f'<div class="weft-plan"><style>{STYLE}</style>\n{_said(plan)}{_picture(plan)}\n'
        f"<details><summary>{_count(len(plan.workload), 'query', 'queries')} as a table</summary>\n"
        f"{_table(plan)}</details></div>\n"
    )


def _said(plan: Plan) -> str:
    saves = format.saving(plan.cost_high or plan.cost, plan.unshared)
    refused = ""
    if plan.refused is not None:
        refused = (
            f" Closest merge left: tree {plan.refused.left + 1} with tree {plan.refused.right + 1}, "
            f"for {format.amount(plan.refused.cost)} ops/s in all."
        )
    return (
        f"<h1>{_count(len(plan.workload), 'query', 'queries')}, {_count(len(plan.trees), 'tree', 'trees')}, "
        f"{_count(len(plan.feeds), 'pass over the rows', 'passes over the rows')}</h1>\n"
        f"<p>{escape(plan.strategy)} at {format.number(plan.rate)} rows/s "
        f"costs {format.between(plan.cost, plan.cost_high)} ops/s; "
        f"unshared {format.amount(plan.unshared)}; saves {saves}.{refused}</p>\n"
        f"{_guarantee(plan)}"
    )


def _guarantee(plan: Plan) -> str:
    return "".join(f"<p>{escape(word.capitalize())}: {escape(text)}.</p>\n" for word, text in format.guarantee(plan))


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _picture(plan: Plan) -> str:
    """Boxes in four columns; the width of a band is proportional to its cost."""
    stream, feeds, trees, queries = _boxes(plan)
    highest_cost = max(box.cost for box in queries) or Fraction(1)
    height = len(plan.workload) * ROW + 30
    parts = [f'<svg viewBox="0 0 {PAGE_WIDTH} {height}" role="img" aria-label="Stream, passes, trees and queries">']
    parts += [
        f'<text class="dim" x="{x}" y="14">{word}</text>'
        for x, word in zip(COLUMNS, ("stream", "passes over rows", "trees", "queries"))
    ]
    parts.append('<g transform="translate(0 24)">')
    levels = ([stream], feeds, trees, queries)
    for column, (parents, children) in enumerate(pairwise(levels)):
        parts += [_band(column, _parent(child, parents), child, highest_cost) for child in children]
    for x, boxes in zip(COLUMNS, levels):
        parts += [_box(x, box, highest_cost) for box in boxes]
    return "\n".join([*parts, "</g></svg>"])


def _boxes(plan: Plan) -> tuple[_Box, list[_Box], list[_Box], list[_Box]]:
    costs = query_costs(plan)
    feeds: list[_Box] = []
    trees: list[_Box] = []
    queries: list[_Box] = []
    for feed_number, feed in enumerate(plan.feeds, 1):
        first_of_feed = len(queries)
        for index in feed.trees:
            tree, first = plan.trees[index], len(queries)
            for name in tree.queries:
                note = _window(plan, name)
                queries.append(_Box("query", len(queries), len(queries), costs[name], name, note))
            cost = sum((costs[name] for name in tree.queries), Fraction(0))
            note = format.slices(tree.edge_rate, tree.edge_rate_high)
            trees.append(_Box("tree", first, len(queries) - 1, cost, f"tree {index + 1}", note))
        cost = sum((box.cost for box in queries[first_of_feed:]), Fraction(0))
        keys = f"by {', '.join(feed.keys)}" if feed.keys else "no keys"
        feeds.append(_Box("feed", first_of_feed, len(queries) - 1, cost, f"pass {feed_number}", keys))
    stream = _Box("stream", 0, len(queries) - 1, plan.cost, "", f"{format.number(plan.rate)} rows/s")
    return stream, feeds, trees, queries


def _parent(child: _Box, parents: list[_Box]) -> _Box:
    return next(box for box in parents if box.first <= child.first <= box.last)


def _width(cost: Fraction, highest_cost: Fraction) -> float:
    return max(1.0, float(cost / highest_cost) * WIDEST_BAND)


def _band(column: int, parent: _Box, child: _Box, highest_cost: Fraction) -> str:
    begin, end = COLUMNS[column] + BOX_WIDTH, COLUMNS[column + 1]
    # A band leaves its parent at the child's share of the parent's height, so that bands do not cross.
    span = max(parent.last - parent.first + 1, 1)
    rows = (child.first + child.last + 1) / 2 - parent.first
    tall = min(_tall(parent, highest_cost), span * ROW)
    y = parent.middle - tall / 2 + tall * rows / span
    bend = (begin + end) / 2
    wide = min(_width(child.cost, highest_cost), (child.last - child.first + 1) * ROW * 0.9)
    path = f"M{begin} {y:.1f} C{bend:.0f} {y:.1f} {bend:.0f} {child.middle:.1f} {end} {child.middle:.1f}"
    return f'<path class="band {child.kind}" d="{path}" stroke-width="{wide:.1f}"/>'


def _tall(box: _Box, highest_cost: Fraction) -> float:
    return max(6.0, min(_width(box.cost, highest_cost), (box.last - box.first + 1) * ROW - 4.0))


def _box(x: int, box: _Box, highest_cost: Fraction) -> str:
    tall = _tall(box, highest_cost)
    label = f'{escape(box.label)} <tspan class="dim">{escape(box.note)}</tspan>'
    return (
        f"<g><title>{escape(box.label or 'stream')}: {format.amount(box.cost)} ops/s</title>"
        f'<rect class="{box.kind}" x="{x}" y="{box.middle - tall / 2:.1f}" width="{BOX_WIDTH}" height="{tall:.1f}"/>'
        f'<text x="{x + BOX_WIDTH + 6}" y="{box.middle + 4:.1f}">{label}</text></g>'
    )


def _window(plan: Plan, name: str) -> str:
    query = plan.workload.by_name[name]
    aggregates = format.calls(query)
    short = aggregates if len(aggregates) <= 28 else f"{aggregates[:27]}\u2026"
    return f"{short}, {format.duration(query.shown.length)} every {format.duration(query.shown.slide)}"


def _table(plan: Plan) -> str:
    head = "".join(f"<th>{word}</th>" for word in ("query", "aggregates", "window", "", "tree"))
    numbers = "".join(f'<th class="n">{word}</th>' for word in ("slices/s", "ops/s"))
    rows = "\n".join(_rows(plan))
    return f'<div class="wide"><table><thead><tr>{head}{numbers}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'


def _rows(plan: Plan) -> Iterator[str]:
    costs = query_costs(plan)
    for feed in plan.feeds:
        feeds = f"pass {format.amount(pass_cost(plan, feed))} ops/s"
        for index in feed.trees:
            tree = plan.trees[index]
            for name in tree.queries:
                query = plan.workload.by_name[name]
                window = f"{format.duration(query.shown.length)} every {format.duration(query.shown.slide)}"
                cells = (name, format.calls(query), window, format.extras(query))
                rate = format.slices(tree.edge_rate, tree.edge_rate_high).removesuffix(" slices/s")
                yield (
                    "<tr>"
                    + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
                    + f'<td title="{escape(tree.technique)}, {feeds}">{index + 1}</td>'
                    + f'<td class="n">{rate}</td>'
                    + f'<td class="n">{format.amount(costs[name])}</td></tr>'
                )
