"""`weft doctor`: whether everything that weft needs is installed, and how to install what is missing."""

from __future__ import annotations

import json
import operator
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft.calibration.file import calibration_file, is_calibrated
from weft.cli.client import DEFAULT_PORT

CANNOT_RUN = 1
"""The exit code if weft cannot run here; parts that only some commands need do not count."""

Verdict = Literal["ok", "missing", "optional"]

JDKS = (17, 21)
LEAST_MEMORY = 6 << 30
"""Spark's driver takes 4 GiB, Python and the system the rest."""
LEAST_DISK = 1 << 30

CONNECTOR_JARS = "WEFT_CONNECTOR_JARS"
"""As `weft.spark.connectors` has it; that module needs PySpark, and this one tells where there is none."""

NEEDS_JDK = (
    "install a JDK 17 or 21 (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless; macOS: brew install openjdk@17) "
    "and point JAVA_HOME at it if it is not the java on PATH"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """`missing` keeps weft from running; `optional` is needed by some commands only, or recommended."""

    what: str
    verdict: Verdict
    found: str
    fix: str = ""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False) -> None:
    """Check whether everything that weft needs is installed, and say how to install what is missing."""
    findings = list(examine())
    runs = all(finding.verdict != "missing" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"runs": runs, "findings": [asdict(f) for f in findings]}, indent=2))
    else:
        _show(findings)
        typer.echo(
            "weft can run here." if runs else "weft cannot run here until the parts marked MISSING are installed."
        )
    if not runs:
        raise typer.Exit(CANNOT_RUN)


def _show(findings: Iterable[Finding]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        word = {"ok": "OK", "missing": "MISSING", "optional": "-"}[finding.verdict]
        table.add_row(word, finding.what, escape(finding.found))
        if finding.fix:
            table.add_row("", "", escape(f"fix: {finding.fix}"))
    (Console() if sys.stdout.isatty() else Console(width=250)).print(table)


def examine() -> Iterator[Finding]:
    yield _python()
    yield from _packages()
    yield _java()
    yield _spark_home()
    yield _memory()
    yield _cores()
    yield _room()
    yield _port()
    yield from _extras()
    yield _kafka()
    yield _calibrated()


def _python() -> Finding:
    running = f"{platform.python_version()}  {sys.executable}"
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Finding("Python", "ok", running)
    return Finding("Python", "missing", running, "run weft with Python 3.11, 3.12 or 3.13")


def _packages() -> Iterator[Finding]:
    """weft itself, and what it asks for, each in the range that it asks for."""
    yield Finding("weft", "ok", version("weft"))
    for wanted in requires("weft") or ():
        if "extra ==" not in wanted:
            yield _package(wanted)


def _package(wanted: str, verdict: Verdict = "missing", fix: str = "") -> Finding:
    name, bounds = re.match(r"([\w.-]+)(?:\[[^\]]*\])?\s*([^;]*)", wanted).groups()  # type: ignore[union-attr]
    fix = fix or f"pip install '{name}{bounds.strip()}'"
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Finding(name, verdict, "not installed", fix)
    if within(installed, bounds):
        return Finding(name, "ok", installed)
    return Finding(name, verdict, f"{installed}, where weft asks for {bounds.strip()}", fix)


COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}


def within(release: str, bounds: str) -> bool:
    """
    >>> within("4.3.1", "<4.4,>=4.3"), within("3.0.0", "<3,>=2.2"), within("2.2", ">=2.2.0")
    (True, False, True)
    """

    def numbers(text: str) -> tuple[int, ...]:
        return tuple([*map(int, re.findall(r"\d+", text)), 0, 0, 0][:3])

    parts = re.findall(r"(>=|<=|==|<|>)\s*([\d.]+)", bounds)
    return all(COMPARE[sign](numbers(release), numbers(bound)) for sign, bound in parts)


def _java() -> Finding:
    """The one that Spark takes: JAVA_HOME's before the one on PATH."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if path is None:
        where = f"JAVA_HOME is {home}, and there is no bin/java in it" if home else "no java on PATH, no JAVA_HOME"
        return Finding("Java", "missing", where, NEEDS_JDK)
    try:
        output = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("Java", "missing", f"{path} does not answer: {error}", NEEDS_JDK)
    release = re.search(r'version "(\d+)([^"]*)"', output)
    if release is None:
        return Finding("Java", "missing", f"{path} does not say its version", NEEDS_JDK)
    java = f"{release[1]}{release[2]}  {path}"
    return Finding("Java", "ok", java) if int(release[1]) in JDKS else Finding("Java", "missing", java, NEEDS_JDK)


def _spark_home() -> Finding:
    """Another Spark than PySpark's own runs where SPARK_HOME says so; its jars must be of the same version."""
    home = os.environ.get("SPARK_HOME")
    if not home:
        return Finding("Spark", "ok", "the one in PySpark; SPARK_HOME is not set")
    jars = sorted(Path(home, "jars").glob("spark-core_*.jar"))
    ours = version("pyspark") if find_spec("pyspark") else "none"
    if not jars:
        return Finding("Spark", "missing", f"SPARK_HOME is {home}, and has no jars", "unset SPARK_HOME, or correct it")
    theirs = jars[0].stem.rpartition("-")[2]
    if theirs.split(".")[:2] == ours.split(".")[:2]:
        return Finding("Spark", "ok", f"{theirs}  {home}")
    fix = f"unset SPARK_HOME, or point it at a Spark {ours}"
    return Finding("Spark", "missing", f"SPARK_HOME has Spark {theirs}, PySpark is {ours}", fix)


def _memory() -> Finding:
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:  # no control groups here
        limit = "max"
    if limit.isdigit():
        available = min(available, int(limit))
    shown = f"{available / (1 << 30):.1f} GiB"
    if available >= LEAST_MEMORY:
        return Finding("memory", "ok", shown)
    return Finding("memory", "optional", shown, "Spark's driver takes up to 4 GiB: give it 6 GiB in all, or run little")


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores > 1:
        return Finding("cores", "ok", str(cores))
    return Finding("cores", "optional", "1", "two or more let a batch's rows and answers be worked on side by side")


def _room() -> Finding:
    folder = tempfile.gettempdir()
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        fix = "point TMPDIR at a folder that can be written"
        return Finding("temporary files", "missing", f"{folder}: {error.strerror}", fix)
    shown = f"{free / (1 << 30):.1f} GiB free in {folder}"
    if free >= LEAST_DISK:
        return Finding("temporary files", "ok", shown)
    fix = "make room there, or point TMPDIR and SPARK_LOCAL_DIRS elsewhere"
    return Finding("temporary files", "optional", shown, fix)


def _port() -> Finding:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", DEFAULT_PORT))
        except OSError as error:
            fix = f"a service may run there (weft list); or choose another: weft serve --port {DEFAULT_PORT + 1}"
            return Finding("port", "optional", f"{DEFAULT_PORT}: {error.strerror}", fix)
    return Finding("port", "ok", f"{DEFAULT_PORT} is free")


def _extras() -> Iterator[Finding]:
    """What only some commands need, as weft's own extras name it."""
    for wanted in requires("weft") or ():
        extra = re.search(r"extra == ['\"](\w+)['\"]", wanted)
        if extra is not None:
            yield _package(wanted, "optional", f"pip install 'weft[{extra[1]}]'")


def _kafka() -> Finding:
    """Spark's connector is a jar: in the folder that the user names, fetched by its name, or beside Spark's own."""
    what, any_release = "Kafka connector", "spark-sql-kafka-0-10_*.jar"
    spark = find_spec("pyspark")
    ours = version("pyspark") if spark else "VERSION"
    folder = os.environ.get(CONNECTOR_JARS)
    if folder is not None:
        jar = next(iter(sorted(Path(folder).glob(any_release))), None)
        if jar is not None:
            return Finding(what, "ok", f"{jar}  ({CONNECTOR_JARS})")
        fix = f"put the connector's jars there, with what they need, or unset {CONNECTOR_JARS} to have Spark fetch them"
        return Finding(what, "optional", f"{CONNECTOR_JARS} is {folder}, and has no {any_release}", fix)
    own = [Path(folder) / "jars" for folder in (spark.submodule_search_locations or ())] if spark else []
    caches = [Path.home() / ".ivy2" / "jars", Path.home() / ".ivy2.5.2" / "jars", Path.home() / ".m2" / "repository"]
    named = f"**/*spark-sql-kafka-0-10_*-{ours}.jar"
    connector = next((jar for folder in [*own, *caches] for jar in folder.glob(named)), None)
    if connector is not None:
        return Finding(what, "ok", str(connector))
    fix = (
        f"Spark fetches org.apache.spark:spark-sql-kafka-0-10_2.13:{ours} from Maven Central when a job names a topic, "
        f"if it is there; if not, or without a network, point {CONNECTOR_JARS} at a folder of jars, such as "
        "`make kafka` fetches in a clone (docs/kafka.md)"
    )
    return Finding(what, "optional", "not fetched yet; only Kafka sources and sinks need it", fix)


def _calibrated() -> Finding:
    if is_calibrated():
        return Finding("calibration", "ok", str(calibration_file().parent))
    return Finding("calibration", "optional", "this machine was not measured", "weft calibrate, about four minutes")
