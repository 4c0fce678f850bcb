"""Which benchmarks there are. Importing this starts no Spark: a benchmark fetches what it needs when it is run."""

from __future__ import annotations

from collections.abc import Mapping

from weft.bench.auto import AUTO
from weft.bench.benchmark import Benchmark
from weft.bench.command import COMMAND
from weft.bench.estimate import ESTIMATE
from weft.bench.figures.bench import FIGURE
from weft.bench.filters import FILTERS
from weft.bench.groupbys import GROUPBYS
from weft.bench.holistic import HOLISTIC_BENCH
from weft.bench.live import LIVE
from weft.bench.page import PAGE
from weft.bench.phantoms import PHANTOMS_BENCH
from weft.bench.plan import PLAN
from weft.bench.report import REPORT
from weft.bench.scale import SCALE
from weft.bench.schedule import SCHEDULE
from weft.bench.soak import SOAK
from weft.bench.spark import SPARK
from weft.bench.state import STATE
from weft.bench.techniques import TECHNIQUES_BENCH

BENCHMARKS: Mapping[str, Benchmark] = {
    b.name: b
    for b in (
        SPARK, STATE, FIGURE, REPORT, AUTO, TECHNIQUES_BENCH, PLAN, COMMAND, ESTIMATE, PHANTOMS_BENCH, GROUPBYS,
        FILTERS, LIVE, SOAK, SCHEDULE, HOLISTIC_BENCH, PAGE, SCALE,
    )
}
