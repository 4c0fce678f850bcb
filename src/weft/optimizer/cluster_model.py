"""A model of a cluster: the load of each node when keys are skewed, nodes are slow, and one is lost.

As in weft on Spark: rows are aggregated on any node, so that this work divides evenly; partials go to the bucket of
their group, and a bucket stays on the node with its state. A node is a machine like the calibrated one.

    native   rows * passes * row                            / nodes
    final    partials, kept partials, operations, answers   * the node's share of the groups with rows
    driver   batch + query * queries                        per batch, for any number of nodes
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
    """Per node: the more buckets, the more evenly hashing divides the groups."""
    slow: float = 0.01
    """Probability that a node is slow in a batch."""
    slowness: float = 3.0
    """How many times longer a slow node takes."""

    def __post_init__(self) -> None:
        for name in ("nodes", "buckets"):
            if getattr(self, name) < 1:
                raise BadCluster(f"a cluster needs at least one of its {name}, got {getattr(self, name)}")
        if not 0 <= self.slow <= 1 or self.slowness < 1:
            raise BadCluster(f"slow must be a probability and slowness at least 1; got {self.slow} and {self.slowness}")


@dataclass(frozen=True, slots=True)
class Keys:
    """Groups; the k-th most frequent has a share of the rows proportional to 1 / k^skew."""

    number: int = 1
    skew: float = 0.0

    def __post_init__(self) -> None:
        if self.number < 1 or self.skew < 0:
            raise BadCluster(
                f"keys need at least one group and a skew of at least 0; got {self.number} and {self.skew}"
            )

    def odds_per_slice(self, rows_a_slice: float) -> Floats:
        """The probability that each group has a row in a slice, if rows arrive independently."""
        weights = np.arange(1, self.number + 1, dtype=np.float64) ** -self.skew
        odds: Floats = -np.expm1(-rows_a_slice * weights / weights.sum())
        return odds


@dataclass(frozen=True, slots=True)
class ClusterLoad:
    """The load of a cluster, in seconds of a node per second of stream."""

    estimate: Estimate
    queries: int
    trees: int
    groups_per_slice: float
    """Mean number of groups that have a row in a slice."""
    hashed: Floats
    """Load per node, with buckets dealt out in order."""
    placed: Floats
    """Load per node, with each bucket on the least loaded node, the most expensive bucket first."""
    batch_seconds: Floats
    """Time of each simulated batch, some with slow nodes, over the stream time of a batch: above 1 it falls behind."""
    recovery_seconds: float
    """Until the other nodes have read the state of a lost node."""
    catch_up_seconds: float | None
    """Until the other nodes have caught up with the stream; None: they never do."""

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
    """`stream.groups` is computed from the keys: the number of groups that have a row in a slice."""
    random = np.random.default_rng(seed)
    odds, stream, took = _estimated(plan, weights, keys, stream)
    shares = _hashed(odds, cluster, random)
    node_of_bucket = np.arange(len(shares)) % cluster.nodes
    native = took.rows / cluster.nodes
    hashed, placed = (
        _by_node(shares, at, cluster.nodes) * _final(took) + native
        for at in (node_of_bucket, to_lowest(shares, np.zeros(cluster.nodes)))
    )
    slow = np.where(random.random((batches, cluster.nodes)) < cluster.slow, cluster.slowness, 1.0)
    # Any free node can process rows; a bucket waits for the node that it is on.
    of_rows = took.rows / (1 / slow).sum(axis=1)
    of_buckets = ((hashed - native) * slow).max(axis=1)
    recovery, catching = _lost(plan, weights, stream, shares, node_of_bucket, cluster, took)
    return ClusterLoad(
        took,
        len(plan.workload),
        len(plan.trees),
        float(odds.sum()),
        hashed,
        placed,
        took.batches + of_rows + of_buckets,
        recovery,
        catching,
    )


def least_nodes(
    plan: Plan, weights: Weights, cluster: Cluster, keys: Keys, stream: Stream, busy: float, most: int = 1 << 20
) -> int | None:
    """The smallest number of nodes of which none is busier than `busy`; None: more nodes do not help.

    With twice the nodes, a bucket has half the groups; but a group is never divided.
    """

    # The work does not depend on the number of nodes.
    odds, _, took = _estimated(plan, weights, keys, stream)

    def fits(nodes: int) -> bool:
        shares = _hashed(odds, Cluster(nodes, cluster.buckets), np.random.default_rng(1))
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
    """The probability that each group has a row in a slice, the stream with that many groups, and its estimate."""
    odds = keys.odds_per_slice(_rows_a_slice(plan, stream))
    stream = Stream(max(1.0, float(odds.sum())), stream.selectivity, stream.width, stream.batch_seconds)
    return odds, stream, estimate(plan, weights, stream)


def _hashed(odds: Floats, cluster: Cluster, random: np.random.Generator) -> Floats:
    """The share of each bucket, with groups hashed at random."""
    buckets = cluster.nodes * cluster.buckets
    bucket_of_group = random.integers(0, buckets, len(odds))
    shares: Floats = np.bincount(bucket_of_group, weights=odds, minlength=buckets).astype(np.float64) / odds.sum()
    return shares


def _rows_a_slice(plan: Plan, stream: Stream) -> float:
    rates = [float(feed.edge_rate) for feed in plan.feeds]
    return float(plan.rate) * stream.selectivity * len(rates) / sum(rates) if sum(rates) else 0.0


def _by_node(shares: Floats, node_of_bucket: Longs, nodes: int) -> Floats:
    return np.bincount(node_of_bucket, weights=shares, minlength=nodes).astype(np.float64)


def _final(took: Estimate) -> float:
    """The work of all buckets together."""
    return took.partials + took.kept + took.operations + took.answers + took.values


def _lost(
    plan: Plan,
    weights: Weights,
    stream: Stream,
    shares: Floats,
    node_of_bucket: Longs,
    cluster: Cluster,
    took: Estimate,
) -> tuple[float, float | None]:
    """The busiest node is lost: the others take its buckets, read their state, repeat the batch, and catch up.

    Reading a kept partial is assumed to take as long as reading one from Spark.
    """
    if cluster.nodes == 1:
        return 0.0, None
    lengths = (max(plan.workload.by_name[n].window.length for n in tree.queries) for tree in plan.trees)
    kept = sum(float(t.edge_rate) * stream.groups * length / MICROS for t, length in zip(plan.trees, lengths))
    loads = _by_node(shares, node_of_bucket, cluster.nodes)
    lost = int(loads.argmax())
    others, orphans = np.delete(loads, lost), shares[node_of_bucket == lost]
    moved = _by_node(orphans, to_lowest(orphans, others), len(others))
    recovery = float(moved.max() * kept * weights.partial)
    busy = took.batches + took.rows / len(others) + float((others + moved).max()) * _final(took)
    return recovery, (recovery + stream.batch_seconds) * busy / (1 - busy) if busy < 1 else None
