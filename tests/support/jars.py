"""Jars that tests need and the project does not bring: a broker, and Spark's connectors. Maven fetches them once."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "weft"

BROKER = ("org.apache.kafka:kafka_2.13:4.3.1",)

TOOLS = ("org.apache.kafka:kafka-tools:4.3.1",)

CONNECTORS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.spark:spark-avro_2.13:4.1.1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""Releases of different age, which run together on Spark 4.3; the rest of what they need is in Spark."""


class NoJars(Exception):
    """What is missing, and what to install."""


def fetch(name: str, artifacts: Sequence[str], *, alone: bool = False) -> Path:
    """A folder of these artifacts with what they need, or alone; from the cache where it has been fetched before."""
    folder = CACHE / f"{name}-{'-'.join(a.rpartition(':')[2] for a in artifacts)}"
    if folder.is_dir():
        return folder
    if shutil.which("mvn") is None:
        raise NoJars(f"the tests with Kafka need jars that are not in {CACHE}: apt-get install maven, to fetch them")
    CACHE.mkdir(parents=True, exist_ok=True)
    print(f"Maven fetches {', '.join(artifacts)}; this happens once", flush=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as made:
        (Path(made) / "pom.xml").write_text(_pom(artifacts, alone), encoding="utf-8")
        goal = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"]
        ran = subprocess.run(goal, cwd=made, capture_output=True, text=True, timeout=300, check=False)
        if ran.returncode:
            said = next((line for line in ran.stdout.splitlines() if "ERROR" in line), "no reason given")
            raise NoJars(f"the tests with Kafka need jars that Maven could not fetch: {said}; check the network")
        if not folder.is_dir():  # another run may have been quicker
            (Path(made) / "jars").rename(folder)
    return folder


def _pom(artifacts: Sequence[str], alone: bool) -> str:
    nothing_else = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{nothing_else if alone else ''}</dependency>"
        for group, artifact, version in (a.split(":") for a in artifacts)
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>weft</groupId>'
        f"<artifactId>jars</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>"
    )
