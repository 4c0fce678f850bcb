"""The final aggregation: state, windows and answers of a bucket; Arrow in, Arrow out, no Spark."""

from weft.engine.advance import Step, advance
from weft.engine.layout import FOREVER, CallLayout, FeedLayout, GroupingLayout, Layout, QueryLayout, TreeLayout
from weft.engine.state.slices import State, to_table

__all__ = [
    "FOREVER",
    "CallLayout",
    "FeedLayout",
    "GroupingLayout",
    "Layout",
    "QueryLayout",
    "State",
    "Step",
    "TreeLayout",
    "advance",
    "to_table",
]
