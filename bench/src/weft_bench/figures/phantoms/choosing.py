"""Paper 5, figures 16 to 18, 24 and 25: what the chosen phantoms cost by the model, over the optimum."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from weft.optimizer.phantoms import show
from weft_bench.benchmark import Row, Say
from weft_bench.figures.figure import Claim, Scale
from weft_bench.figures.phantoms.setting import PHIS, a_figure, a_setting, memories, worst

MEMORY = 40_000


def by_phi(epochs: bool, scale: Scale, say: Say) -> list[Row]:
    setting = a_setting(scale, synthetic=True, epochs=epochs)
    best = setting.optimum(MEMORY)
    say(f"optimum {best.configuration}  {best.cost:.3f} a row")
    ways = {"GCSL": setting.gc(MEMORY), "GCPL": setting.gc(MEMORY, "pl")}
    rows: list[Row] = []
    for phi in PHIS:
        for name, choice in {"GP": setting.gp(MEMORY, phi), **ways}.items():
            row = {"series": name, "phi": phi, "relative_cost": choice.cost / best.cost}
            rows.append({**row, "configuration": str(choice.configuration), "optimum": str(best.configuration)})
    return rows


def phi_claims(epochs: bool, rows: list[Row]) -> list[Claim]:
    gp = [row["relative_cost"] for row in rows if row["series"] == "GP"]
    gcsl, gcpl = (worst(rows, "relative_cost", name) for name in ("GCSL", "GCPL"))
    chosen = {row["configuration"] for row in rows if row["series"] == "GCSL"}
    optimum = rows[0]["optimum"]
    inside = 0 < gp.index(min(gp)) < len(gp) - 1
    claims = [
        Claim("GCSL and GCPL are better than GP for any phi", f"{gcsl:.3f}, {gcpl:.3f}, GP {min(gp):.3f} at best",
              max(gcsl, gcpl) <= min(gp)),
        Claim("GCSL is better than GCPL", f"{gcsl:.3f} and {gcpl:.3f}", gcsl <= gcpl),
        Claim("GP has a best phi in between", f"{PHIS[gp.index(min(gp))]:g}", inside),
    ]  # fmt: skip
    if not epochs:
        paper = "ABCD(AC(A C) BD(B D))"
        claims.append(Claim(f"the optimum is {paper}", optimum, optimum == paper))
        claims.append(Claim("GCSL finds the optimum", ", ".join(chosen), chosen == {optimum}))
    return claims


def process(scale: Scale, say: Say) -> list[Row]:
    setting = a_setting(scale, synthetic=True)
    ways = {"GCSL": setting.gc(MEMORY), "GCPL": setting.gc(MEMORY, "pl")}
    ways |= {f"GP, phi {phi:g}": setting.gp(MEMORY, phi) for phi in (0.8, 1.2, 1.6, 2.0)}
    say(", ".join(f"{name}: {len(choice.steps) - 1}" for name, choice in ways.items()))
    return [
        {
            "series": name,
            "phantoms": number,
            "cost": step.cost,
            "phantom": show(step.relation) if step.relation is not None else "",
        }
        for name, choice in ways.items()
        for number, step in enumerate(choice.steps)
    ]


def process_claims(rows: list[Row]) -> list[Claim]:
    falls = {}
    for name in dict.fromkeys(row["series"] for row in rows):
        costs = [row["cost"] for row in rows if row["series"] == name]
        falls[name] = [one - other for one, other in pairwise(costs)]
    first = all(saved == sorted(saved, reverse=True) for saved in falls.values())
    measured = "; ".join(f"{name}: {', '.join(f'{s:.2f}' for s in saved) or 'none'}" for name, saved in falls.items())
    few = max(len(falls[f"GP, phi {phi}"]) for phi in ("1.6", "2"))
    return [
        Claim("the first phantom saves most, each further one less", measured, first),
        Claim("GP with phi 1.6 and 2 has space for one phantom only", f"{few} at most", few <= 1),
    ]


def by_memory(epochs: bool, scale: Scale, say: Say) -> list[Row]:
    setting = a_setting(scale, synthetic=True, epochs=epochs)
    rows: list[Row] = []
    for memory in memories(scale):
        best = setting.optimum(memory).cost
        ways = {"GCSL": setting.gc(memory)}
        ways |= {f"GP, phi {phi:g}": setting.gp(memory, phi) for phi in (0.6, 0.8, 1.0, 1.2, 1.6, 2.0)}
        for name, choice in ways.items():
            row = {"series": name, "memory": memory, "relative_cost": choice.cost / best}
            rows.append({**row, "configuration": str(choice.configuration)})
        say(f"memory {memory:,}")
    return rows


def memory_claims(epochs: bool, rows: list[Row]) -> list[Claim]:
    most = worst(rows, "relative_cost", "GCSL")
    gcsl = {row["memory"]: row["relative_cost"] for row in rows if row["series"] == "GCSL"}
    others = [row for row in rows if row["series"] != "GCSL"]
    wins = sum(gcsl[row["memory"]] <= row["relative_cost"] for row in others)
    near = "GCSL is always below 1.04 times the optimum"
    claims = [] if epochs else [Claim(near, f"{most:.3f} at most", most <= 1.04)]
    return [
        *claims,
        Claim("GCSL is within 1.2 times the optimum (said of figure 19)", f"{most:.3f} at most", most <= 1.2),
        Claim("GCSL always costs less than GP", f"in {wins} of {len(others)}", wins == len(others)),
    ]


PHANTOM_CHOOSING = (
    *(
        a_figure(
            number,
            f"Ways to choose phantoms over the optimum, by phi{more}",
            "phi",
            partial(by_phi, epochs),
            partial(phi_claims, epochs),
        )
        for number, more, epochs in ((16, "", False), (24, ", different epochs", True))
    ),
    a_figure(17, "Cost as phantoms are chosen", "phantoms", process, process_claims, y="cost"),
    *(
        a_figure(
            number,
            f"GCSL and GP over the optimum, by memory{more}",
            "memory",
            partial(by_memory, epochs),
            partial(memory_claims, epochs),
        )
        for number, more, epochs in ((18, "", False), (25, ", different epochs", True))
    ),
)
