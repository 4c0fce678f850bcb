"""ES: the best of all divisions of the memory into integer shares, with at least one share per table.

There are too many to try for 7 tables and 100 shares (10**9 divisions). But the best division below a table depends
only on the space below it and on how many groups it evicts, so dynamic programming goes from the leaves up:

    best(table, inflow)[m] = min over b of  inflow * c1 + out * own + best(fed tables, out)[m - b],
    out = inflow * x(b) + times emptied * buckets(b) / rows

The best of several tables side by side is a minimum over how they divide their shares. If emptying costs nothing, the
cost is proportional to the inflow and is computed once; otherwise it is computed for each inflow that can occur.
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
"""Most inflows to compute if emptying has a cost: three levels have 100 ** 2. Deeper forests get coarser shares."""


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
            raise TooManyTables(
                f"{forests.tables} tables cannot each have one of {shares} shares; use another allocation"
            )
        self.forests, self.prices, self.shares = forests, prices, shares
        self.share = memory / shares
        entries = range(self.begin, self.begin + forests.tables)
        self.fed: dict[int, list[int]] = {}
        for entry in entries:
            self.fed.setdefault(int(forests.up[entry]), []).append(entry)
        self.times = forests.eviction_rates() / forests.stream.rows if self.emptied else np.zeros(len(forests.up))
        self.space_by_shares = np.arange(1, shares + 1) * self.share
        self.solved: dict[int, tuple[Floats, Ints]] = {}

    def write(self, space: Floats) -> None:
        source = self.begin + self.forests.tables
        self._give(source, np.array([1.0]), self.shares, space)

    def _rates(self, entry: int) -> Floats:
        forests = self.forests
        rates = collision_rate(forests.groups[entry], self.space_by_shares / forests.widths[entry])
        rates_in_flows: Floats = rates / forests.flow[entry]
        return rates_in_flows

    def _out(self, entry: int, inflow: Floats) -> Floats:
        """Groups that leave the table, per inflow and number of shares."""
        buckets = np.maximum(self.space_by_shares / self.forests.widths[entry], 1.0)
        out: Floats = inflow[:, None] * self._rates(entry)[None, :] + (self.times[entry] * buckets)[None, :]
        return out

    def _table(self, entry: int, inflow: Floats) -> tuple[Floats, Ints]:
        """The least cost per inflow and `m`, and the shares that the table itself has then."""
        if self.emptied:
            return self._searched(entry, inflow)
        if entry not in self.solved:  # all inflows are the same one here
            self.solved[entry] = self._searched(entry, inflow)
        return self.solved[entry]

    def _searched(self, entry: int, inflow: Floats) -> tuple[Floats, Ints]:
        out = self._out(entry, inflow)
        own = self.forests.is_query[entry] * self.prices.eviction
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
        for own_shares in range(1, self.shares):
            cost = (
                probes + out[:, own_shares - 1, None] * own + below[:, own_shares - 1, : self.shares + 1 - own_shares]
            )
            _keep(least[:, own_shares:], choice[:, own_shares:], cost, own_shares)
        return least, choice

    def _side_by_side(self, entry: int, inflow: Floats) -> list[tuple[Floats, Ints]]:
        """For the first 1, 2, ... tables that `entry` feeds: the least cost per `m`, and the shares of the last one."""
        best_so_far: list[tuple[Floats, Ints]] = []
        for child in self.fed[entry]:
            cost, _ = self._table(child, inflow)
            all_shares = np.broadcast_to(np.arange(self.shares + 1), cost.shape)
            best_so_far.append(_divide(best_so_far[-1][0], cost) if best_so_far else (cost, all_shares))
        return best_so_far

    def _give(self, entry: int, inflow: Floats, shares: int, space: Floats) -> None:
        """Go back down and write the best space of each table; `inflow` is the one of that division."""
        divided = self._side_by_side(entry, inflow)
        for child, (_, choice) in zip(reversed(self.fed[entry]), reversed(divided)):
            child_shares = int(choice[0, shares])
            own_shares = int(self._table(child, inflow)[1][0, child_shares])
            space[child] = own_shares * self.share
            if child in self.fed:
                out = self._out(child, inflow)[:, own_shares - 1] if self.emptied else inflow
                self._give(child, out, child_shares - own_shares, space)
            shares -= child_shares


def _least_so_far(cost: Floats) -> tuple[Floats, Ints]:
    """For each `m` the least cost up to it, and where it is: shares may stay unused."""
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
    """Write `chosen` and its cost where it costs less than the best so far."""
    better = cost < least
    np.copyto(least, cost, where=better)
    np.copyto(choice, chosen, where=better)
