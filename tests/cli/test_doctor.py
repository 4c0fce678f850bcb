"""`weft doctor`: what it finds, what it says of what is not there, and when it says that weft cannot run."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from weft.cli import doctor
from weft.cli.app import app
from weft.cli.client import DEFAULT_PORT
from weft.spark.connectors import JARS

runner = CliRunner()


def examined(exit_code: int = 0) -> dict[str, dict[str, Any]]:
    result = runner.invoke(app, ["doctor", "--json"])
    assert result.exit_code == exit_code, result.output
    report = json.loads(result.stdout)
    assert report["runs"] == (exit_code == 0)
    return {finding["what"]: finding for finding in report["findings"]}


def test_where_the_tests_run_weft_can_run() -> None:
    found = examined()
    wanted = {"Python", "pyspark", "Java", "Spark", "memory", "cores", "port", "fastapi", "Kafka connector"}
    assert wanted <= found.keys()
    assert all(finding["fix"] for finding in found.values() if finding["verdict"] != "ok")
    assert found["Java"]["verdict"] == "ok"
    lines = runner.invoke(app, ["doctor"]).stdout.splitlines()
    assert lines[-1] == "weft can run here."
    assert any(line.split()[:2] == ["OK", "Java"] for line in lines)


def fake_java(folder: Path, version: str) -> None:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    java.chmod(0o755)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "25"])
def test_another_java_is_told_with_the_way_out(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java = examined(doctor.CANNOT_RUN)["Java"]
    assert version in java["found"]
    assert "openjdk-17" in java["fix"]


def test_no_java_is_told_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "no bin/java" in examined(doctor.CANNOT_RUN)["Java"]["found"]
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no java on PATH" in examined(doctor.CANNOT_RUN)["Java"]["found"]


def test_another_spark_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    spark = examined(doctor.CANNOT_RUN)["Spark"]
    assert "3.5.1" in spark["found"]
    assert "unset SPARK_HOME" in spark["fix"]


def test_a_port_that_is_taken_and_extras_that_are_not_there_keep_nobody_from_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> str:
        if name == "fastapi":
            raise doctor.PackageNotFoundError(name)
        return "9.9.9" if name == "uvicorn" else real(name)

    real = doctor.version
    monkeypatch.setattr(doctor, "version", missing)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", DEFAULT_PORT))
        taken.listen()
        found = examined()
        shown = runner.invoke(app, ["doctor"]).stdout
    assert "fix: pip install 'weft[serve]'" in shown
    assert "--port" in found["port"]["fix"]
    assert found["fastapi"]["fix"] == "pip install 'weft[serve]'"
    assert "asks for" in found["uvicorn"]["found"]


def test_a_package_outside_its_range_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.version
    monkeypatch.setattr(doctor, "version", lambda name: "3.0.0" if name == "pandas" else real(name))
    pandas = examined(doctor.CANNOT_RUN)["pandas"]
    assert pandas["found"].startswith("3.0.0, where weft asks for")
    assert pandas["fix"].startswith("pip install 'pandas")


def test_the_folder_of_connectors_that_the_user_names_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor.CONNECTOR_JARS == JARS
    monkeypatch.setenv(JARS, str(tmp_path))
    kafka = examined()["Kafka connector"]
    assert (kafka["verdict"], str(tmp_path) in kafka["found"]) == ("optional", True)
    assert f"unset {JARS}" in kafka["fix"]
    jar = tmp_path / "spark-sql-kafka-0-10_2.13-4.2.0.jar"
    jar.touch()
    kafka = examined()["Kafka connector"]
    assert (kafka["verdict"], kafka["fix"]) == ("ok", "")
    assert str(jar) in kafka["found"]
