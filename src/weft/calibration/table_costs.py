"""What a row and a partial take on one machine, in Spark's own aggregation and in bounded tables beside it.

`weft calibrate` measures them. Without it they are rough.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from weft.calibration.weights import BadWeights, weights_file
from weft.optimizer.phantoms.statistics import Prices


@dataclass(frozen=True, slots=True)
class TablePrices:
    """Seconds of one core."""

    row: float
    """A row that is taken to a table outside Spark."""
    probe: float
    """c1: a look at a bucket of such a table."""
    eviction: float
    """c2: a partial that leaves it, goes to its bucket and is merged."""
    native_probe: float
    """A row in Spark's aggregation."""
    native_eviction: float
    """A partial that leaves that one."""

    @property
    def tables(self) -> Prices:
        return Prices(self.probe, self.eviction)

    @property
    def native(self) -> Prices:
        """In probes."""
        return Prices(1.0, self.native_eviction / self.native_probe)


DEFAULT_PRICES = TablePrices(row=6e-7, probe=6e-8, eviction=2e-6, native_probe=1.4e-7, native_eviction=1.1e-6)


def prices_file(weights: Path | None = None) -> Path:
    """Beside the weights: a file of its own, so that either can be measured alone."""
    return (weights or weights_file()).with_name("tables.json")


def save_prices(prices: TablePrices, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".tmp")
    partial.write_text(json.dumps(asdict(prices), indent=2) + "\n")
    partial.replace(path)


def load_prices(path: Path | None = None) -> TablePrices:
    """Those of this machine, if it was measured."""
    path = path or prices_file()
    if not path.exists():
        return DEFAULT_PRICES
    try:
        found = json.loads(path.read_text())
        prices = TablePrices(**{f.name: float(found[f.name]) for f in fields(TablePrices)})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadWeights(f"{path} holds no prices ({error}); run `weft calibrate` again, or delete it") from None
    if min(asdict(prices).values()) <= 0:
        raise BadWeights(f"{path} holds prices that are not above 0; run `weft calibrate` again, or delete it")
    return prices
