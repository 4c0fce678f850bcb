"""How much longer than usual the tests that draw at random run: `make soak` sets it."""

from __future__ import annotations

import os

SOAK = int(os.environ.get("WEFT_SOAK", "1"))

KILLS = int(os.environ.get("WEFT_KILLS", 12 * SOAK))
"""How often one job is killed in one run: `make kills` has it done a hundred times."""
