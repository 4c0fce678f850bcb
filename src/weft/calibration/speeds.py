"""How fast each technique of final aggregation is: nanoseconds of one core, by operator.

`weft calibrate` measures them; the defaults are from another machine, and only their ratios matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Speed:
    """Nanoseconds for each of the four counts of `weft.optimizer.choose_techniques`."""

    build: float = 0.0
    passed: float = 0.0
    combined: float = 0.0
    answer: float = 0.0


Speeds = Mapping[str, Mapping[str, Speed]]
"""By operator and technique."""

DEFAULT_SPEEDS: Speeds = {
    "int_sum": {
        "prefix": Speed(build=0.41, answer=1.30),
        "blocks": Speed(build=2.75, answer=3.26),
        "panes": Speed(build=0.01, combined=0.115, answer=1.09),
        "two_stacks": Speed(build=0.02, passed=0.70, answer=1.69),
        "slick_deque_inv": Speed(build=0.01, passed=0.21, answer=1.38),
    },
    "float_sum": {
        "blocks": Speed(build=1.46, answer=1.72),
        "panes": Speed(combined=0.362, answer=0.28),
        "two_stacks": Speed(build=0.02, passed=1.41, answer=0.87),
    },
    "argmax_last": {
        "blocks": Speed(build=7.16, answer=5.26),
        "panes": Speed(build=0.01, combined=0.965, answer=0.21),
        "two_stacks": Speed(build=0.02, passed=1.29, answer=2.66),
        "slick_deque_non_inv": Speed(build=0.01, passed=5.05),
    },
    "max": {
        "blocks": Speed(build=2.98, answer=3.36),
        "panes": Speed(build=0.01, combined=0.169, answer=1.28),
        "two_stacks": Speed(build=0.02, passed=1.52, answer=2.12),
    },
    "moments_2": {
        "blocks": Speed(build=15.12, answer=7.34),
        "panes": Speed(build=0.01, combined=4.198),
        "two_stacks": Speed(build=0.01, passed=5.42),
    },
    "comoments": {
        "blocks": Speed(build=26.04, answer=9.37),
        "panes": Speed(build=0.01, combined=6.442),
        "two_stacks": Speed(build=0.02, passed=11.68),
    },
}
"""`weft calibrate --json` on two cores of an Intel Xeon."""
