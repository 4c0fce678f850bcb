"""Which benchmarks there are. Importing this starts no Spark: a benchmark fetches what it needs when it is run."""

from __future__ import annotations

from collections.abc import Mapping

from weft_bench.auto import AUTO
from weft_bench.benchmark import Benchmark
from weft_bench.command import COMMAND
from weft_bench.estimate import ESTIMATE
from weft_bench.figures.bench import FIGURE
from weft_bench.filters import FILTERS
from weft_bench.groupbys import GROUPBYS
from weft_bench.holistic import HOLISTIC_BENCH
from weft_bench.live import LIVE
from weft_bench.page import PAGE
from weft_bench.phantoms import PHANTOMS_BENCH
from weft_bench.plan import PLAN
from weft_bench.report import REPORT
from weft_bench.scale import SCALE
from weft_bench.schedule import SCHEDULE
from weft_bench.soak import SOAK
from weft_bench.spark import SPARK
from weft_bench.state import STATE
from weft_bench.techniques import TECHNIQUES_BENCH

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
