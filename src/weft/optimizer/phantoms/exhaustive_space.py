"""ES: the best of all divisions of the memory into whole shares, one at least for each table.

Trying all is out of reach for 7 tables and hundredths (10**9 divisions). But what is best below a table depends only on
the space below it and on how many groups it throws down, so the best is put together from the leaves up:

    best(table, inflow)[m] = min over b of  inflow * c1 + out * own + best(fed tables, out)[m - b],
    out = inflow * x(b) + times emptied * buckets(b) / rows

and that of several tables side by side is a minimum over how they divide what they have. Where emptying costs
nothing, all this is proportional to the inflow and is found once; else it is found for each inflow that can occur.
"""

from __future__ import annotations

import numpy as np

from weft.calibration.table_costs import ProbeCosts
from weft.model import PlanError
from weft.optimizer.phantoms.collisions import Floats, collision_rate
from weft.optimizer.phantoms.configuration_arrays import Forests, Ints

SHARES = 100
"""The paper's granularity: 1 % of the memory."""

INFLOW_LIMIT = 20_000
"""Inflows that are told apart where emptying costs: three levels have 100 ** 2. More of them take coarser shares."""


class TooManyTables(PlanError):
    """More tables than shares."""


def exhaustive_space(forests: Forests, memory: float, prices: ProbeCosts, shares: int = SHARES) -> Floats:
    space = np.full(forests.number * forests.width, float(memory))
    for number in range(forests.number):
        _Search(forests, number, memory, prices, shares).write(space)
    return space


def finest(deepest: int, shares: int) -> int:
    """
    >>> finest(3, 100), finest(4, 100)
    (100, 27)
    """
    while shares ** (deepest - 1) > INFLOW_LIMIT:
        shares -= 1
    return shares


class _Search:
    """One forest. `m` counts shares; the best for fewer shares than tables is infinite."""

    def __init__(self, forests: Forests, number: int, memory: float, prices: ProbeCosts, shares: int) -> None:
        self.begin = number * forests.width
        self.emptied = np.isfinite(forests.stream.rows)
        deepest = int(forests.depth[self.begin : self.begin + forests.tables].max(initial=1))
        shares = finest(deepest, shares) if self.emptied else shares
        if forests.tables > shares:
            raise TooManyTables(f"{forests.tables} tables cannot have a share each of {shares}; use another allocation")
        self.forests, self.prices, self.shares = forests, prices, shares
        self.share = memory / shares
        entries = range(self.begin, self.begin + forests.tables)
        self.fed: dict[int, list[int]] = {}
        for entry in entries:
            self.fed.setdefault(int(forests.up[entry]), []).append(entry)
        self.times = forests.eviction_rates() / forests.stream.rows if self.emptied else np.zeros(len(forests.up))
        self.held = np.arange(1, shares + 1) * self.share
        self.known: dict[int, tuple[Floats, Ints]] = {}

    def write(self, space: Floats) -> None:
        source = self.begin + self.forests.tables
        self._give(source, np.array([1.0]), self.shares, space)

    def _rates(self, entry: int) -> Floats:
        forests = self.forests
        rates: Floats = collision_rate(forests.groups[entry], self.held / forests.widths[entry]) / forests.flow[entry]
        return rates

    def _out(self, entry: int, inflow: Floats) -> Floats:
        """Groups that leave the table, for each inflow and each number of shares."""
        buckets = np.maximum(self.held / self.forests.widths[entry], 1.0)
        out: Floats = inflow[:, None] * self._rates(entry)[None, :] + (self.times[entry] * buckets)[None, :]
        return out

    def _table(self, entry: int, inflow: Floats) -> tuple[Floats, Ints]:
        """The least cost for each inflow and `m`, and the table's own shares there."""
        if self.emptied:
            return self._searched(entry, inflow)
        if entry not in self.known:  # all inflows are the same one here
            self.known[entry] = self._searched(entry, inflow)
        return self.known[entry]

    def _searched(self, entry: int, inflow: Floats) -> tuple[Floats, Ints]:
        out = self._out(entry, inflow)
        own = self.forests.asked[entry] * self.prices.eviction
        probes = inflow[:, None] * self.prices.probe
        if entry not in self.fed:  # a larger table costs less, but for emptying it
            cost = probes + out * own
            padded = np.concatenate([np.full((len(inflow), 1), np.inf), cost], axis=1)
            return _least_so_far(padded)
        # By inflow, own shares, and shares below.
        if self.emptied:
            below = self._side_by_side(entry, out.ravel())[-1][0].reshape(*out.shape, self.shares + 1)
        else:
            below = out[:, :, None] * self._side_by_side(entry, inflow)[-1][0]
        least = np.full((len(inflow), self.shares + 1), np.inf)
        choice = np.zeros((len(inflow), self.shares + 1), np.int64)
        for held in range(1, self.shares):
            cost = probes + out[:, held - 1, None] * own + below[:, held - 1, : self.shares + 1 - held]
            _keep(least[:, held:], choice[:, held:], cost, held)
        return least, choice

    def _side_by_side(self, entry: int, inflow: Floats) -> list[tuple[Floats, Ints]]:
        """What the first tables that `entry` feeds cost at least, for each `m`, and what the last of them has then."""
        best_so_far: list[tuple[Floats, Ints]] = []
        for child in self.fed[entry]:
            cost, _ = self._table(child, inflow)
            all_shares = np.broadcast_to(np.arange(self.shares + 1), cost.shape)
            best_so_far.append(_divide(best_so_far[-1][0], cost) if best_so_far else (cost, all_shares))
        return best_so_far

    def _give(self, entry: int, inflow: Floats, shares: int, space: Floats) -> None:
        """Go back down and write what was best; `inflow` is the resulting one."""
        divided = self._side_by_side(entry, inflow)
        for child, (_, choice) in zip(reversed(self.fed[entry]), reversed(divided)):
            share = int(choice[0, shares])
            held = int(self._table(child, inflow)[1][0, share])
            space[child] = held * self.share
            if child in self.fed:
                out = self._out(child, inflow)[:, held - 1] if self.emptied else inflow
                self._give(child, out, share - held, space)
            shares -= share


def _least_so_far(cost: Floats) -> tuple[Floats, Ints]:
    """For each `m` the least cost up to it, and where that is: what is not needed may be left."""
    least = np.minimum.accumulate(cost, axis=1)
    fresh = np.where(cost == least, np.arange(cost.shape[1])[None, :], 0)
    return least, np.maximum.accumulate(fresh, axis=1)


def _divide(left: Floats, right: Floats) -> tuple[Floats, Ints]:
    """The least `left[m - k] + right[k]` for each `m`, and that `k`."""
    size = left.shape[1]
    least = np.full_like(left, np.inf)
    choice = np.zeros(left.shape, np.int64)
    for k in range(1, size):
        _keep(least[:, k:], choice[:, k:], left[:, : size - k] + right[:, k : k + 1], k)
    return least, choice


def _keep(least: Floats, choice: Ints, cost: Floats, chosen: int) -> None:
    """Where this costs less, it is the choice; both arrays are written to."""
    better = cost < least
    np.copyto(least, cost, where=better)
    np.copyto(choice, chosen, where=better)
