"""What the page draws: stream, phantoms, passes, trees and queries, with what flows through each of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from pydantic import BaseModel, Field

from weft.model import ACQ
from weft.plan import Feed, Plan, Tree, format, query_costs
from weft.plan.attribution import pass_cost
from weft.spark import Run


class PlannedQuery(BaseModel):
    name: str
    cost: float = Field(description="Its part of the plan's cost, in operations per second.")
    about: str = Field(description="Its aggregates and window.")
    extras: str = Field(description="Its keys, filter and offset.")


class PlannedTree(BaseModel):
    tree: int
    cost: float
    edge_rate: float = Field(description="Slices per second.")
    omega: float = Field(description="Final operations per slice.")
    final_cost: float
    technique: str
    why: list[str] = Field(description="The technique of each operator, and by how much it is the fastest.")
    queries: list[PlannedQuery]


class Pass(BaseModel):
    """One native pass over the rows, or a roll-up from a phantom."""

    keys: list[str]
    filters: int = Field(description="Distinct filters of its queries: the bits of a signature.")
    classes: int = Field(description="Passes that its filters are split into.")
    phantom: int | None = Field(description="The phantom that it is rolled up from; null: it is made from rows.")
    cost: float
    pass_cost: float
    fold_cost: float
    edge_rate: float
    trees: list[PlannedTree]


class Phantom(BaseModel):
    keys: list[str]
    cost: float = Field(description="What the passes that it feeds cost together.")


class Picture(BaseModel):
    changes: int = Field(description="How often the plan has changed in this run.")
    source: str
    strategy: str
    rate: float
    cost: float
    unshared: float = Field(description="What the same queries would cost with one tree per query.")
    saves: float
    phantom_cost: float | None = Field(description="Probes per row with phantoms; null: groups were not counted yet.")
    phantom_unshared: float | None
    said: list[str] = Field(description="The closest merge that was not made, and what is guaranteed about the plan.")
    phantoms: list[Phantom]
    passes: list[Pass]


def picture(run: Run) -> Picture:
    plan, native = run.plan(), run.passes()
    costs = query_costs(plan)
    pass_of = {name: number for number, one in enumerate(native) for name in one["queries"]}
    phantoms = {tuple(one["phantom"]): 0.0 for one in native if one["phantom"]}
    passes = []
    for feed in plan.feeds:
        names = [name for tree in feed.trees for name in plan.trees[tree].queries]
        cost = float(sum((costs[name] for name in names), Fraction(0)))
        own = [native[n] for n in sorted({pass_of[name] for name in names if name in pass_of})]
        phantom = next((tuple(one["phantom"]) for one in own if one["phantom"]), None)
        if phantom is not None:
            phantoms[phantom] += cost
        passes.append(
            Pass(
                keys=list(feed.keys),
                filters=len({plan.workload.by_name[name].where for name in names} - {None}),
                classes=max(1, len(own)),
                phantom=None if phantom is None else list(phantoms).index(phantom),
                cost=cost,
                pass_cost=float(pass_cost(plan, feed)),
                fold_cost=float(feed.fold_cost),
                edge_rate=float(feed.edge_rate),
                trees=list(_trees(plan, feed, costs)),
            )
        )
    roll_up = run.physical.partials.choice
    priced = roll_up if roll_up is not None and roll_up.unshared > 0 else None
    return Picture(
        changes=run.metrics()["plan_changes"],
        source=plan.workload[0].source,
        strategy=plan.strategy,
        rate=float(plan.rate),
        cost=float(plan.cost),
        unshared=float(plan.unshared),
        saves=float(1 - plan.cost / plan.unshared) if plan.unshared else 0.0,
        phantom_cost=None if priced is None else priced.cost,
        phantom_unshared=None if priced is None else priced.unshared,
        said=list(_remarks(plan)),
        phantoms=[Phantom(keys=list(keys), cost=cost) for keys, cost in phantoms.items()],
        passes=passes,
    )


def _trees(plan: Plan, feed: Feed, costs: dict[str, Fraction]) -> Iterator[PlannedTree]:
    for number in feed.trees:
        tree = plan.trees[number]
        yield PlannedTree(
            tree=number + 1,
            cost=float(sum((costs[name] for name in tree.queries), Fraction(0))),
            edge_rate=float(tree.edge_rate),
            omega=float(tree.omega),
            final_cost=float(tree.final_cost),
            technique=tree.technique,
            why=list(_why(tree)),
            queries=[_query(plan.workload.by_name[name], costs[name]) for name in tree.queries],
        )


def _query(query: ACQ, cost: Fraction) -> PlannedQuery:
    window = f"{format.duration(query.shown.length)} every {format.duration(query.shown.slide)}"
    about = f"{format.calls(query)}, {window}"
    return PlannedQuery(name=query.name, cost=float(cost), about=about, extras=format.extras(query))


def _why(tree: Tree) -> Iterator[str]:
    for served in tree.serving:
        reason = f"{format.operator(served.operator)} by {served.technique}"
        if served.nanoseconds is not None and served.next_nanoseconds is not None:
            reason += f": {served.nanoseconds:,.3g} ns, {served.next_best} {served.next_nanoseconds:,.3g}"
        yield reason


def _remarks(plan: Plan) -> Iterator[str]:
    if plan.refused is not None:
        more = float(plan.refused.cost - plan.cost)
        yield (
            f"closest merge not made: tree {plan.refused.left + 1} with tree {plan.refused.right + 1}, "
            f"for {more:+,.2f} operations per second"
        )
    yield from (f"{word}: {sentence}" for word, sentence in format.guarantee(plan))
