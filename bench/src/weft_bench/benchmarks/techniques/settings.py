"""The settings of `weft bench techniques`."""

from __future__ import annotations

from dataclasses import dataclass

from weft_bench.benchmark import BadSetting, flag, integer, numbers, option


def exponents(text: str) -> tuple[int, ...]:
    """
    >>> exponents("4,0,22")
    (0, 4, 22)
    """
    powers = tuple(sorted({integer(part.strip()) for part in text.split(",")}))
    if not 0 <= powers[0] <= powers[-1] <= 24:
        raise BadSetting(f"windows are powers of two, from 0 to 24, got {text}")
    return powers


@dataclass(frozen=True, slots=True)
class TechniqueSettings:
    windows: tuple[int, ...] = option(
        tuple(range(0, 23, 2)), "Windows, as powers of two.", quick=(0, 4, 10, 16), parse=exponents, metavar="P,..."
    )
    multi: tuple[int, ...] = option(
        (0, 2, 4, 6, 8, 10), "Windows with all ranges at once.", quick=(0, 4, 8), parse=exponents, metavar="P,..."
    )
    ranges: int = option(64, "Ranges at once over one stream.")
    groups: tuple[int, ...] = option(
        (10, 100, 1_000, 10_000, 100_000), "Groups at once.", quick=(10, 100_000), parse=numbers, metavar="N,..."
    )
    slides: int = option(1 << 20, "Slides per measurement, at least four windows.", quick=1 << 19)
    budget: int = option(80, "Milliseconds for the runs of a measurement, of which the best counts.", quick=40)
    rounds: int = option(3, "Times that every rate is measured: what else runs slows a processor for seconds.", quick=1)
    latencies: int = option(1_000_000, "Steps whose time is taken.", quick=200_000)
    seed: int = option(1, "Of the values.", parse=integer)
    data: str = option("", "A file of the DEBS 2012 challenge to take the values from.", parse=str, metavar="FILE")
    page: str = option("", "Draw the figures to this file.", parse=str, metavar="FILE")
    count: bool = flag("Count operations too, and show them beside table 4.")
