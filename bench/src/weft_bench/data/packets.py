"""Seeded packet headers like those of paper 5: A, C are source address and port, B, D destination address and port.

About 2,800 groups in all four attributes; those of single attributes and of three are as many as the paper counts in
its trace (552 and 2,117). A client's port mostly tells its address, and a server's address few ports: pairs within an
end have far fewer groups than pairs across. `clustered` packets come in flows that interleave, `uniform` ones in any
order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

ATTRIBUTES = "ABCD"

SOURCES, SOURCE_PORTS = 552, 1100
SERVERS, SERVER_PORTS, ENDPOINTS = 600, 570, 900
TRIPLES, GROUPS = 2117, 2837

FLOW, INTERLEAVED = 30, 20
"""Mean number of packets per flow, and of flows at the same time."""

VALUES = 1 << 14
"""Values of a single attribute: two attributes have 270 million pairs."""


@dataclass(frozen=True, slots=True)
class Packets:
    """One row per packet, one column per attribute, in the order of arrival."""

    values: Ints

    def __len__(self) -> int:
        return len(self.values)

    def groups(self, attributes: Iterable[str]) -> Ints:
        """Each packet's group in a relation, as a number from 0 on."""
        codes = np.zeros(len(self), np.int64)
        for name in sorted(attributes):
            column = self.values[:, ATTRIBUTES.index(name)]
            codes = np.unique(codes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1].astype(
                np.int64
            )
        return codes

    def count(self, attributes: Iterable[str]) -> int:
        return int(self.groups(attributes).max(initial=-1)) + 1


def headers(seed: int) -> Ints:
    """The distinct headers, one per row."""
    random = np.random.default_rng(seed)
    server = _cover(random, ENDPOINTS, SERVERS)
    server_port = _cover(random, ENDPOINTS, SERVER_PORTS)
    port_end = _distinct(random, TRIPLES, SOURCE_PORTS, ENDPOINTS)
    port, end = port_end // ENDPOINTS, port_end % ENDPOINTS
    usual = _cover(random, SOURCE_PORTS, SOURCES)
    triples = np.stack([usual[port], server[end], port, server_port[end]], axis=1)
    # The same triple from another source behind the same port: as many as are missing.
    again = random.permutation(TRIPLES)[: GROUPS - TRIPLES]
    others = triples[again]
    others[:, 0] = (others[:, 0] + 1 + others[:, 2] % 7) % SOURCES
    return np.unique(np.concatenate([triples, others]), axis=0)


def clustered(rows: int, seed: int, part: int = 0) -> Packets:
    """Every header has a flow before any has a second one; a flow has 30 packets on average, geometric.

    Parts of one seed have the same headers.
    """
    random = np.random.default_rng(seed + 1 if not part else (seed + 1, part))
    kinds = headers(seed)
    number = -(-rows // FLOW) * 2  # more than enough: only the first rows are kept
    lengths = random.geometric(1 / FLOW, number)
    number = int(np.searchsorted(np.cumsum(lengths), rows)) + 1
    lengths = lengths[:number]
    which = np.concatenate([random.permutation(len(kinds)) for _ in range(-(-number // len(kinds)))])[:number]
    begins = np.repeat(random.uniform(0, rows, number), lengths)
    waits = random.exponential(INTERLEAVED, int(lengths.sum()))
    total = np.cumsum(waits)
    first = np.cumsum(lengths) - lengths
    since = total - np.repeat(total[first], lengths)
    order = np.argsort(begins + since, kind="stable")[:rows]
    return Packets(kinds[np.repeat(which, lengths)[order]])


def uniform(rows: int, seed: int) -> Packets:
    """Any header at any time."""
    kinds = headers(seed)
    return Packets(kinds[np.random.default_rng(seed + 1).integers(0, len(kinds), rows)])


def _cover(random: np.random.Generator, number: int, values: int) -> Ints:
    """Draws that include each value at least once."""
    return random.permutation(np.concatenate([np.arange(values), random.integers(0, values, number - values)]))


def _distinct(random: np.random.Generator, number: int, left: int, right: int) -> Ints:
    """Distinct pairs, as `left * right` numbers, in which each value of both sides occurs."""
    pairs = np.unique(_cover(random, number, left) * right + _cover(random, number, right))
    while len(pairs) < number:
        more = random.integers(0, left * right, number - len(pairs))
        pairs = np.unique(np.concatenate([pairs, more]))
    return pairs


def one_a_flow(rows: int, seed: int) -> Packets:
    """`clustered` without clusters: one packet per flow, and headers are equally frequent."""
    kinds = headers(seed)
    return Packets(kinds[np.random.default_rng(seed + 1).permutation(np.arange(rows) % len(kinds))])


def independent(rows: int, seed: int, part: int = 0) -> Packets:
    """Each attribute is independent and uniform: two attributes have nearly one group per row."""
    random = np.random.default_rng(seed + 1 if not part else (seed + 1, part))
    return Packets(random.integers(0, VALUES, (rows, len(ATTRIBUTES))))
