"""A model of a cluster: the load of each node when keys are skewed, nodes are slow, and one is lost.

As in weft on Spark: rows are aggregated on any node, so that this work divides evenly; partials go to the bucket of
their group, and a bucket stays on the node with its state. A node is a machine like the calibrated one.

    native   rows * passes * row                            / nodes
    final    partials, kept partials, operations, answers   * the node's share of the groups that have rows
    driver   batch + query * queries                        a batch, whatever the nodes
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.calibration.weights import Weights
from weft.model import PlanError
from weft.optimizer.cost.seconds import Estimate, Stream, estimate
from weft.optimizer.placement.longest_first import to_lowest
from weft.plan.logical import Plan

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

MICROS = 1_000_000


class BadCluster(PlanError):
    """Impossible nodes, keys or probabilities."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes, and what happens to them."""

    nodes: int = 1
    buckets: int = 4
    """Of a node: the more, the more evenly hashing divides the groups."""
    slow: float = 0.01
    """Probability that a node is slow in a batch."""
    slowness: float = 3.0
    """How many times longer a slow node takes."""

    def __post_init__(self) -> None:
        for name in ("nodes", "buckets"):
            if getattr(self, name) < 1:
                raise BadCluster(f"a cluster has at least one of its {name}, got {getattr(self, name)}")
        if not 0 <= self.slow <= 1 or self.slowness < 1:
            raise BadCluster(
                f"a node is slow with odds between 0 and 1, and then not faster; got {self.slow} and {self.slowness}"
            )


@dataclass(frozen=True, slots=True)
class Keys:
    """Groups, the k-th most frequent with a share of rows like 1 / k^skew."""

    number: int = 1
    skew: float = 0.0

    def __post_init__(self) -> None:
        if self.number < 1 or self.skew < 0:
            raise BadCluster(f"there is a group at least, and no skew below 0; got {self.number} and {self.skew}")

    def present(self, rows_a_slice: float) -> Floats:
        """The odds that each has a row in a slice, when rows come at any time."""
        weights = np.arange(1, self.number + 1, dtype=np.float64) ** -self.skew
        odds: Floats = -np.expm1(-rows_a_slice * weights / weights.sum())
        return odds


@dataclass(frozen=True, slots=True)
class ClusterLoad:
    """What a cluster has to do, in seconds of a node for each second of stream."""

    estimate: Estimate
    queries: int
    trees: int
    present: float
    """Groups that have a row in a slice, in the mean."""
    hashed: Floats
    """Of each node, its buckets as they come."""
    placed: Floats
    """The same with each bucket put on the least loaded node, the most expensive first."""
    batch_seconds: Floats
    """Of batches with slow nodes among the others, over the stream's seconds in a batch: above 1 it falls behind."""
    recovery_seconds: float
    """Until the state of a lost node is read again by the others."""
    catch_up_seconds: float | None
    """Until they have caught up with the stream; None: without it they never do."""

    @property
    def busiest(self) -> float:
        return float(self.hashed.max())

    @property
    def imbalance(self) -> float:
        """The busiest node over the mean."""
        return float(self.hashed.max() / self.hashed.mean())


def simulate(
    plan: Plan, weights: Weights, cluster: Cluster, keys: Keys, stream: Stream, batches: int = 1000, seed: int = 1
) -> ClusterLoad:
    """`stream.groups` is found from the keys: how many have a row in a slice."""
    random = np.random.default_rng(seed)
    present, stream, took = _estimated(plan, weights, keys, stream)
    shares = _hashed(present, cluster, random)
    homes = np.arange(len(shares)) % cluster.nodes
    native = took.rows / cluster.nodes
    hashed, placed = (
        _by_node(shares, at, cluster.nodes) * _final(took) + native
        for at in (homes, to_lowest(shares, np.zeros(cluster.nodes)))
    )
    slow = np.where(random.random((batches, cluster.nodes)) < cluster.slow, cluster.slowness, 1.0)
    # Rows go to any free node; a bucket waits for its own.
    of_rows = took.rows / (1 / slow).sum(axis=1)
    of_buckets = ((hashed - native) * slow).max(axis=1)
    recovery, catching = _lost(plan, weights, stream, shares, homes, cluster, took)
    return ClusterLoad(
        took,
        len(plan.workload),
        len(plan.trees),
        float(present.sum()),
        hashed,
        placed,
        took.batches + of_rows + of_buckets,
        recovery,
        catching,
    )


def least_nodes(
    plan: Plan, weights: Weights, cluster: Cluster, keys: Keys, stream: Stream, busy: float, most: int = 1 << 20
) -> int | None:
    """The fewest nodes of which none is busier than `busy`; None: more of them do not help.

    A cluster of twice the nodes has buckets of half the groups, but a group has one bucket.
    """

    # The work does not depend on the number of nodes.
    present, _, took = _estimated(plan, weights, keys, stream)

    def fits(nodes: int) -> bool:
        shares = _hashed(present, Cluster(nodes, cluster.buckets), np.random.default_rng(1))
        largest = _by_node(shares, np.arange(len(shares)) % nodes, nodes).max()
        return bool(took.batches + took.rows / nodes + largest * _final(took) <= busy)

    above = 1
    while not fits(above):
        above *= 2
        if above > most:
            return None
    below = above // 2
    while above - below > 1:
        middle = (above + below) // 2
        below, above = (below, middle) if fits(middle) else (middle, above)
    return above


def _estimated(plan: Plan, weights: Weights, keys: Keys, stream: Stream) -> tuple[Floats, Stream, Estimate]:
    """The odds that each group has a row in a slice, the stream with as many groups, and what that takes."""
    present = keys.present(_rows_a_slice(plan, stream))
    stream = Stream(max(1.0, float(present.sum())), stream.selectivity, stream.width, stream.batch_seconds)
    return present, stream, estimate(plan, weights, stream)


def _hashed(present: Floats, cluster: Cluster, random: np.random.Generator) -> Floats:
    """The share of each bucket, groups as their hashes fall."""
    buckets = cluster.nodes * cluster.buckets
    places = random.integers(0, buckets, len(present))
    shares: Floats = np.bincount(places, weights=present, minlength=buckets).astype(np.float64) / present.sum()
    return shares


def _rows_a_slice(plan: Plan, stream: Stream) -> float:
    rates = [float(feed.edge_rate) for feed in plan.feeds]
    return float(plan.rate) * stream.selectivity * len(rates) / sum(rates) if sum(rates) else 0.0


def _by_node(shares: Floats, homes: Longs, nodes: int) -> Floats:
    return np.bincount(homes, weights=shares, minlength=nodes).astype(np.float64)


def _final(took: Estimate) -> float:
    """What a bucket does, all buckets together."""
    return took.partials + took.kept + took.operations + took.answers + took.values


def _lost(
    plan: Plan,
    weights: Weights,
    stream: Stream,
    shares: Floats,
    homes: Longs,
    cluster: Cluster,
    took: Estimate,
) -> tuple[float, float | None]:
    """The busiest node is lost: the others take its buckets, read their state, repeat the batch, and catch up.

    A kept partial that is read takes no longer than one that comes from Spark.
    """
    if cluster.nodes == 1:
        return 0.0, None
    lengths = (max(plan.workload.by_name[n].window.length for n in tree.queries) for tree in plan.trees)
    kept = sum(float(t.edge_rate) * stream.groups * length / MICROS for t, length in zip(plan.trees, lengths))
    loads = _by_node(shares, homes, cluster.nodes)
    lost = int(loads.argmax())
    others, orphans = np.delete(loads, lost), shares[homes == lost]
    taken = _by_node(orphans, to_lowest(orphans, others), len(others))
    recovery = float(taken.max() * kept * weights.partial)
    busy = took.batches + took.rows / len(others) + float((others + taken).max()) * _final(took)
    return recovery, (recovery + stream.batch_seconds) * busy / (1 - busy) if busy < 1 else None
