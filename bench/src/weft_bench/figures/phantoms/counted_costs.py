"""Paper 5, figures 19 to 22, 26 and 27: what the chosen phantoms cost with the collisions that rows really have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from weft.optimizer.phantoms import Allocated, choose
from weft_bench.benchmark import Row, Say
from weft_bench.figures.figure import Claim, Scale, mean
from weft_bench.figures.phantoms.peak_load import shift, shrink
from weft_bench.figures.phantoms.setting import PHIS, PRICES, a_figure, a_setting, memories, worst

NAIVE = "no phantoms"


def compared(synthetic: bool, epochs: bool, scale: Scale, say: Say) -> list[Row]:
    setting = a_setting(scale, synthetic, epochs)
    rows: list[Row] = []
    for memory in memories(scale):
        optimum = setting.optimum(memory)
        best = setting.counted_cost(optimum.allocated)
        gc = setting.gc(memory)
        gps = [
            (setting.counted_cost(gp.allocated), str(gp.configuration)) for gp in (setting.gp(memory, p) for p in PHIS)
        ]
        ways = [
            ("GCSL", setting.counted_cost(gc.allocated), str(gc.configuration)),
            ("GP, best phi", *min(gps)),
            (NAIVE, setting.counted_cost(setting.naive(memory)), ""),
        ]
        for name, cost, configuration in ways:
            row = {"series": name, "memory": memory, "relative_cost": cost / best, "cost": cost}
            rows.append({**row, "configuration": configuration, "optimum": str(optimum.configuration)})
        say(f"memory {memory:,}  optimum {optimum.configuration}")
    return rows


def compared_claims(ratios: tuple[float, float, float], paper: str, rows: list[Row]) -> list[Claim]:
    """`ratios` is what the paper sees at most of GCSL and GP over the optimum, and of no phantoms over GCSL."""
    gcsl, gp = (worst(rows, "relative_cost", name) for name in ("GCSL", "GP, best phi"))
    by_memory = {(row["series"], row["memory"]): row["cost"] for row in rows}
    sizes = sorted({row["memory"] for row in rows})
    gains = [by_memory[NAIVE, memory] / by_memory["GCSL", memory] for memory in sizes]
    over_gp = [by_memory["GP, best phi", memory] / by_memory["GCSL", memory] for memory in sizes]
    claims = []
    if ratios[0]:
        claims.append(
            Claim(f"GCSL is within {ratios[0]:g} times the optimum", f"{gcsl:.3f} at most", gcsl <= ratios[0])
        )
    if ratios[1]:
        near = abs(gp / ratios[1] - 1) <= 0.25
        claims.append(Claim(f"GP costs up to {ratios[1]:g} times the optimum", f"{gp:.2f} at most", near))
    claims.append(
        Claim("GCSL costs less than GP with its best phi", f"GP: {min(over_gp):.2f} to {max(over_gp):.2f} times it",
              min(over_gp) >= 1)
    )  # fmt: skip
    ours = f"{min(gains):.1f} to {max(gains):.1f} times it"
    more = f"no phantoms cost {ratios[2]:g} times as much" if ratios[2] else "no phantoms cost much more"
    claims.append(Claim(more, ours, max(gains) >= ratios[2] if ratios[2] else min(gains) > 1))
    claims.append(Claim("the more memory, the more is gained", ours, gains == sorted(gains)))
    if paper:
        optima = {row["optimum"] for row in rows if row["memory"] == 40_000}
        chosen = {row["configuration"] for row in rows if row["memory"] == 40_000 and row["series"] == "GCSL"}
        claims.append(Claim(f"at 40,000 the optimum is {paper}", ", ".join(optima), optima == {paper}))
        claims.append(Claim("GCSL finds the same", ", ".join(chosen), chosen == optima))
    return claims


def misestimated(scale: Scale, say: Say) -> list[Row]:
    """Each count is off by a random share up to the error, up or down; tables are filled by the rows as they are."""
    setting = a_setting(scale, synthetic=False)
    rows: list[Row] = []
    for memory in (60_000, 100_000):
        naive = setting.counted_cost(setting.naive(memory))
        for error in (-50, -30, -10, 0, 10, 30, 50):
            gains = []
            for seed in scale.seeds:
                random = Random(seed)
                counts = {
                    r: max(1.0, n * (1 + random.uniform(0, error) / 100)) for r, n in setting.statistics.groups.items()
                }
                misestimated_statistics = replace(setting.statistics, groups=counts)
                gains.append(
                    naive
                    / setting.counted_cost(choose(setting.queries, misestimated_statistics, memory, PRICES).allocated)
                )
            rows.append({"series": f"memory {memory:,}", "error_percent": error, "gain": mean(gains)})
        say(f"memory {memory:,}")
    return rows


def misestimated_claims(rows: list[Row]) -> list[Claim]:
    claims = []
    for name in dict.fromkeys(row["series"] for row in rows):
        gains = [row["gain"] for row in rows if row["series"] == name]
        measured = f"{name}: {min(gains):.2f} to {max(gains):.2f} times cheaper than no phantoms"
        claims.append(Claim("the gain is stable for counts off by 50 %", measured, min(gains) > 0.8 * max(gains)))
    return claims


def peaks(scale: Scale, say: Say) -> list[Row]:
    setting = a_setting(scale, synthetic=False)
    begun = setting.gc(40_000).allocated
    base = setting.counted_cost(begun)
    ways: dict[str, Callable[..., Allocated | None]] = {"shrink": shrink, "shift": shift}
    rows: list[Row] = []
    for percent in (100, 99.9, 99.8, 99, 98, 95, 90, 80, 70, 60, 50):
        for name, way in ways.items():
            changed = way(begun, setting.statistics, PRICES, begun.emptying * percent / 100)
            cost = None if changed is None else setting.counted_cost(changed) / base
            rows.append({"series": name, "peak_percent": percent, "relative_cost": cost})
        say(f"peak at {percent:g} %")
    return rows


def peak_claims(rows: list[Row]) -> list[Claim]:
    cost = {(row["series"], row["peak_percent"]): row["relative_cost"] for row in rows}
    percents = sorted({row["peak_percent"] for row in rows if row["peak_percent"] < 100}, reverse=True)
    both = [p for p in percents if cost["shift", p] is not None]
    if not both:
        measured = f"shift does not even reach {percents[0]:g} %"
        return [Claim("a little below, shift is better; far below, shrink is", measured, False)]
    near, far = both[0], both[-1]
    at = {p: f"at {p:g} % shift costs {cost['shift', p]:.4f}, shrink {cost['shrink', p]:.4f}" for p in (near, far)}
    beyond = far > min(percents)
    return [
        Claim("a little below, shift is better", at[near], cost["shift", near] <= cost["shrink", near]),
        Claim(
            "far below, shrink is better",
            f"shift reaches {far:g} % only" if beyond else at[far],
            beyond or cost["shrink", far] <= cost["shift", far],
        ),
    ]


PHANTOM_COUNTED = (
    *(
        a_figure(
            number,
            f"GCSL, GP and no phantoms over the optimum, {what}",
            "memory",
            partial(compared, synthetic, epochs),
            partial(compared_claims, ratios, paper),
            log_y=True,
        )
        for number, what, synthetic, epochs, ratios, paper in (
            (19, "random rows", True, False, (1.2, 3.8, 10), ""),
            (20, "clustered rows", False, False, (0, 0, 0), "ABCD(AB BCD(BC BD CD))"),
            (26, "random rows, different epochs", True, True, (1.4, 3, 20), ""),
            (27, "clustered rows, different epochs", False, True, (0, 0, 0), ""),
        )
    ),
    a_figure(
        21, "Gain over no phantoms, counts misestimated", "error_percent", misestimated, misestimated_claims, y="gain"
    ),
    a_figure(22, "Cost within a peak load, by shrink and shift", "peak_percent", peaks, peak_claims),
)
