"""A placement as text and JSON: the load of each node, and how even the loads are."""

from __future__ import annotations

from typing import Any

from weft.optimizer.placement.nodes import Placement
from weft.plan import format


def explain_placement(placement: Placement) -> str:
    """One line per node."""
    mean = placement.total / len(placement.nodes)
    over = f"   {float(placement.maximum / mean):.2f} times the mean" if mean else ""
    lines = [
        f"Placed  {placement.optimizer}  {len(placement.nodes)} nodes  total {format.amount(placement.total)} ops/s  "
        f"most {format.amount(placement.maximum)}{over}"
    ]
    for number, (trees, cost) in enumerate(zip(placement.trees, placement.costs, strict=True), 1):
        queries = [name for tree in trees for name in tree.queries]
        lines.append(f"  node {number}  {format.amount(cost)} ops/s  trees {len(trees)}  queries {_some(queries)}")
    return "\n".join(lines)


def placement_json(placement: Placement) -> dict[str, Any]:
    return {
        "optimizer": placement.optimizer,
        "total": float(placement.total),
        "maximum": float(placement.maximum),
        "nodes": [
            {"cost": float(cost), "trees": [{"queries": list(tree.queries)} for tree in trees]}
            for trees, cost in zip(placement.trees, placement.costs, strict=True)
        ],
    }


def _some(names: list[str], most: int = 8) -> str:
    """
    >>> _some(["a", "b"]), _some(["a", "b", "c"], most=2)
    ('a, b', 'a, b and 1 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "") or "none"
