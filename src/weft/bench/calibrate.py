"""What a row, a partial, an answer and a batch take on this machine: streams that differ in one of them at a time."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.bench.benchmark import Say
from weft.kernels import OWN, accepts, technique
from weft.optimizer.serving import CANDIDATES, Speed, Speeds
from weft.optimizer.weights import Weights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.spark.pipeline import BatchMetrics

WARM_BATCHES = 2
"""The first batches of a stream compile and fill caches."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A stream of `batches` batches of `seconds` event seconds, with `rate` rows a second, over `keys` groups."""

    name: str
    windows: tuple[tuple[int, int], ...]
    """Range and slide of each query, in seconds."""
    keys: int
    rate: int
    seconds: int
    batches: int = 7

    def kept(self, partials: Sequence[int]) -> list[float]:
        """Partials that are kept while each batch is answered, from those that each brought."""
        batches = 1 + -(-max(length for length, _ in self.windows) // self.seconds)
        return [float(sum(partials[max(0, i + 1 - batches) : i + 1])) for i in range(len(partials))]


PROBES = (
    Probe("few rows", ((60, 60),), keys=10, rate=1_000, seconds=10),
    Probe("many rows", ((60, 60),), keys=10, rate=100_000, seconds=10),
    Probe("many kept partials", ((3_600, 1),), keys=20_000, rate=20_000, seconds=20),
    Probe("many answers", tuple((n, 1) for n in range(1, 9)), keys=20_000, rate=20_000, seconds=20, batches=6),
    Probe("many queries", tuple((60 + i, 60 + i) for i in range(200)), keys=10, rate=1_000, seconds=10, batches=6),
)
"""Apart in what they have much of, and so much of it that what each thing takes stands out of the noise."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One batch: how much of everything it had, and what its two jobs took."""

    probe: Probe
    metrics: BatchMetrics
    kept: float

    @property
    def native(self) -> list[float]:
        return [1.0, self.metrics.rows, self.metrics.partials]

    @property
    def final(self) -> list[float]:
        m = self.metrics
        return [1.0, len(self.probe.windows), m.partials, self.kept, m.answers]


def calibrate(spark: SparkSession, say: Say, probes: Sequence[Probe] = PROBES) -> tuple[Weights, dict[str, float]]:
    """The weights, and how far, on average, the batches that they were read from are from what they say."""
    samples: list[Sample] = []
    folder = Path(tempfile.mkdtemp(prefix="weft-calibrate-"))
    try:
        for probe in probes:
            say(f"a stream with {probe.name}")
            samples += _stream(spark, probe, folder / probe.name.replace(" ", "-"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say("combining partials")
    return fit(samples, _operation_seconds())


def fit(samples: Sequence[Sample], operation: float) -> tuple[Weights, dict[str, float]]:
    """Least squares over both jobs of every batch.

    Nothing that a batch has is free: whatever it is, it is combined with something else at least once.
    """
    native = _least_squares([s.native for s in samples], [s.metrics.phases["native"] for s in samples], operation)
    final = _least_squares([s.final for s in samples], [s.metrics.phases["final"] for s in samples], operation)
    weights = Weights(
        batch=native[0] + final[0],
        query=final[1],
        row=native[1],
        partial=native[2] + final[2],
        kept=final[3],
        operation=operation,
        answer=final[4],
    )
    off = {
        name: float(np.mean([abs(np.dot(w, getattr(s, name)) / s.metrics.phases[name] - 1) for s in samples]))
        for name, w in (("native", native), ("final", final))
    }
    return weights, off


def _least_squares(rows: Sequence[Sequence[float]], seconds: Sequence[float], least: float = 0.0) -> list[float]:
    """Relative errors count, so that long batches do not speak alone. A term that comes out below the least is that."""
    matrix, right = np.array(rows, float), np.array(seconds, float)
    matrix = matrix / right[:, None]
    right = 1 - least * matrix.sum(axis=1)
    found = np.zeros(matrix.shape[1])
    used = list(range(matrix.shape[1]))
    while used:
        scale = np.abs(matrix[:, used]).max(axis=0)
        scale[scale == 0] = 1.0
        solution = np.linalg.lstsq(matrix[:, used] / scale, right, rcond=None)[0] / scale
        if (solution >= 0).all():
            found[used] = solution
            break
        used.pop(int(np.argmin(solution * scale)))
    return [least + float(v) for v in found]


def _stream(spark: SparkSession, probe: Probe, folder: Path) -> list[Sample]:
    from weft.bench.data import make_events
    from weft.spark import weave

    rows = probe.rate * probe.seconds * probe.batches
    events = make_events(
        spark, folder / "rows", rows=rows, keys=probe.keys, rate=probe.rate, files=probe.batches, seed=1
    )
    queries = [
        f"SELECT k, window, sum(v) AS x FROM events GROUP BY k, window(ts, '{length} seconds', '{slide} seconds')"
        for length, slide in probe.windows
    ]
    job = weave(events.stream(spark, probe.batches), queries, rate=probe.rate)
    run = job.start(sink="noop", checkpoint=folder / "state", available_now=True)
    run.wait()
    batches = run.batches()
    kept = probe.kept([m.partials for m in batches])
    return [Sample(probe, m, n) for m, n in zip(batches, kept, strict=True)][WARM_BATCHES:]


def _operation_seconds(partials: int = 2_000_000) -> float:
    """Tables for windows over a column combine twice a partial, one core at a time; with memory as workers have it."""
    from weft.spark.memory import keep_freed_memory

    keep_freed_memory()
    made = technique("blocks", "float_sum")
    values: Any = np.random.default_rng(1).random(partials)
    made.build(values[:100], 100)
    return _best(lambda: made.build(values, 100)) / (2 * partials)


OPERATORS = ("int_sum", "float_sum", "argmax_last", "max", "moments_2", "comoments")
"""The others take as long as one of these (`STAND_INS`)."""
SHAPES = ((1, 1), (4, 1), (16, 1), (64, 1), (1024, 1), (64, 16), (1024, 256))
"""Partials of a window, and of a slide."""
MOST_COMBINED = 20_000_000
"""Where each window is combined anew, longer ones are not waited for."""


def measure_speeds(say: Say, partials: int = 300_000) -> Speeds:
    """What each technique takes over a column, for each operator that it serves; with memory as workers have it."""
    from weft.spark.memory import keep_freed_memory

    keep_freed_memory()
    speeds: dict[str, dict[str, Speed]] = {}
    for operator in OPERATORS:
        say(f"techniques for {operator}")
        names = [name for name in CANDIDATES if accepts(name, operator)]
        speeds[operator] = {name: _speed(name, operator, partials) for name in names}
    return speeds


def _speed(name: str, operator: str, partials: int) -> Speed:
    made, values = technique(name, operator), _column(operator, partials)
    terms = ("answer",) if name in OWN else ("combined", "answer") if name == "panes" else ("passed", "answer")
    counts, taken, builds = [], [], []
    for window, slide in SHAPES:
        hi = np.arange(window, partials + 1, slide, dtype=np.int64)
        lo = hi - window
        if name == "panes" and len(hi) * window > MOST_COMBINED:
            continue
        out = np.empty((len(hi), *values.shape[1:]), values.dtype)
        tables = made.build(values, window)
        made.answer(tables, lo[:10], hi[:10], out)  # compiles
        builds.append(_best(lambda window=window: made.build(values, window)))  # type: ignore[misc]
        taken.append(_best(lambda t=tables, lo=lo, hi=hi, out=out: made.answer(t, lo, hi, out)))  # type: ignore[misc]
        asked = {"passed": partials, "combined": len(hi) * window, "answer": len(hi)}
        counts.append([float(asked[term]) for term in terms])
    found = {term: 1e9 * seconds for term, seconds in zip(terms, _least_squares(counts, taken), strict=True)}
    return Speed(build=1e9 * float(np.median(builds)) / partials, **found)


def _column(operator: str, partials: int) -> Any:
    random = np.random.default_rng(1)
    if operator in ("int_sum", "argmax_last", "max"):
        return random.integers(0, 1 << 40, partials)
    if operator == "float_sum":
        return random.random(partials)
    return np.ascontiguousarray(1 + random.random((partials, {"moments_2": 3, "comoments": 6}[operator])))


def _best(call: Callable[[], object], times: int = 5) -> float:
    """Seconds, the least of some runs: what else the machine does only adds."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return min(found)
