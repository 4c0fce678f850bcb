"""Paper 1, figure 14: what each short cut of its implementation is worth."""

from __future__ import annotations

from fractions import Fraction
from time import process_time

from weft_bench.benchmark import Row, Say
from weft_bench.figures.figure import Claim, Figure, Scale
from weft_bench.figures.sharing import draw, plan
from weft_bench.rivals.probing_planner import ShortCuts, weave_by_probing

RATE = 100

VARIANTS = {
    "naive": ShortCuts(cost_lookup=False, edge_bitmap=False, smaller_probes=False),
    "cost lookup": ShortCuts(cost_lookup=True, edge_bitmap=False, smaller_probes=False),
    "and edge bitmap": ShortCuts(cost_lookup=True, edge_bitmap=True, smaller_probes=False),
    "and probing with the smaller": ShortCuts(),
}


def rows(scale: Scale, say: Say) -> list[Row]:
    (number,) = scale.of((40,), (250,))
    workload = draw(scale.seed, number, overlap=10, skew=0.7)
    lines: list[Row] = []
    for position, (name, short_cuts) in enumerate(VARIANTS.items(), 1):
        begun = process_time()
        woven = weave_by_probing([query.window for query in workload], Fraction(RATE), short_cuts)
        lines.append(
            {
                "series": "Weave Share as in paper 1",
                "variant": position,
                "short_cuts": name,
                "seconds": process_time() - begun,
                "counted": woven.counted,
                "probes": woven.probes,
                "trees": len(woven.trees),
            }
        )
        say(f"{name}  {lines[-1]['seconds']:.2f} s  {woven.probes:,} probes")
    begun = process_time()
    trees = len(plan("weave_share", workload, RATE).trees)
    seconds = process_time() - begun
    lines.append({"series": "weft", "variant": 5, "short_cuts": "weft's own", "seconds": seconds, "trees": trees})
    return lines


def claims(rows: list[Row]) -> list[Claim]:
    probes = [row["probes"] for row in rows[:-1]]
    trees = [row["trees"] for row in rows]
    measured = ", ".join(f"{row['short_cuts']}: {row['seconds']:.2f} s" for row in rows)
    return [
        Claim("each short cut is worth about a factor of ten", measured, probes == sorted(probes, reverse=True)),
        Claim(
            "all three together: three orders of magnitude",
            f"{probes[0] / probes[-1]:,.0f} times fewer comparisons, "
            f"{rows[0]['seconds'] / rows[-2]['seconds']:.1f} times less time",
            probes[0] >= 1000 * probes[-1],
        ),
        Claim("the same plan", f"{', '.join(map(str, trees))} trees", len(set(trees)) == 1),
    ]


SHORT_CUTS = (
    Figure(
        "14",
        "Time of Weave Share with its short cuts",
        "paper 1, figure 14",
        "variant",
        "seconds",
        rows,
        claims,
        log_y=True,
    ),
)
