"""Which queries share a tree, which trees share a pass, and what that costs; `optimize` is the entry."""

from weft.optimizer.cost.omega import TECHNIQUES
from weft.optimizer.cost.operations import Cost, Statistics
from weft.optimizer.cost.seconds import Stream
from weft.optimizer.optimizer import COSTS, DEFAULT_RATE, CannotOptimize, exact_rate, optimize
from weft.optimizer.strategies import EXHAUSTIVE_LIMIT, STRATEGIES, Strategy, TooManyQueries

__all__ = [
    "COSTS",
    "DEFAULT_RATE",
    "EXHAUSTIVE_LIMIT",
    "STRATEGIES",
    "TECHNIQUES",
    "CannotOptimize",
    "Cost",
    "Statistics",
    "Strategy",
    "Stream",
    "TooManyQueries",
    "exact_rate",
    "optimize",
]
