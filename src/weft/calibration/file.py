"""The file in which `weft calibrate` stores its measurements: JSON with a version and one section per kind of value.

    {"version": 1, "weights": {...}, "speeds": {...}, "table_costs": {...}}

Earlier versions of weft wrote three files, `weights.json`, `speeds.json` and `tables.json`; they are read if the one
file is missing. A section that was not measured is missing too, and each is checked only when it is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from weft.aggregates.operators import NEEDS, OWN
from weft.calibration.speeds import DEFAULT_SPEEDS, Speed, Speeds
from weft.calibration.table_costs import TableCosts
from weft.calibration.weights import TERMS, ValueWeights, Weights
from weft.model import WeftError

VERSION = 1

OLD_FILES: Mapping[str, str] = {"weights": "weights.json", "speeds": "speeds.json", "table_costs": "tables.json"}
"""The file of each section in earlier versions."""

T = TypeVar("T")


class BadCalibration(WeftError):
    """A calibration file that cannot be used."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The measurements of one machine; None: not measured."""

    weights: Weights | None = None
    speeds: Speeds | None = None
    table_costs: TableCosts | None = None


def calibration_file() -> Path:
    """One file per user."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "weft" / "calibration.json"


def is_calibrated() -> bool:
    """Whether this user has measured this machine."""
    path = calibration_file()
    return path.is_file() or path.with_name(OLD_FILES["weights"]).is_file()


def save_calibration(calibration: Calibration, path: Path) -> None:
    """Replace the file at once, so that a reader never sees half of it."""
    sections: dict[str, Any] = {"version": VERSION}
    if calibration.weights is not None:
        sections["weights"] = asdict(calibration.weights)
    if calibration.speeds is not None:
        sections["speeds"] = {
            operator: {technique: asdict(speed) for technique, speed in by_technique.items()}
            for operator, by_technique in calibration.speeds.items()
        }
    if calibration.table_costs is not None:
        sections["table_costs"] = asdict(calibration.table_costs)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".tmp")
    partial.write_text(json.dumps(sections, indent=2) + "\n")
    partial.replace(path)


def load_weights(path: Path | None = None) -> Weights | None:
    """The weights of this machine, if it was measured."""
    return _load("weights", path, _weights)


def load_speeds(path: Path | None = None) -> Speeds | None:
    """The speeds of techniques on this machine, if it was measured."""
    return _load("speeds", path, _speeds)


def load_table_costs(path: Path | None = None) -> TableCosts | None:
    """The costs of aggregation in Spark and in hash tables on this machine, if it was measured."""
    return _load("table_costs", path, _table_costs)


def _load(section: str, path: Path | None, decode: Callable[[Any], T]) -> T | None:
    file = path or calibration_file()
    try:
        if file.exists():
            content = json.loads(file.read_text())
            if "version" in content:
                _check_version(content["version"])
                return decode(content[section]) if section in content else None
            if section == "weights":  # a file of an earlier version, under any name
                return decode(content)
        file = file.with_name(OLD_FILES[section])
        return decode(json.loads(file.read_text())) if file.exists() else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        what = section.replace("_", " ")
        raise BadCalibration(f"{file} has no {what} ({error}); run `weft calibrate` again, or delete it") from None


def _check_version(version: Any) -> None:
    if version != VERSION:
        raise ValueError(f"it has format {version}, and this version of weft reads format {VERSION}")


def _weights(section: Any) -> Weights:
    of_values = section.get("measured_values")
    values = of_values and ValueWeights(**{f.name: float(of_values[f.name]) for f in fields(ValueWeights)})
    return Weights(**{term: float(section[term]) for term in TERMS}, measured_values=values)


def _speeds(section: Any) -> Speeds:
    speeds = {
        operator: {technique: Speed(**speed) for technique, speed in by_technique.items()}
        for operator, by_technique in section.items()
    }
    missing = DEFAULT_SPEEDS.keys() - speeds.keys()
    if missing:
        raise ValueError(f"there is no {min(missing)}")
    for operator, by_technique in speeds.items():
        unknown = [technique for technique in by_technique if technique not in NEEDS and technique not in OWN]
        if unknown or not by_technique:
            raise ValueError(f"{operator} has the techniques {', '.join(unknown) or '(none)'}")
    return speeds


def _table_costs(section: Any) -> TableCosts:
    costs = TableCosts(**{f.name: float(section[f.name]) for f in fields(TableCosts)})
    if min(asdict(costs).values()) <= 0:
        raise ValueError("they are not above 0")
    return costs
