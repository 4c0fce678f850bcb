"""One module per family of aggregates. All modules here are imported: a new aggregate is a new file.

A module has `KINDS`, the kinds of components that it defines, and `AGGREGATES`, its aggregates by SQL name; either may
be missing.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from weft.aggregates.aggregate import AGGREGATES, add_family
from weft.aggregates.kind import KINDS

for _module in (import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__)):
    add_family(getattr(_module, "KINDS", ()), getattr(_module, "AGGREGATES", {}))

BUILT_IN = frozenset(AGGREGATES)
"""Names that users' own aggregates cannot have."""

BUILT_IN_KINDS = frozenset(KINDS)
"""Kinds that every process has. Others are sent to executors with a job's layout."""
