"""The summary of `weft bench techniques`, with the findings of the dissertation and of this run side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from weft_bench.benchmark import Row

FLAT = (1 << 4, 1 << 20)
"""Windows over which a rate should be flat."""
BESIDE = ("touch", "subtraction", "compensated", "blocks, built")
"""Measured for comparison; none of them is a way to answer one query alone."""
AGGREGATES = ("int_sum", "float_sum", "max")

SUMMARY = {
    **{
        f"bulk_{a}_slides_per_second": f"{a} over a column, one core, the least over windows 2^4 to 2^20; bar 300 M"
        for a in AGGREGATES
    },
    **{f"bulk_{a}_technique": "the technique that did it" for a in AGGREGATES},
    **{f"bulk_{a}_flatness": "its slowest window over its fastest" for a in AGGREGATES},
    **{f"bulk_{a}_nanoseconds": "a slide, median over those windows" for a in AGGREGATES},
    "touch_nanoseconds": "of these, reading values, lo and hi and writing answers; the rest is the technique",
    "float_sum_over_subtraction": "rate of exact float sums over that of subtracting, median over windows",
    "compensated_over_subtraction": "the same for compensated sums, which do not recover from NaN either",
    "step_int_sum_slides_per_second": "one partial per call from compiled code, least over the windows; bar 60 M",
    "step_int_sum_technique": "the technique that did it",
    "step_max_slides_per_second": "the same for max",
    "step_max_technique": "the technique that did it",
    "step_daba_slides_per_second": "DABA, whose every step is short, max",
    "many_over_apart_int_sum": "answers per second of one SlickDeque over many single ones, partial by partial; bar 3",
    "many_over_apart_max": "the same for max",
    "many_over_apart_chunks_int_sum": "over single ones that each run alone over 4096 partials",
    "many_over_apart_chunks_max": "the same for max",
    **{f"groups_over_single_{a}": "slowest rate over many groups over that of one group; bar 0.8" for a in AGGREGATES},
    "findings": "for each figure what the dissertation found and what this run did",
    "answers_checked": "every technique gave what recomputing gave, before anything was timed",
}

Rates = dict[str, dict[int, float]]
"""Slides per second, by technique and window."""


def rates(rows: Sequence[Row], figure: str, aggregate: str, what: str = "slides_per_second") -> Rates:
    by_technique: Rates = {}
    for row in rows:
        if row["figure"] == figure and row["aggregate"] == aggregate:
            by_technique.setdefault(row["technique"], {})[row["window"]] = row[what]
    return by_technique


def within(by_window: Mapping[int, float]) -> list[float]:
    """The rates over the windows that should be flat; all of them, where none is among those."""
    return [r for w, r in by_window.items() if FLAT[0] <= w <= FLAT[1]] or list(by_window.values())


def steadiest(by_technique: Rates) -> str:
    """The technique whose slowest window is the fastest; one that was measured at every window."""
    longest = max(len(by_window) for by_window in by_technique.values())
    names = [n for n, by_window in by_technique.items() if n not in BESIDE and len(by_window) == longest]
    return max(names, key=lambda name: min(within(by_technique[name])))


def summarise(rows: Sequence[Row], checked: bool) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for aggregate in AGGREGATES:
        by_technique = rates(rows, "bulk", aggregate)
        name = steadiest(by_technique)
        flat = within(by_technique[name])
        summary[f"bulk_{aggregate}_slides_per_second"] = min(flat)
        summary[f"bulk_{aggregate}_technique"] = name
        summary[f"bulk_{aggregate}_flatness"] = min(flat) / max(flat)
        summary[f"bulk_{aggregate}_nanoseconds"] = 1e9 / median(flat)
        groups = {row["groups"]: row["slides_per_second"] for row in rows if _is(row, "groups", aggregate)}
        summary[f"groups_over_single_{aggregate}"] = min(r for g, r in groups.items() if g > 1) / groups[1]
    floats = rates(rows, "bulk", "float_sum")
    exact, plain = floats[summary["bulk_float_sum_technique"]], floats["subtraction"]
    summary["touch_nanoseconds"] = 1e9 / median(within(floats["touch"]))
    summary["float_sum_over_subtraction"] = median(exact[w] / plain[w] for w in plain)
    summary["compensated_over_subtraction"] = median(floats["compensated"][w] / plain[w] for w in plain)
    for figure, aggregate in (("23", "int_sum"), ("24", "max")):
        by_technique = rates(rows, figure, aggregate)
        name = steadiest(by_technique)
        summary[f"step_{aggregate}_slides_per_second"] = min(within(by_technique[name]))
        summary[f"step_{aggregate}_technique"] = name
        forms = {row["form"]: row["answers_per_second"] for row in rows if _is(row, "together", aggregate)}
        summary[f"many_over_apart_{aggregate}"] = forms["step"] / forms["apart"]
        summary[f"many_over_apart_chunks_{aggregate}"] = forms["step"] / forms["apart, chunks"]
    summary["step_daba_slides_per_second"] = min(within(rates(rows, "24", "max")["daba"]))
    return {**summary, "findings": findings(rows), "answers_checked": checked}


def _is(row: Row, figure: str, aggregate: str) -> bool:
    return bool(row["figure"] == figure and row["aggregate"] == aggregate)


def findings(rows: Sequence[Row]) -> list[dict[str, str]]:
    """A sentence of the dissertation, and the same sentence with the numbers of this run."""
    pairs = (*_throughput_findings(rows), *_latency_findings(rows), *_memory_findings(rows))
    return [{"figure": figure, "dissertation": theirs, "ours": ours} for figure, theirs, ours in sorted(pairs)]


Finding = tuple[str, str, str]
"""The figure, what the dissertation says, what this run says."""


def _throughput_findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    sums, maxima = rates(rows, "23", "int_sum"), rates(rows, "24", "max")
    all_sums, all_maxima = rates(rows, "25", "int_sum"), rates(rows, "26", "max")
    return (
        (
            "16",
            "FlatFIT's throughput is 1.8 times FlatFAT's on average, 2.6 at most; ahead from windows of 8 on",
            f"FlatFIT's is {_times(maxima, 'flat_fit', 'flat_fat')}; {_ahead(maxima, 'flat_fit', 'flat_fat')}",
        ),
        (
            "17, 18",
            "with all ranges at once FlatFIT's is 10 times FlatFAT's on average, 17 at most",
            f"FlatFIT's is {_times(all_maxima, 'flat_fit', 'flat_fat')}",
        ),
        (
            "23",
            "Sum: SlickDeque(Inv) is 15 % above the second best on average, from windows of 4 on",
            _lead(sums, "slick_deque_inv"),
        ),
        (
            "24",
            "Max: SlickDeque(Non-Inv) is 7 % above the second best on average, from windows of 16 on",
            _lead(maxima, "slick_deque_non_inv"),
        ),
        (
            "25",
            "Sum, all ranges: SlickDeque(Inv) is 45 % above the second best on average",
            _lead(all_sums, "slick_deque_inv"),
        ),
        (
            "26",
            "Max, all ranges: SlickDeque(Non-Inv) is 266 % above the second best on average",
            _lead(all_maxima, "slick_deque_non_inv"),
        ),
    )


def _latency_findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    waits = {row["technique"]: row for row in rows if row["figure"] == "27"}
    spikes = {name: row["maximum"] for name, row in waits.items()}
    calmest = min((n for n in spikes if not n.startswith("slick")), key=lambda n: spikes[n])
    deque = waits["slick_deque_non_inv"]
    ours = (
        f"median {deque['median']:.0f} ns, highest {deque['maximum']:.0f} ns for SlickDeque(Non-Inv); "
        f"DABA {waits['daba']['median']:.0f} and {spikes['daba']:.0f} ns; lowest spike of the others: {calmest}, "
        f"{spikes[calmest]:.0f} ns"
    )
    theirs = "SlickDeque has the lowest latency in every category, its highest spike below DABA's"
    return (("27, 28", theirs, ours),)


def _memory_findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    room = {n: fmean(v.values()) for n, v in _memory(rows).items()}
    return (
        (
            "19",
            "FlatFIT takes 1.4 times less memory than FlatFAT on average",
            f"FlatFAT's state is {room['flat_fat'] / room['flat_fit']:.2f} times FlatFIT's",
        ),
        (
            "29",
            "SlickDeque(Inv) takes as much memory as Panes, SlickDeque(Non-Inv) half of it on average",
            f"SlickDeque(Inv) {room['slick_deque_inv'] / room['panes']:.2f} times Panes, "
            f"SlickDeque(Non-Inv) {room['slick_deque_non_inv'] / room['panes']:.2f} times: room for the worst is kept",
        ),
    )


def _memory(rows: Sequence[Row]) -> Rates:
    by_technique: Rates = {}
    for row in rows:
        if row["figure"] == "29":
            by_technique.setdefault(row["technique"], {})[row["window"]] = row["bytes_per_partial"]
    return by_technique


def _times(by_technique: Rates, one: str, other: str) -> str:
    ratios = [rate / by_technique[other][window] for window, rate in by_technique[one].items() if window > 1]
    return f"{fmean(ratios):.1f} times on average, {max(ratios):.1f} at most"


def _ahead(by_technique: Rates, one: str, other: str) -> str:
    ahead = [window for window, rate in sorted(by_technique[one].items()) if rate > by_technique[other][window]]
    return f"ahead from windows of {ahead[0]} on" if ahead else "never ahead"


def _lead(by_technique: Rates, name: str) -> str:
    """Against the best of the others, window by window."""
    leads, rivals = [], []
    for window, rate in by_technique[name].items():
        others = {n: by_window[window] for n, by_window in by_technique.items() if n != name and window in by_window}
        rival = max(others, key=lambda n: others[n])
        leads.append(rate / others[rival] - 1)
        rivals.append(rival)
    second = max(set(rivals), key=rivals.count)
    direction = "above" if fmean(leads) >= 0 else "below"
    return f"{abs(fmean(leads)):.0%} {direction} the best of the others on average, which is mostly {second}"
