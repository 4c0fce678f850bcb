"""How much longer than usual the tests that draw at random run: `make soak` sets it."""

from __future__ import annotations

import os

SOAK = int(os.environ.get("WEFT_SOAK", "1"))
