"""Measurements of weft and of its rivals, taken in the same run."""

from weft_bench.benchmark import Benchmark, Report
from weft_bench.registry import BENCHMARKS

__all__ = ["BENCHMARKS", "Benchmark", "Report"]
