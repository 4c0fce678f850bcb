"""Which bucket a group is in: groups are hashed to slots, and slots are assigned to buckets by weight.

Buckets are the partitions of the final stage. A group stays in its bucket, where its state is, until a restart with
another number of buckets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.optimizer.placement.longest_first import to_lowest

SLOTS = 1024
"""The number of slots: few enough to write all of them to a file."""

FEWEST = 8
"""The least slots per bucket; with more buckets than this allows, groups are hashed to buckets directly."""


@dataclass(frozen=True, slots=True)
class BucketMap:
    """The bucket of each slot."""

    buckets: int
    bucket_by_slot: tuple[int, ...] = ()
    """Empty: groups are hashed to buckets directly."""

    @classmethod
    def weighed(cls, buckets: int, weights: Mapping[int, float]) -> BucketMap:
        """Slots by weight, the heaviest first, each to the bucket with the least weight so far.

        Slots without groups have a small weight too, so that groups which arrive later are distributed as well.
        """
        if buckets * FEWEST > SLOTS:
            return cls(buckets)
        measured = np.array([float(weights.get(slot, 0.0)) for slot in range(SLOTS)])
        least = max(float(measured.sum()) / (100 * SLOTS), 1e-9)
        return cls(buckets, tuple(int(bucket) for bucket in to_lowest(measured + least, np.zeros(buckets))))

    def to_json(self) -> dict[str, Any]:
        return {"buckets": self.buckets, "homes": list(self.bucket_by_slot)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BucketMap:
        return cls(int(value["buckets"]), tuple(value["homes"]))

    def bucket(self, hashed: str) -> str:
        """The bucket as a native expression, over the one that hashes the group's keys."""
        if not self.bucket_by_slot:
            return f"CAST(pmod({hashed}, {self.buckets}) AS INT)"
        # One literal that Spark folds to an array. An array of a thousand literals would be a thousand nodes of the
        # plan, and every rule of the analyser would visit each of them in every batch.
        buckets = f"CAST(split('{','.join(map(str, self.bucket_by_slot))}', ',') AS ARRAY<INT>)"
        return f"element_at({buckets}, {slot(hashed)} + 1)"


def group_hash(keys: Sequence[str]) -> str:
    """A hash of the group's keys. Without keys the bucket is that of the tree; the hash is used in a rescale only."""
    return f"hash({', '.join(keys)})" if keys else "0"


def slot(hashed: str) -> str:
    return f"CAST(pmod({hashed}, {SLOTS}) AS INT)"
