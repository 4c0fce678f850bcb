"""Measures the time per row, partial, answer and batch on this machine, with streams that differ in one of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.calibration.measure.fitting import Say, best_of, least_squares
from weft.calibration.weights import ValueWeights, Weights
from weft.kernels import technique

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.spark.execution.metrics import BatchMetrics

WARM_BATCHES = 2
"""The first batches of a stream compile and fill caches."""

WARMING_BATCHES = 4
"""Of each stream, run once before all others."""


SUMS = ("sum(v)",)


@dataclass(frozen=True, slots=True)
class Probe:
    """A stream of `batches` batches of `seconds` event seconds, with `rate` rows per second, over `keys` groups."""

    name: str
    windows: tuple[tuple[int, int], ...]
    """Range and slide of each query, in seconds."""
    keys: int
    rate: int
    seconds: int
    batches: int = 7
    aggregates: tuple[str, ...] = SUMS
    """The aggregates of the queries, repeated if there are more queries."""

    @property
    def keeps_values(self) -> bool:
        return self.aggregates != SUMS

    @property
    def file(self) -> str:
        return self.name.replace(" ", "-")

    def kept(self, per_batch: Sequence[int]) -> list[float]:
        """Partials, or values, that are kept while each batch is answered; `per_batch` are the new ones."""
        batches = 1 + -(-max(length for length, _ in self.windows) // self.seconds)
        return [float(sum(per_batch[max(0, i + 1 - batches) : i + 1])) for i in range(len(per_batch))]


PROBES = (
    Probe("few rows", ((60, 60),), keys=10, rate=1_000, seconds=10),
    # Enough rows that the JVM has compiled the loop over them, new with each plan, after the first batches.
    Probe("many rows", ((60, 60),), keys=10, rate=400_000, seconds=10),
    Probe("many kept partials", ((3_600, 1),), keys=20_000, rate=20_000, seconds=20),
    Probe("many answers", tuple((n, 1) for n in range(1, 9)), keys=20_000, rate=20_000, seconds=20, batches=6),
    Probe("many queries", tuple((60 + i, 60 + i) for i in range(200)), keys=10, rate=1_000, seconds=10, batches=6),
)
"""Each probe has much of something else: enough that its cost is well above the noise."""

PERCENTILES = tuple(f"percentile(v, 0.{n})" for n in range(1, 10))
VALUE_PROBES = (
    Probe("many values", ((20, 20),), keys=1_000, rate=20_000, seconds=20, batches=6, aggregates=("median(v)",)),
    Probe("many kept values", ((600, 20),), keys=1_000, rate=20_000, seconds=20, aggregates=("median(v)",)),
    Probe("many moves", ((40, 20),) * 9, keys=1_000, rate=20_000, seconds=20, batches=6, aggregates=PERCENTILES),
)
"""Nearly every row has a distinct value."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One batch: its counts of rows, partials and answers, and the seconds of its two jobs."""

    probe: Probe
    metrics: BatchMetrics
    kept: float
    kept_values: float = 0.0

    @property
    def native(self) -> list[float]:
        return [1.0, self.metrics.rows, self.metrics.partials]

    @property
    def final(self) -> list[float]:
        m = self.metrics
        return [1.0, len(self.probe.windows), m.partials, self.kept, m.answers]

    @property
    def values(self) -> list[float]:
        """Sent, kept, and moved into and out of windows."""
        rows = self.metrics.rows
        return [rows, self.kept_values, 2 * rows * len(self.probe.windows)]

    @property
    def seconds(self) -> float:
        return self.metrics.phases["native"] + self.metrics.phases["final"]


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights, and how well they predict the batches that they were fitted to."""

    weights: Weights
    mean_errors: Mapping[str, float]
    """The mean relative error of the predicted seconds: for each job, and for both jobs of batches with values."""
    by_probe: Mapping[str, float]
    """The mean ratio of measured to predicted seconds, by probe."""
    too_small: tuple[str, ...]
    """Terms that are too small to be distinguished from noise: they have the least cost."""


def calibrate(
    spark: SparkSession, say: Say, probes: Sequence[Probe] = PROBES, of_values: Sequence[Probe] = VALUE_PROBES
) -> Fit:
    samples: list[Sample] = []
    folder = Path(tempfile.mkdtemp(prefix="weft-calibrate-"))
    try:
        # In the first minute, while the JVM compiles, batches of any kind become twice as fast. Without warming up, a
        # term of which only later batches have much would seem to cost nothing.
        for probe in (*probes, *of_values):
            say(f"warming up with {probe.name}")
            measure_stream(spark, replace(probe, batches=WARMING_BATCHES), folder / f"warming-{probe.file}")
        for probe in (*probes, *of_values):
            say(f"a stream with {probe.name}")
            samples += measure_stream(spark, probe, folder / probe.file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say("combining partials")
    return fit(samples, operation_seconds())


TERMS_BY_JOB = {"native": ("batch", "row", "partial"), "final": ("batch", "query", "partial", "kept", "answer")}


def fit(samples: Sequence[Sample], operation: float) -> Fit:
    """Least squares over both jobs of every batch, then over the additional seconds of batches with values.

    No term is free: everything in a batch takes at least one operation.
    """
    plain = [s for s in samples if not s.probe.keeps_values]
    fitted = {
        job: least_squares([getattr(s, job) for s in plain], [s.metrics.phases[job] for s in plain], operation)
        for job in TERMS_BY_JOB
    }
    predicted = [sum(float(np.dot(fitted[job], getattr(s, job))) for job in TERMS_BY_JOB) for s in samples]
    sums: dict[str, float] = {"operation": operation}
    for job, terms in TERMS_BY_JOB.items():
        for term, price in zip(terms, fitted[job], strict=True):
            sums[term] = sums.get(term, 0.0) + price
    valued = [(s, p) for s, p in zip(samples, predicted, strict=True) if s.probe.keeps_values]
    values = None
    if valued:
        seconds, explained = [s.seconds for s, _ in valued], [p for _, p in valued]
        prices = least_squares([s.values for s, _ in valued], seconds, operation, explained)
        values = ValueWeights(*prices)
        predicted = [p + float(np.dot(prices, s.values)) * s.probe.keeps_values for s, p in zip(samples, predicted)]
    weights = Weights(**sums, measured_values=values)
    return Fit(
        weights, _mean_errors(plain, fitted, samples, predicted), _by_probe(samples, predicted), _too_small(weights)
    )


def _mean_errors(
    plain: Sequence[Sample],
    fitted: Mapping[str, Sequence[float]],
    samples: Sequence[Sample],
    predicted: Sequence[float],
) -> dict[str, float]:
    mean_errors = {
        job: float(np.mean([abs(np.dot(fitted[job], getattr(s, job)) / s.metrics.phases[job] - 1) for s in plain]))
        for job in TERMS_BY_JOB
    }
    values = [abs(p / s.seconds - 1) for s, p in zip(samples, predicted, strict=True) if s.probe.keeps_values]
    return {**mean_errors, "values": float(np.mean(values))} if values else mean_errors


def _by_probe(samples: Sequence[Sample], predicted: Sequence[float]) -> dict[str, float]:
    ratios: dict[str, list[float]] = {}
    for sample, seconds in zip(samples, predicted, strict=True):
        ratios.setdefault(sample.probe.name, []).append(sample.seconds / seconds)
    return {name: float(np.mean(over)) for name, over in ratios.items()}


def _too_small(weights: Weights) -> tuple[str, ...]:
    least = weights.operation
    terms = [name for name in ("batch", "query", "row", "partial", "kept", "answer")
             if getattr(weights, name) <= 2 * least]  # fmt: skip
    of_values = [f"values {name}" for name in ("sent", "kept", "moved") if getattr(weights.values, name) <= least]
    return (*terms, *of_values)


def measure_stream(spark: SparkSession, probe: Probe, folder: Path) -> list[Sample]:
    """The batches of a probe, without the first ones."""
    from weft.calibration.measure.events import make_events
    from weft.spark import weave

    rows = probe.rate * probe.seconds * probe.batches
    # A file is one row group, and a row group is read by one task: with one per batch a row would cost a core's time.
    files = probe.batches * spark.sparkContext.defaultParallelism
    events = make_events(spark, folder / "rows", rows=rows, keys=probe.keys, rate=probe.rate, files=files, seed=1)
    queries = [
        f"SELECT k, window, {aggregate} AS x FROM events GROUP BY k, window(ts, '{length} seconds', '{slide} seconds')"
        for (length, slide), aggregate in zip(probe.windows, cycle(probe.aggregates), strict=False)
    ]
    job = weave(events.stream(spark, probe.batches), queries, rate=probe.rate)
    run = job.start(sink="noop", checkpoint=folder / "state", available_now=True)
    run.wait()
    batches = run.batches()
    kept, values = (probe.kept(per_batch) for per_batch in ([m.partials for m in batches], [m.rows for m in batches]))
    return [Sample(probe, m, n, v) for m, n, v in zip(batches, kept, values, strict=True)][WARM_BATCHES:]


def operation_seconds(partials: int = 2_000_000) -> float:
    """Seconds per combination: building blocks combines twice per partial. Memory is set up as in Python workers."""
    from weft.spark.worker import keep_freed_memory

    keep_freed_memory()
    blocks = technique("blocks", "float_sum")
    values: Any = np.random.default_rng(1).random(partials)
    blocks.build(values[:100], 100)
    return best_of(lambda: blocks.build(values, 100)) / (2 * partials)
