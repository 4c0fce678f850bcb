"""The best pairs of a row, and common edges that are read from a folded bitmap instead of counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.edge_counting import EdgeBitmap
from weft.optimizer.edge_counting.folded_bitmap import Folds
from weft.optimizer.merge.bundle import Bundle
from weft.optimizer.merge.part import Part


@dataclass(slots=True)
class Listed:
    """The best pairs of a row that are still to be opened, by ascending bound; unlisted pairs have no higher bound."""

    bounds: NDArray[np.float64]
    columns: NDArray[np.int32]
    rest: float
    """No unlisted pair has a higher bound."""
    left: int

    @classmethod
    def of(cls, bounds: NDArray[np.float64], columns: NDArray[np.integer], rest: float) -> Listed:
        order = np.argsort(bounds)
        return cls(bounds[order], columns[order].astype(np.int32), rest, len(order))

    def __len__(self) -> int:
        return self.left

    @property
    def top(self) -> float:
        return float(self.bounds[self.left - 1]) if self.left else self.rest

    @property
    def column(self) -> int:
        return int(self.columns[self.left - 1])

    def pop(self) -> None:
        self.left -= 1

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Keep the pairs where the mask is true; it is as long as `columns`."""
        mask = mask[: self.left]
        self.bounds, self.columns = self.bounds[: self.left][mask], self.columns[: self.left][mask]
        self.left = len(self.columns)

    def joined(self, entries: Sequence[tuple[float, int]]) -> Listed:
        """With these entries inserted in order. Entries below `rest` are dropped: they wait with the unlisted pairs."""
        entries = [entry for entry in entries if entry[0] >= self.rest]
        bounds = np.append(self.bounds[: self.left], [bound for bound, _ in entries])
        columns = np.append(self.columns[: self.left], np.array([column for _, column in entries], np.int32))
        return Listed.of(bounds, columns, self.rest)


@dataclass(frozen=True, slots=True)
class FoldedReading:
    """A bitmap folded to the slides of windows: tells how many edges each window has in common with a merged part."""

    bitmap: EdgeBitmap
    folds: Folds
    residues: NDArray[np.intp]
    """Of both classes of each bundle; 0 where it has only one."""

    @classmethod
    def of(cls, bitmap: EdgeBitmap, bundles: Sequence[Bundle]) -> FoldedReading | None:
        """None where there are bundles of several parts, or where folding is more work than counting."""
        if any(len(bundle.members) > 1 or not bundle.slide for bundle in bundles):
            return None
        folds = bitmap.folds(bundle.slide for bundle in bundles)
        if folds is None:
            return None
        residues = np.zeros((2, len(bundles)), np.intp)
        for i, bundle in enumerate(bundles):
            for k, edge_class in enumerate(bundle.members[0].edges.classes):
                residues[k, i] = bitmap.residue(edge_class, folds)
        return cls(bitmap, folds, residues)

    def common(self, part: Part) -> NDArray[np.float64]:
        """Edges per second that it has in common with each window."""
        return self.bitmap.read(part, self.folds, self.residues)
