"""The time of `weft plan` in its own process, from start to end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

from weft.optimizer.paper_workloads import Shape, generate, to_sql
from weft_bench.benchmark import Benchmark, Report, Row, Say, integer, option
from weft_bench.machine import describe_machine, load

SUMMARY = {
    "plan_seconds": "median time of `weft plan`, from start to end",
    "plan_cpu_seconds": "processor time of the same run, which others on the machine hardly lengthen",
    "help_seconds": "median time of `weft plan --help`: the start without parsing or planning",
    "trees": "trees of the plan",
}


@dataclass(frozen=True, slots=True)
class CommandSettings:
    queries: int = option(1_000, "Queries, as `weft generate` draws them.")
    rate: int = option(10_000, "Rows per second.")
    times: int = option(7, "Runs of each command, after one that is not counted.", quick=3)
    seed: int = option(1, "Of the queries.", parse=integer)


def run(settings: CommandSettings, say: Say) -> Report:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        file = Path(folder) / "queries.sql"
        file.write_text(to_sql(generate(Shape(settings.queries, rate=Fraction(settings.rate), seed=settings.seed))))
        commands = {
            "plan": ["plan", str(file), "--rate", str(settings.rate)],
            "help": ["plan", "--help"],
        }
        trees = _timed(commands["plan"])[1].count("\n  tree ")
        for _ in range(settings.times):
            for what, words in commands.items():
                say(f"weft {' '.join(words)}")
                rows.append({"what": what, "load": load(), **_timed(words)[0]})

    def middle(what: str, of: str) -> Row:
        by_time = sorted((row for row in rows if row["what"] == what), key=lambda row: row[of])
        return by_time[len(by_time) // 2]

    plan = middle("plan", "seconds")
    summary = {
        "plan_seconds": plan["seconds"],
        "plan_cpu_seconds": plan["cpu_seconds"],
        "help_seconds": middle("help", "seconds")["seconds"],
        "trees": trees,
    }
    return Report("command", describe_machine(), asdict(settings), rows, summary)


def _timed(words: list[str]) -> tuple[Row, str]:
    """Bytecode is cached as in any installation: otherwise every start compiles all modules."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, begun = os.times(), time.perf_counter()
    completed = subprocess.run(
        [sys.executable, "-m", "weft", *words], capture_output=True, text=True, check=True, env=environment
    )
    seconds, after = time.perf_counter() - begun, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"seconds": seconds, "cpu_seconds": cpu}, completed.stdout


COMMAND = Benchmark(
    name="command",
    about="how long `weft plan` takes for a thousand queries, from its start to its last line",
    summary=SUMMARY,
    settings=CommandSettings,
    run=run,
)
