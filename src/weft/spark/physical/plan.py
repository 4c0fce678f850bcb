"""The physical plan: a plan bound to the types of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from weft.engine import Layout
from weft.spark.physical.backfilled import BackfilledPartials
from weft.spark.physical.columns import PhysicalColumns
from weft.spark.physical.filter_classes import FilterClasses
from weft.spark.physical.rollup import Phantoms
from weft.spark.physical.tables import NativeFeed


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """A plan bound to a stream: the native expressions for Spark and the layout for the buckets."""

    layout: Layout
    feeds: tuple[NativeFeed, ...]
    event_micros: str
    columns: PhysicalColumns
    groupings: tuple[tuple[str, ...], ...]
    """The key expressions of each grouping, by its number."""
    replayed: tuple[BackfilledPartials, ...] = ()
    """Partials of the past that the next batch takes in."""
    phantoms: Phantoms = field(default_factory=Phantoms, compare=False)
    classes: tuple[FilterClasses, ...] = ()
    """Of the filters of each feed of the plan."""

    @property
    def homes(self) -> dict[int, tuple[int, ...]]:
        """The buckets that the partials of each feed go to, where its trees have homes."""
        found = {f.layout.number: {t.home for t in f.layout.trees if t.home is not None} for f in self.feeds}
        return {number: tuple(sorted(homes)) for number, homes in found.items() if homes}

    def with_layout(self, layout: Layout) -> PhysicalPlan:
        feeds = tuple(replace(native, layout=feed) for native, feed in zip(self.feeds, layout.feeds, strict=True))
        return replace(self, layout=layout, feeds=feeds)
