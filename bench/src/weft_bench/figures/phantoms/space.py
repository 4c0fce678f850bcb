"""Paper 5, figures 15 and 23, tables 3 and 5: how far each division of the memory is from the best one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from weft.optimizer.phantoms import Configuration, GroupStatistics, allocate, configurations, parse, read
from weft_bench.benchmark import Row, Say
from weft_bench.figures.figure import Claim, Scale, mean
from weft_bench.figures.phantoms.setting import (
    PAIRS,
    PRICES,
    SINGLES,
    a_figure,
    a_setting,
    memories,
)

WAYS = ("sl", "sr", "pl", "pr")

TABLE_3 = {
    "sl": (1.024, 1.010, 1.004, 1.001, 1.001),
    "sr": (1.021, 1.017, 1.014, 1.011, 1.011),
    "pl": (1.083, 1.084, 1.085, 1.086, 1.092),
    "pr": (1.080, 1.105, 1.115, 1.119, 1.125),
}
TABLE_5 = {
    "sl": (1.038, 1.021, 1.011, 1.031, 1.001),
    "sr": (1.023, 1.033, 1.030, 1.027, 1.022),
    "pl": (1.097, 1.105, 1.107, 1.101, 1.092),
    "pr": (1.088, 1.122, 1.133, 1.132, 1.122),
}
"""Means for 20, 40, 60, 80 and 100 thousand units."""

ALL = "all"


def _relative(
    configuration: Configuration, statistics: GroupStatistics, memory: float, best: float, panel: str
) -> Iterable[Row]:
    for way in WAYS:
        cost = allocate(configuration, statistics, memory, PRICES, way).cost / best
        yield {"series": way.upper(), "memory": memory, "relative_cost": cost, "configuration": panel}


def _best(configuration: Configuration, statistics: GroupStatistics, memory: float) -> float:
    return allocate(configuration, statistics, memory, PRICES, "es").cost


def same_epoch(scale: Scale, say: Say) -> list[Row]:
    statistics = a_setting(scale, synthetic=False).statistics
    shown = [parse(text) for text in ("ABCD(AB BCD(BC BD CD))", "ABCD(AC(A C) BD(B D))", "ABC(AB BC) BD CD")]
    every = [c for queries in (SINGLES, PAIRS) for c in configurations(queries)]
    rows: list[Row] = []
    for memory in memories(scale):
        for configuration in shown:
            best = _best(configuration, statistics, memory)
            rows += _relative(configuration, statistics, memory, best, str(configuration))
        relative = [row for c in every for row in _relative(c, statistics, memory, _best(c, statistics, memory), ALL)]
        rows += _means(relative, memory)
        say(f"memory {memory:,}  {len(every)} configurations")
    return rows


def _means(relative: list[Row], memory: float) -> list[Row]:
    return [
        {
            "series": way.upper(),
            "memory": memory,
            "relative_cost": mean([row["relative_cost"] for row in relative if row["series"] == way.upper()]),
            "configuration": ALL,
        }
        for way in WAYS
    ]


EPOCHS = {
    "ABC(AC(A C) B)": (("A", "B", "C"), ((2, 3, 5), (3, 4, 5), (1, 5, 9))),
    "ABCD(AB BCD(BC BD CD))": (("AB", "BC", "BD", "CD"), ((2, 3, 5, 6), (2, 3, 5, 7), (3, 5, 7, 9))),
}
"""Configurations, their queries, and the epochs of these; the first ones are drawn, all are in the means."""


def different_epochs(scale: Scale, say: Say) -> list[Row]:
    begun = a_setting(scale, synthetic=False, epochs=True).statistics
    rows: list[Row] = []
    for memory in memories(scale):
        relative: list[Row] = []
        for text, (queries, choices) in EPOCHS.items():
            for number, lengths in enumerate(choices):
                statistics = replace(begun, epochs={read(q): (length,) for q, length in zip(queries, lengths)})
                configuration = parse(text)
                these = list(
                    _relative(configuration, statistics, memory, _best(configuration, statistics, memory), text)
                )
                rows += these if number == 0 else ()
                relative += these
        rows += _means(relative, memory)
        say(f"memory {memory:,}")
    return rows


def claims(table: Mapping[str, tuple[float, ...]], name: str, rows: list[Row]) -> list[Claim]:
    means = {
        way: [r["relative_cost"] for r in rows if r["series"] == way.upper() and r["configuration"] == ALL]
        for way in WAYS
    }
    over = {way: mean(values) for way, values in means.items()}
    ours = ", ".join(f"{way.upper()} {value:.3f}" for way, value in over.items())
    printed = ", ".join(f"{way.upper()} {mean(values):.3f}" for way, values in table.items())
    best = min(over, key=lambda way: over[way])
    near = all(abs(over[way] / mean(values) - 1) <= 0.1 for way, values in table.items())
    return [
        Claim(f"means over all configurations and memories ({name}): {printed}", ours, near),
        Claim("SL is within 5 % of the best division in the mean", f"{over['sl']:.3f}", over["sl"] <= 1.05),
        Claim("SL and SR are better than PL and PR", ours, max(over["sl"], over["sr"]) < min(over["pl"], over["pr"])),
        Claim("SL is the best, or close to it", f"{best.upper()} is", over["sl"] <= 1.02 * over[best]),
        Claim(
            "PL and PR cost up to 30 % more than the best",
            f"{max(r['relative_cost'] for r in rows if r['series'] in ('PL', 'PR')) - 1:.0%} at most",
            None,
        ),
    ]


PHANTOM_SPACE = (
    a_figure(
        15,
        "Divisions of the memory over the best",
        "memory",
        same_epoch,
        partial(claims, TABLE_3, "table 3"),
        panels=lambda row: row["configuration"],
    ),
    a_figure(
        23,
        "Divisions of the memory over the best, different epochs",
        "memory",
        different_epochs,
        partial(claims, TABLE_5, "table 5"),
        panels=lambda row: row["configuration"],
    ),
)
