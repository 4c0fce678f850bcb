"""What a bound plan shares, for people: its passes, their signatures, and the phantoms that rows were last sent to."""

from __future__ import annotations

from weft.optimizer.phantoms.relation import Relation, show
from weft.plan.passes import PassSharing, SharedPass
from weft.spark.physical.plan import PhysicalPlan
from weft.spark.physical.tables import NativeFeed


def sharing(physical: PhysicalPlan) -> PassSharing:
    phantoms = physical.phantoms
    found = phantoms.found if phantoms.found and len(phantoms.found.tables) == len(physical.feeds) else None
    lfta = phantoms.lfta

    def one(number: int, feed: NativeFeed, above: Relation | None) -> SharedPass:
        return SharedPass(
            keys=tuple(feed.keys.values()),
            queries=sum(len(tree.queries) for tree in feed.layout.trees),
            trees=len(feed.layout.trees),
            filters=len(feed.signature.filters),
            bits=feed.signature.width,
            partials=None if found is None else found.asked[number].partials,
            fed_by=None if above is None else show(above),
        )

    fed = zip(physical.feeds, phantoms.above(physical.feeds), strict=True)
    passes = tuple(one(number, feed, above) for number, (feed, above) in enumerate(fed))
    if lfta is not None:
        nanoseconds = 1e9 * lfta.cost, 1e9 * lfta.unshared
        return PassSharing(passes, lfta.configuration, *nanoseconds, unit="ns in tables", means="lfta")
    if found is None:
        return PassSharing(passes)
    return PassSharing(passes, str(found.configuration), found.cost, found.unshared)
