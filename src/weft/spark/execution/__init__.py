"""Micro-batches: how the job starts, advances, keeps its watermark, rescales and stops."""

import logging

# A library leaves to its users where messages go: without a handler of theirs, nothing is printed.
logging.getLogger("weft").addHandler(logging.NullHandler())
