"""The counter that is used: exact for any slides, without walking through a composite slide.

A union of classes is taken apart until single classes are left:

- a class that another contains adds nothing;
- where all slides share a factor g, residues modulo g are disjoint worlds: each is solved alone, g times coarser;
- classes that share no prime are independent (Chinese remainders): what neither has is the product of what each lacks;
- else some prime p divides several slides but not all. Write `x = p*y + r`: of the classes with p only those at
  residue r are left, with a p-th of their slide; the others keep their slides and change their shifts. All residues
  that no class with p meets look alike: there only the others are left, and a change of shifts by an invertible map
  does not change how many edges they have.

Counting a union of arithmetic progressions is hard in general; what people ask for is not, because slides are made of
few small primes. A hundred slides of 1 to 60 s take milliseconds; a hundred random numbers of milliseconds, each with
a fragment, half a minute.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

from weft.model import EdgeClass, Edges
from weft.optimizer.edge_counting.bit_set import marked

Classes = tuple[EdgeClass, ...]

SHORT_PERIOD = 4096
"""Up to here marking bits is faster than reasoning about residues."""

ONE = Fraction(1)


def density(edges: Edges) -> Fraction:
    """Edges a unit of time."""
    return _density(edges.classes)


def _density(classes: Iterable[EdgeClass]) -> Fraction:
    return _canonical_density(_canonical(Edges.of_classes(classes).classes))


def _canonical(classes: Sequence[EdgeClass]) -> Classes:
    """Move time so that as many classes as possible begin at 0: equal problems should look equal to the memo."""
    origin, period = 0, 1
    for slide, shift in classes:
        common = gcd(period, slide)
        if (shift - origin) % common == 0:
            step = slide // common
            origin += period * ((shift - origin) // common * pow(period // common, -1, step) % step)
            period *= step
    return tuple(sorted((slide, (shift - origin) % slide) for slide, shift in classes))


@lru_cache(maxsize=1 << 17)
def _canonical_density(classes: Classes) -> Fraction:
    """`classes` are canonical and none contains another."""
    if classes[0][0] == 1:
        return ONE
    if len(classes) == 1:
        return Fraction(1, classes[0][0])
    if len(classes) == 2:
        (s, h), (t, i) = classes
        common = gcd(s, t)
        return Fraction(s + t - (common if (h - i) % common == 0 else 0), s * t)
    factor = gcd(*(slide for slide, _ in classes))
    if factor > 1:
        return _by_residue(classes, factor)
    period = _short_period(classes)
    if period:
        return Fraction(marked(classes, period), period)
    parts = _independent(classes)
    if len(parts) > 1:
        missed = ONE
        for part in parts:
            missed *= 1 - _canonical_density(_canonical(part))
        return 1 - missed
    return _by_prime(classes, _most_shared_prime(classes))


def _short_period(classes: Classes) -> int:
    """The composite slide where it is short enough for a bit set, else 0."""
    period = 1
    for slide, _ in classes:
        period = lcm(period, slide)
        if period > SHORT_PERIOD:
            return 0
    return period


def _by_residue(classes: Classes, factor: int) -> Fraction:
    worlds: dict[int, list[EdgeClass]] = defaultdict(list)
    for slide, shift in classes:
        worlds[shift % factor].append((slide // factor, shift // factor))
    # Within a residue nothing new is contained: classes that differ by a multiple of the factor shrank alike.
    return sum((_canonical_density(_canonical(world)) for world in worlds.values()), Fraction(0)) / factor


def _by_prime(classes: Classes, p: int) -> Fraction:
    met: dict[int, list[EdgeClass]] = defaultdict(list)
    others: list[EdgeClass] = []
    for slide, shift in classes:
        if slide % p == 0:
            met[shift % p].append((slide // p, shift // p))
        else:
            others.append((slide, shift))
    inverses = {slide: pow(p, -1, slide) for slide, _ in others}
    total = (p - len(met)) * _canonical_density(_canonical(others))
    for r, shrunk in met.items():
        moved = [(slide, (shift - r) * inverses[slide] % slide) for slide, shift in others]
        total += _density(shrunk + moved)
    return total / p


def _independent(classes: Classes) -> list[list[EdgeClass]]:
    """Split into parts that share no prime, each in the order of `classes`."""
    part_of_prime: dict[int, int] = {}
    parts: dict[int, tuple[list[EdgeClass], set[int]]] = {}
    for number, edge_class in enumerate(classes):
        primes = prime_factors(edge_class[0])
        met = sorted({part_of_prime[p] for p in primes if p in part_of_prime})
        members, own = [edge_class], set(primes)
        for part in met:
            joined, their = parts.pop(part)
            members = joined + members
            own |= their
        parts[number] = (members, own)
        for p in own:
            part_of_prime[p] = number
    return [sorted(members) for members, _ in parts.values()]


def _most_shared_prime(classes: Classes) -> int:
    counts = Counter(p for slide, _ in classes for p in prime_factors(slide))
    return max(counts, key=lambda p: (counts[p], -p))


@lru_cache(maxsize=1 << 14)
def prime_factors(n: int) -> tuple[int, ...]:
    """The different primes that divide `n`, ascending."""
    primes: list[int] = []
    divisor = 2
    while divisor * divisor <= n:
        if n % divisor == 0:
            primes.append(divisor)
            while n % divisor == 0:
                n //= divisor
        divisor += 1 if divisor == 2 else 2
    return (*primes, n) if n > 1 else tuple(primes)
