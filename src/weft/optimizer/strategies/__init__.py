"""Which queries share a tree: searches with one signature, one per file."""

from __future__ import annotations

from collections.abc import Mapping

from weft.optimizer.strategies.auto import auto
from weft.optimizer.strategies.base import Strategy
from weft.optimizer.strategies.contiguous import contiguous
from weft.optimizer.strategies.exhaustive import EXHAUSTIVE_LIMIT, TooManyQueries, exhaustive
from weft.optimizer.strategies.insert_then_weave import insert_then_weave
from weft.optimizer.strategies.local_search import LOCAL_SEARCHES
from weft.optimizer.strategies.no_share import no_share
from weft.optimizer.strategies.pairing import pairing
from weft.optimizer.strategies.random_share import SEED, random_share
from weft.optimizer.strategies.shared import shared
from weft.optimizer.strategies.tri_weave import tri_weave
from weft.optimizer.strategies.weave_share import weave_share

STRATEGIES: Mapping[str, Strategy] = {
    "no_share": no_share,
    "shared": shared,
    "weave_share": weave_share,
    "tri_weave": tri_weave,
    "auto": auto,
    "exhaustive": exhaustive,
    "pairing": pairing,
    "contiguous": contiguous,
    "insert_then_weave": insert_then_weave,
    "random": random_share(SEED),
    **LOCAL_SEARCHES,
}

__all__ = ["EXHAUSTIVE_LIMIT", "STRATEGIES", "Strategy", "TooManyQueries"]
