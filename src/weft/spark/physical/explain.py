"""A physical plan for people: its trees and their cost, the passes over rows, and the phantoms that feed them."""

from __future__ import annotations

from typing import Any, Literal

from weft.optimizer.phantoms.relation import Relation, show
from weft.plan import explain, to_html, to_json
from weft.plan.passes import PassSharing, SharedPass
from weft.plan.value_memory import warn_of_synopses
from weft.spark.physical.plan import HashTables, NativeFeed, PhysicalPlan

Format = Literal["text", "json", "html"]


def explain_physical(physical: PhysicalPlan, format: Format = "text") -> Any:
    """Text, a JSON value, or a page."""
    shared = sharing(physical)
    if format == "json":
        return {**to_json(physical.logical), "sharing": shared.to_json()}
    if format == "html":
        return to_html(physical.logical, shared.to_html())
    values = warn_of_synopses(physical.logical, physical.synopsis_limit)
    return "\n".join(
        [explain(physical.logical), *_classes(physical), *shared.signatures(), *_partials(physical), *values]
    )


def sharing(physical: PhysicalPlan) -> PassSharing:
    choice, means = physical.partials.choice, physical.partials.means

    def shared_pass(number: int, feed: NativeFeed, above: Relation | None) -> SharedPass:
        return SharedPass(
            keys=tuple(feed.keys.values()),
            queries=sum(len(tree.queries) for tree in feed.layout.trees),
            trees=len(feed.layout.trees),
            filters=len(feed.signature.filters),
            bits=feed.signature.width,
            partials=None if choice is None else choice.group_bys[number].partials,
            fed_by=None if above is None else show(above),
        )

    fed = zip(physical.feeds, physical.fed_by, strict=True)
    passes = tuple(shared_pass(number, feed, above) for number, (feed, above) in enumerate(fed))
    if isinstance(means, HashTables):
        nanoseconds = 1e9 * means.cost, 1e9 * means.unshared
        return PassSharing(passes, means.configuration, *nanoseconds, unit="ns in tables", means="lfta")
    if choice is None:
        return PassSharing(passes)
    return PassSharing(passes, str(choice.configuration), choice.cost, choice.unshared)


def _classes(physical: PhysicalPlan) -> list[str]:
    """Where filters are in classes: how many there are of each, by the keys of their grouping."""
    if len(physical.feeds) <= len(physical.logical.feeds):
        return []
    lines = []
    for number, keys in enumerate(physical.groupings):
        sizes = [len(f.signature.filters) for f in physical.feeds if f.layout.grouping.number == number]
        if len(sizes) > 1:
            by = f" by {', '.join(keys)}" if keys else ""
            lines.append(f"  passes{by}  {len(sizes)}, with {', '.join(map(str, sizes))} filters")
    return lines


def _partials(physical: PhysicalPlan) -> list[str]:
    """What feeds what, as far as groups were counted, and what that saves."""
    partials = physical.partials
    if isinstance(partials.means, HashTables):
        return _hash_tables(partials.means)
    if partials.choice is None:
        return []
    line = f"  fed  {partials.choice.configuration}"
    if partials.priced:
        line += f"   a row costs {partials.choice.cost:.2f} probes, {partials.choice.unshared:.2f} without phantoms"
    return [line]


def _hash_tables(chosen: HashTables) -> list[str]:
    tables = [table for root in chosen.roots for table in root.walk()]
    cost, unshared, arrival = (f"{1e9 * s:.0f}" for s in (chosen.cost, chosen.unshared, chosen.costs.arrival))
    return [
        f"  tables  {chosen.configuration}   a row costs {cost} ns, {unshared} without phantoms, "
        f"and {arrival} to come there",
        f"  buckets  {', '.join(f'{table.buckets:,}' for table in tables)}",
    ]
