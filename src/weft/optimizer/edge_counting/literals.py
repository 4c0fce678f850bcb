"""Edge classes as sets of literals, one bit per residue modulo a power of a prime."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from weft.model import EdgeClass
from weft.optimizer.edge_counting.primes import factorise

Classes = tuple[EdgeClass, ...]


@dataclass(frozen=True, slots=True)
class Literals:
    """Classes as sets of literals, which are bits: see `weft.kernels.edge_counting`."""

    primes: tuple[int, ...]
    words: int
    """64-bit words for the primes of a class. Literals begin after them."""
    owned: tuple[int, ...]
    """For each prime its own bit and those of its literals."""
    conflicts: tuple[int, ...]
    """For each literal the others of the same power of the same prime."""
    masks: tuple[int, ...]
    """The classes."""
    deepest: int
    """The highest power of a prime that divides a slide."""

    @classmethod
    def of(cls, classes: Classes) -> Literals:
        powers = factorise(slide for slide, _ in classes)
        primes = tuple(sorted({p for of_slide in powers.values() for p in of_slide}))
        place = {p: i for i, p in enumerate(primes)}
        words = -(-len(primes) // 64)
        owned = [1 << i for i in range(len(primes))]
        bits: dict[tuple[int, int], int] = {}
        of_power: dict[int, int] = defaultdict(int)
        masks: list[int] = []
        for slide, shift in classes:
            mask = 0
            for p, powers_of_p in powers[slide].items():
                i = place[p]
                mask |= 1 << i
                for power in powers_of_p:
                    literal = (power, shift % power)
                    bit = bits.get(literal)
                    if bit is None:
                        bit = bits[literal] = 1 << (64 * words + len(bits))
                        owned[i] |= bit
                        of_power[power] |= bit
                    mask |= bit
            masks.append(mask)
        conflicts = tuple(of_power[power] & ~bit for (power, _), bit in bits.items())
        deepest = max(len(powers_of_p) for of_slide in powers.values() for powers_of_p in of_slide.values())
        return cls(primes, words, tuple(owned), conflicts, tuple(masks), deepest)

    @property
    def width(self) -> int:
        return self.words + -(-len(self.conflicts) // 64)
