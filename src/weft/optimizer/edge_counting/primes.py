"""Slides as products of powers, of primes if these are small, otherwise of numbers that share no factor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from math import gcd

TRIAL = 1 << 10
"""Divisors up to this are tried one by one. What remains of a slide below 2**20 is then a prime."""

Powers = Mapping[int, tuple[int, ...]]
"""For each base, its powers that divide the number: 360 is {2: (2, 4, 8), 3: (3, 9), 5: (5,)}."""


def factorise(slides: Iterable[int]) -> dict[int, Powers]:
    """For each slide the powers whose product it is; the bases of all of them are coprime.

    Counting edges needs independent residues, not primes: large slides are split only by their common divisors, so
    their prime factors need not be found.

    >>> factorise([360, 7])
    {360: {2: (2, 4, 8), 3: (3, 9), 5: (5,)}, 7: {7: (7,)}}
    """
    tried = {slide: small_factors(slide) for slide in slides}
    bases = coprime_bases(rest for _, rest in tried.values() if rest > 1)
    by_slide: dict[int, Powers] = {}
    for slide, (powers, rest) in tried.items():
        if rest > 1:
            powers = {**powers, **{base: powers_of(base, rest) for base in bases if rest % base == 0}}
        by_slide[slide] = powers
    return by_slide


@lru_cache(maxsize=1 << 17)
def small_factors(n: int) -> tuple[Powers, int]:
    """The powers of primes up to `TRIAL` that divide n, and what is left."""
    factors: dict[int, tuple[int, ...]] = {}
    for p in SMALL_PRIMES:
        if p * p > n:
            break
        if n % p == 0:
            factors[p] = powers_of(p, n)
            n //= factors[p][-1]
    if 1 < n <= TRIAL * TRIAL:
        factors[n] = (n,)
        n = 1
    return factors, n


def powers_of(base: int, n: int) -> tuple[int, ...]:
    powers, power = [], base
    while n % power == 0:
        powers.append(power)
        power *= base
    return tuple(powers)


def coprime_bases(numbers: Iterable[int]) -> list[int]:
    """Numbers without common factors, from which each of `numbers` is a product of powers.

    >>> coprime_bases([6, 10, 9])
    [2, 3, 5]
    """
    bases: list[int] = []
    waiting = sorted(set(numbers), reverse=True)
    while waiting:
        n = waiting.pop()
        for i, base in enumerate(bases):
            common = gcd(n, base)
            if common > 1:
                # Both are split; every piece is smaller than its number, or the same base again.
                if base != common:
                    del bases[i]
                    waiting += [common, base // common]
                    waiting.append(n)
                elif n != base:
                    waiting.append(n // common)
                break
        else:
            if n > 1:
                bases.append(n)
    return sorted(bases)


def primes_below(n: int) -> Iterator[int]:
    """Descending, for n up to 2**32."""
    return (m for m in range(n - 1, 1, -1) if is_prime(m))


def is_prime(n: int) -> bool:
    """Miller and Rabin's test, which three bases decide for n below 4,759,123,141."""
    if n < 2 or any(n % p == 0 for p in (2, 7, 61) if n != p):
        return False
    if n in (2, 7, 61):
        return True
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(pow(base, odd, n), twos, n) for base in (2, 7, 61))


def _passes(power: int, twos: int, n: int) -> bool:
    if power in (1, n - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % n
        if power == n - 1:
            return True
    return False


SMALL_PRIMES = tuple(p for p in range(2, TRIAL + 1) if is_prime(p))
