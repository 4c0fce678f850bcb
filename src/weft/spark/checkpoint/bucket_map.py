"""Which bucket a group is in: groups are hashed to slots, and each slot has its bucket by what its groups weigh.

Buckets are the partitions of the final stage. A group stays in its bucket, where its state is, until a restart moves
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.optimizer.placement.longest_first import to_lowest

SLOTS = 1024
"""So many shares can be placed: few enough to write down."""

FEWEST = 8
"""Slots that a bucket must have to be worth placing; with more buckets than that groups are hashed to them."""


@dataclass(frozen=True, slots=True)
class BucketMap:
    """Where each slot is."""

    buckets: int
    homes: tuple[int, ...] = ()
    """The bucket of each slot; none: groups are hashed to buckets, as they come."""

    @classmethod
    def weighed(cls, buckets: int, weights: Mapping[int, float]) -> BucketMap:
        """Slots by what they weigh, the heaviest first, each to the bucket that has least.

        What was not seen weighs a little too, so that groups which come later are spread as well.
        """
        if buckets * FEWEST > SLOTS:
            return cls(buckets)
        seen = np.array([float(weights.get(slot, 0.0)) for slot in range(SLOTS)])
        unseen = max(float(seen.sum()) / (100 * SLOTS), 1e-9)
        return cls(buckets, tuple(int(home) for home in to_lowest(seen + unseen, np.zeros(buckets))))

    def to_json(self) -> dict[str, Any]:
        return {"buckets": self.buckets, "homes": list(self.homes)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BucketMap:
        return cls(int(value["buckets"]), tuple(value["homes"]))

    def bucket(self, hashed: str) -> str:
        """The bucket as a native expression, over the one that hashes the group's keys."""
        if not self.homes:
            return f"CAST(pmod({hashed}, {self.buckets}) AS INT)"
        # One literal that Spark folds to an array. An array of a thousand literals would be a thousand nodes of the
        # plan, and every rule of the analyser would visit each of them in every batch.
        homes = f"CAST(split('{','.join(map(str, self.homes))}', ',') AS ARRAY<INT>)"
        return f"element_at({homes}, {slot(hashed)} + 1)"


def group_hash(keys: Sequence[str]) -> str:
    """A hash of the group's keys. A group without keys is where its tree is, and this only where state is moved."""
    return f"hash({', '.join(keys)})" if keys else "0"


def slot(hashed: str) -> str:
    return f"CAST(pmod({hashed}, {SLOTS}) AS INT)"
