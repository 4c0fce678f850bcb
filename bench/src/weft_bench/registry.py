"""The benchmarks. Importing this module does not start Spark: a benchmark imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from weft_bench.benchmark import Benchmark
from weft_bench.benchmarks.auto import AUTO
from weft_bench.benchmarks.command import COMMAND
from weft_bench.benchmarks.estimate import ESTIMATE
from weft_bench.benchmarks.figure import FIGURE
from weft_bench.benchmarks.filters import FILTERS
from weft_bench.benchmarks.groupbys import GROUPBYS
from weft_bench.benchmarks.holistic import HOLISTIC_BENCH
from weft_bench.benchmarks.live import LIVE
from weft_bench.benchmarks.page import PAGE
from weft_bench.benchmarks.phantoms import PHANTOMS_BENCH
from weft_bench.benchmarks.plan import PLAN
from weft_bench.benchmarks.report import REPORT
from weft_bench.benchmarks.scale.benchmark import SCALE
from weft_bench.benchmarks.schedule import SCHEDULE
from weft_bench.benchmarks.soak import SOAK
from weft_bench.benchmarks.spark import SPARK
from weft_bench.benchmarks.state import STATE
from weft_bench.benchmarks.techniques.benchmark import TECHNIQUES_BENCH

BENCHMARKS: Mapping[str, Benchmark] = {
    b.name: b
    for b in (
        SPARK,
        STATE,
        FIGURE,
        REPORT,
        AUTO,
        TECHNIQUES_BENCH,
        PLAN,
        COMMAND,
        ESTIMATE,
        PHANTOMS_BENCH,
        GROUPBYS,
        FILTERS,
        LIVE,
        SOAK,
        SCHEDULE,
        HOLISTIC_BENCH,
        PAGE,
        SCALE,
    )
}
