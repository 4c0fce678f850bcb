"""What the terms of a plan's cost take on one machine, in seconds; `weft calibrate` measures them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from weft.model import WeftError


class BadWeights(WeftError):
    """A file of weights that cannot be used."""


@dataclass(frozen=True, slots=True)
class ValueWeights:
    """Of the values that percentiles, distinct counts and the like keep: partials of no fixed size."""

    sent: float
    """A value on its way: collected by Spark, taken to Python, put in order, written down."""
    kept: float
    """A kept value in a batch: merged with what is new, and given its rank."""
    moved: float
    """A value that comes into a window, or leaves it."""


SENT, KEPT, MOVED = 0.5, 0.3, 10.0
"""What they take against a partial, a kept partial and an operation, where nobody measured: see decision 19."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Seconds of wall time, with all cores of the machine at work."""

    batch: float
    """A micro-batch, whatever it holds."""
    query: float
    """A query in a batch, whatever it answers."""
    row: float
    """A row through one native pass: read, sliced, sub-aggregated."""
    partial: float
    """A partial on its way: shuffled, taken to Python, numbered, sorted, written down."""
    kept: float
    """A kept partial in a batch: merged with what is new, and prepared for answers."""
    operation: float
    """Combining two partials."""
    answer: float
    """A row of an answer."""
    measured_values: ValueWeights | None = None
    """None: measured by a version that knew nothing of them."""

    @property
    def values(self) -> ValueWeights:
        rough = ValueWeights(SENT * self.partial, KEPT * self.kept, MOVED * self.operation)
        return self.measured_values or rough


TERMS = ("batch", "query", "row", "partial", "kept", "operation", "answer")


def weights_file() -> Path:
    """Where `weft calibrate` leaves what it measured: one file a user."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "weft" / "weights.json"


def save_weights(weights: Weights, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".tmp")
    partial.write_text(json.dumps(asdict(weights), indent=2) + "\n")
    partial.replace(path)


def load_weights(path: Path | None = None) -> Weights | None:
    """The weights of this machine, if it was measured."""
    path = path or weights_file()
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text())
        of_values = found.pop("measured_values", None)
        values = of_values and ValueWeights(**{f.name: float(of_values[f.name]) for f in fields(ValueWeights)})
        return Weights(**{term: float(found[term]) for term in TERMS}, measured_values=values)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadWeights(f"{path} holds no weights ({error}); run `weft calibrate` again, or delete it") from None
