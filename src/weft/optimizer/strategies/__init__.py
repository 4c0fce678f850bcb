"""Which queries share a tree: searches with one signature, one a file."""

from __future__ import annotations

from collections.abc import Mapping

from weft.optimizer.strategies.building import Strategy
from weft.optimizer.strategies.no_share import no_share
from weft.optimizer.strategies.shared import shared
from weft.optimizer.strategies.tri_weave import tri_weave
from weft.optimizer.strategies.weave_share import weave_share

STRATEGIES: Mapping[str, Strategy] = {
    "no_share": no_share,
    "shared": shared,
    "weave_share": weave_share,
    "tri_weave": tri_weave,
}

__all__ = ["STRATEGIES", "Strategy"]
