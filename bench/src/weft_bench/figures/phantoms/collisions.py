"""Paper 5, figures 7, 8 and 11: how often rows collide, and how often the model says that they do."""

from __future__ import annotations

import numpy as np

from weft.optimizer.phantoms import allocate, collision_rate, parse, read, show
from weft_bench.benchmark import Row, Say
from weft_bench.data.packets import Packets, clustered, one_a_flow
from weft_bench.figures.figure import Claim, Scale, mean
from weft_bench.figures.phantoms.counted_tables import Streams, throw
from weft_bench.figures.phantoms.setting import PRICES, RELATIONS, a_figure

RATIOS = (0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 10)
CONFIGURATION = parse("ABCD(AB BCD(BC BD CD))")


def _row(series: str, ratio: float, observed: float, expected: float) -> Row:
    return {
        "series": series,
        "groups_a_bucket": ratio,
        "collision_rate": observed,
        "expected": expected,
        "error_percent": 100 * abs(observed - expected) / expected,
    }


def _observed(name: str, groups: np.ndarray[tuple[int], np.dtype[np.int64]], scale: Scale) -> list[Row]:
    number = int(groups.max()) + 1
    rows = []
    for ratio in RATIOS:
        buckets = round(number / ratio)
        observed = mean([len(throw(groups, buckets, seed)[0]) / len(groups) for seed in scale.seeds])
        rows.append(_row(name, ratio, observed, float(collision_rate(number, buckets))))
    return rows


def _estimated() -> list[Row]:
    expected = [float(collision_rate(2000, 2000 / ratio)) for ratio in RATIOS]
    return [_row("estimated", ratio, rate, rate) for ratio, rate in zip(RATIOS, expected)]


def random_rows(scale: Scale, say: Say) -> list[Row]:
    (number,) = scale.of((100_000,), (1_000_000,))
    rows = _estimated()
    for groups in (500, 1000, 2000):
        drawn = np.random.default_rng(scale.seed).integers(0, groups, number)
        rows += _observed(f"{groups:,} groups", drawn, scale)
        say(f"{groups:,} groups")
    return rows


def flow_rows(scale: Scale, say: Say) -> list[Row]:
    (number,) = scale.of((100_000,), (860_000,))
    packets, rows = one_a_flow(number, scale.seed), _estimated()
    for name in ("A", "AC", "BCD", "ABCD"):
        groups = packets.groups(name)
        rows += _observed(f"{name}, {int(groups.max()) + 1:,} groups", groups, scale)
        say(name)
    return rows


def match_claims(rows: list[Row]) -> list[Claim]:
    errors = [row["error_percent"] for row in rows if row["series"] != "estimated"]
    near = mean([error < 5 for error in errors])
    ours = f"{near:.0%} have; {max(errors):.1f} % at most"
    return [Claim("more than 95 % of the rates seen have less than 5 % difference from equation 13", ours, near > 0.95)]


def clustered_rows(scale: Scale, say: Say) -> list[Row]:
    """Flow lengths of one window, by depth, estimate the rates of the next (section 5.3)."""
    (number,) = scale.of((300_000,), (860_000,))
    values = clustered(2 * number, scale.seed).values
    last, following = (Streams(Packets(part)) for part in (values[:number], values[number:]))
    statistics = last.statistics(RELATIONS)
    rows: list[Row] = []
    for memory in (5_000, 10_000, 20_000, 40_000, 60_000):
        buckets = allocate(CONFIGURATION, statistics, memory, PRICES).buckets(statistics)
        flows = last.run(CONFIGURATION, buckets).flows
        counts_of = following.run(CONFIGURATION, buckets).counts
        for name in ("ABCD", "AB", "BCD", "BC"):
            table, groups = counts_of[read(name)], statistics.groups[read(name)]
            expected = float(collision_rate(groups, table.buckets) / flows.length(table.depth))
            ratio = groups / table.buckets
            rate = table.collisions / table.rows if table.rows else 0.0
            rows.append(_row(f"{show(read(name))} seen", ratio, rate, expected))
            rows.append(_row(f"{show(read(name))} estimated", ratio, expected, expected))
        say(f"memory {memory:,}  flows {', '.join(f'{length:.1f}' for length in flows.by_depth)}")
    return sorted(rows, key=lambda row: (row["series"], row["groups_a_bucket"]))


def clustered_claims(rows: list[Row]) -> list[Claim]:
    observed = [row for row in rows if row["series"].endswith("seen") and row["collision_rate"] > 0]
    raw = [row["error_percent"] for row in observed if row["series"].startswith("ABCD ")]
    low = [row["error_percent"] for row in observed if row["groups_a_bucket"] <= 1]
    all_errors = [row["error_percent"] for row in observed]
    within = f"{mean([error <= 10 for error in low]):.0%} of {len(low)}" if low else "none there"
    return [
        Claim(
            "where rates are low, errors are mostly within 10 %",
            within,
            mean([error <= 10 for error in low]) > 0.5 if low else None,
        ),
        Claim("all errors are within 80 %", f"{max(all_errors):.0f} % at most", max(all_errors) <= 80),
        Claim("the raw table's rate is estimated well", f"{max(raw):.0f} % at most", max(raw) <= 10),
    ]


PHANTOM_COLLISIONS = (
    a_figure(7, "Collision rates of random rows", "groups_a_bucket", random_rows, match_claims, y="collision_rate"),
    a_figure(8, "Collision rates, one row per flow", "groups_a_bucket", flow_rows, match_claims, y="collision_rate"),
    a_figure(
        11,
        "Collision rates of clustered rows, by depth",
        "groups_a_bucket",
        clustered_rows,
        clustered_claims,
        y="collision_rate",
        panels=lambda row: row["series"].split()[0],
    ),
)
