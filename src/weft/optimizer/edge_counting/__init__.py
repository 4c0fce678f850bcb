"""How many slices a union of edge classes cuts: exactly, or between two bounds where counting takes too long."""

from weft.optimizer.edge_counting.bitmap import EdgeBitmap
from weft.optimizer.edge_counting.rates import COUNTERS, Density, density, edge_rate, edge_rate_between

__all__ = ["COUNTERS", "Density", "EdgeBitmap", "density", "edge_rate", "edge_rate_between"]
