"""Twelve group-bys over four attributes: woven, in one Spark job with GROUPING SETS, and in twelve Spark jobs."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from weft_bench.benchmark import BadSetting, Benchmark, Report, Row, Say, integer, option, words
from weft_bench.machine import describe_machine, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GROUP_BYS = ("a", "b", "c", "d", "ab", "ac", "ad", "bc", "bd", "cd", "abc", "bcd")
RATE = 50_000
"""Packets per second of event time."""

FILES = 4
"""Each is drawn by itself: flows end where a file does."""

WARM_SHARE = 20
"""All engines warm up on this share of the rows."""

RIVALS = ("grouping_sets", "separate", "weft_rows", "weft_lfta")

SUMMARY = {
    "clustered_over_grouping_sets": "time of GROUPING SETS over weft's, packets in flows; the bar is 5",
    "clustered_over_separate": "time of twelve Spark queries, one after the other, over weft's",
    "clustered_over_rows": "time of weft with every group-by made from rows over weft's as it chooses",
    "clustered_over_lfta": "time of weft in bounded tables (LFTA) over weft's as it chooses",
    "uniform_over_grouping_sets": "time of GROUPING SETS over weft's, as many groups as rows; the bar is 0.9",
    "uniform_over_separate": "the same for twelve Spark queries",
    "uniform_over_rows": "the same for weft with every group-by made from rows",
    "uniform_over_lfta": "the same for weft in bounded tables",
    "clustered_configuration": "what feeds what, packets in flows",
    "uniform_configuration": "the same for as many groups as rows: no phantom should be there",
    "answers_checked": "whether all gave as many rows",
    "load": "load average at the start: above the number of cores, other processes affect the times",
}


def packet_kinds(text: str) -> tuple[str, ...]:
    """
    >>> packet_kinds("uniform")
    ('uniform',)
    """
    names = words(text)
    if not names or set(names) - {"clustered", "uniform"}:
        raise BadSetting(f"{text!r} is no kind of packets; name clustered, uniform, or both with a comma between")
    return names


@dataclass(frozen=True, slots=True)
class GroupbysSettings:
    data: tuple[str, ...] = option(
        ("clustered", "uniform"),
        "Kinds of packets: in flows, or drawn at random.",
        parse=packet_kinds,
        metavar="NAME,NAME",
    )
    rows: int = option(30_000_000, "Packets in flows.", quick=400_000)
    uniform: int = option(1_000_000, "Packets with attributes drawn at random.", quick=60_000)
    window: int = option(20, "Seconds of a window; one begins when another ends.")
    repeat: int = option(3, "Turns of weft and GROUPING SETS; the shortest counts. The others have one.", quick=1)
    seed: int = option(1, "Of the packets.", parse=integer)


Engine = Callable[[Any, int], "tuple[int, str | None]"]
"""Answers the group-bys over a table for a window length: the number of rows, and which table fed which."""


def run(settings: GroupbysSettings, say: Say) -> Report:
    from weft.spark import local_session

    spark, busy = local_session(), load()
    folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    rows: list[Row] = []
    try:
        for name in settings.data:
            number = settings.rows if name == "clustered" else settings.uniform
            say(f"making {number:,} {name} packets")
            write_packets(folder / name, name, number, settings.seed)
            table = spark.read.parquet(str(folder / name))
            rows += _take_turns(table, name, number, settings, say)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Report("groupbys", describe_machine(), asdict(settings), rows, {**summarise(rows), "load": busy})


def write_packets(folder: Path, name: str, number: int, seed: int) -> None:
    """(ts, a, b, c, d, bytes): addresses and ports as numbers, in the order of arrival."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from weft.calibration.measure.events import BEGIN
    from weft_bench.data.packets import clustered, independent

    folder.mkdir()
    for file in range(FILES):
        begin, end = (number * i // FILES for i in (file, file + 1))
        values = (clustered if name == "clustered" else independent)(end - begin, seed, file).values
        times = BEGIN + np.arange(begin, end) * 1_000_000 // RATE
        sizes = np.random.default_rng((seed, file)).integers(40, 1500, end - begin).astype(np.int32)
        columns = {key: pa.array(values[:, place].astype(np.int32)) for place, key in enumerate("abcd")}
        timed = {"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), **columns, "bytes": pa.array(sizes)}
        pq.write_table(pa.table(timed), folder / f"{file}.parquet")


def _take_turns(table: DataFrame, data: str, number: int, settings: GroupbysSettings, say: Say) -> list[Row]:
    engines: Mapping[str, Engine] = {
        "weft": lambda table, window: _weft(table, window, "auto", "auto"),
        "grouping_sets": _grouping_sets,
        "weft_rows": lambda table, window: _weft(table, window, "never", "native"),
        "weft_lfta": lambda table, window: _weft(table, window, "auto", "lfta"),
        "separate": _separate,
    }
    small = table.limit(max(2_000, number // WARM_SHARE)).cache()
    for engine in engines.values():
        engine(small, settings.window)
    small.unpersist()
    rows: list[Row] = []
    for turn in range(settings.repeat):
        for name, engine in engines.items():
            if turn and name not in ("weft", "grouping_sets"):
                continue
            begun = time.perf_counter()
            answers, configuration = engine(table, settings.window)
            seconds = time.perf_counter() - begun
            say(f"  {data}  {name}  {seconds:.1f} s")
            rows.append(
                {
                    "data": data,
                    "engine": name,
                    "turn": turn + 1,
                    "seconds": seconds,
                    "rows_per_second": number / seconds,
                    "answers": answers,
                    "configuration": configuration,
                }
            )
    return rows


def _texts(window: int) -> list[str]:
    return [
        f"SELECT {', '.join(keys)}, window.start AS begin, count(*) AS packets, sum(bytes) AS bytes "
        f"FROM packets GROUP BY {', '.join(keys)}, window(ts, '{window} seconds')"
        for keys in GROUP_BYS
    ]


def _weft(
    table: DataFrame,
    window: int,
    phantoms: Literal["auto", "always", "never"],
    groupings: Literal["auto", "native", "lfta"],
) -> tuple[int, str | None]:
    """The time includes planning and counting groups."""
    from weft.spark import weave

    job = weave(table, _texts(window), phantoms=phantoms, groupings=groupings)
    answers = job.run_bounded("noop").answers
    return answers, job.explain("json")["sharing"]["fed"]


def _grouping_sets(table: DataFrame, window: int) -> tuple[int, str | None]:
    table.createOrReplaceTempView("packets")
    sets = ", ".join(f"(window, {', '.join(keys)})" for keys in GROUP_BYS)
    inner = f"SELECT window(ts, '{window} seconds') AS window, a, b, c, d, bytes FROM packets"
    text = (
        "SELECT a, b, c, d, grouping_id() AS id, window.start AS begin, count(*) AS packets, sum(bytes) AS bytes "
        f"FROM ({inner}) GROUP BY GROUPING SETS ({sets})"
    )
    return _answered(table.sparkSession.sql(text)), None


def _separate(table: DataFrame, window: int) -> tuple[int, str | None]:
    table.createOrReplaceTempView("packets")
    return sum(_answered(table.sparkSession.sql(text)) for text in _texts(window)), None


def _answered(frame: DataFrame) -> int:
    """Every row made and let go."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    counted = Observation()
    frame.observe(counted, F.count(F.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    return int(counted.get["rows"])


def summarise(rows: list[Row]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    kinds = dict.fromkeys(row["data"] for row in rows)
    for data in kinds:
        fastest = {
            engine: min(row["seconds"] for row in rows if (row["data"], row["engine"]) == (data, engine))
            for engine in ("weft", *RIVALS)
        }
        for engine in RIVALS:
            summary[f"{data}_over_{engine.removeprefix('weft_')}"] = fastest[engine] / fastest["weft"]
    for data in kinds:
        chosen = [r["configuration"] for r in rows if (r["data"], r["engine"]) == (data, "weft")]
        summary[f"{data}_configuration"] = chosen[-1]
    answers = {(row["data"], row["answers"]) for row in rows}
    return {**summary, "answers_checked": len(answers) == len({data for data, _ in answers})}


GROUPBYS = Benchmark(
    name="groupbys",
    about="twelve group-bys over packet headers, beside Spark's GROUPING SETS and twelve Spark queries",
    summary=SUMMARY,
    settings=GroupbysSettings,
    run=run,
)
