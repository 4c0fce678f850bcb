"""Against a real Kafka: killed between writing and recording, a job goes on, and every answer is there once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support import ROOT
from tests.support.brokers import kafka, producer, reader, trade
from tests.support.compare import assert_same_rows
from tests.support.jars import CONNECTORS, TOOLS, NoJars, fetch

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS = {"by_key": (0, 1), "overall": (0,), "slow": (0, 1), "whole": (0, 1), "some": (0,)}


@pytest.fixture(scope="module")
def connectors() -> Path:
    try:
        return fetch("connectors", CONNECTORS, alone=True)
    except NoJars as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def servers(connectors: Path, tmp_path_factory: Any) -> Iterator[str]:
    try:
        with kafka(tmp_path_factory.mktemp("kafka")) as address:
            yield address
    except NoJars as error:
        pytest.skip(str(error))


def test_what_make_kafka_produces_is_read_by_the_command_that_it_prints(servers: str) -> None:
    try:
        tools = fetch("tools", TOOLS)
    except NoJars as error:
        pytest.skip(str(error))
    sent = [trade(Random(seed)) for seed in range(5)]
    with producer(servers, tools, "made") as records:
        records.writelines(sent)
        records.close()
        command = [*reader(servers, tools, "made"), "--max-messages", str(len(sent)), "--timeout-ms", "60000"]
        said = subprocess.run(command, capture_output=True, check=True, timeout=120).stdout
    assert sorted(said.splitlines(keepends=True)) == sorted(sent)
    assert json.loads(sent[0]).keys() == {"ts", "symbol", "price"}


def live(life: str, servers: str, folder: Path, connectors: Path) -> int:
    """Run a life to its end; its exit code."""
    command = [sys.executable, "-m", "tests.support.kafka_lives", life, servers, str(folder)]
    environment = {**os.environ, "WEFT_CONNECTOR_JARS": str(connectors)}
    with (folder / f"{life}.txt").open("w") as said:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=said, start_new_session=True)
        try:
            return process.wait(300)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def said(life: str, folder: Path) -> str:
    return (folder / f"{life}.txt").read_text()[-4000:]


def test_killed_before_the_record_a_job_goes_on_and_the_newest_of_each_key_is_every_answer_once(
    servers: str, connectors: Path, tmp_path: Path
) -> None:
    assert live("die", servers, tmp_path, connectors) == -signal.SIGKILL, said("die", tmp_path)
    assert live("go_on", servers, tmp_path, connectors) == 0, said("go_on", tmp_path)
    for query, key in KEYS.items():
        wanted = pq.read_table(tmp_path / f"wanted-{query}.parquet")
        assert wanted.num_rows
        assert_same_rows(pq.read_table(tmp_path / f"found-{query}.parquet"), wanted, key=key, text=query)
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts["repeated"] == [3], "the batch that was written and not recorded is written again, and no other"
    assert (facts["times"], facts["different"]) == (2, 1), "with the same values"
    assert facts["jobs"] == 1
    assert facts["partitions"] == 1, "all records of a key are in one partition, in order"
    assert facts["joined"], "the queries that read the topic again got their past"


def test_each_format_gives_its_rows_and_what_cannot_be_read_stops_the_job_or_is_set_aside(
    servers: str, connectors: Path, tmp_path: Path
) -> None:
    assert live("formats", servers, tmp_path, connectors) == 0, said("formats", tmp_path)
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert "json, partition " in facts["stopped"], facts["stopped"]
    assert "nothing is lost" in facts["stopped"]
    wanted = pq.read_table(tmp_path / "wanted.parquet")
    for format_, bad in (("json", 4), ("csv", 0), ("avro", 1)):
        assert facts[format_] == {"bad": bad, "rows": 60, "aside": bad}
        assert_same_rows(pq.read_table(tmp_path / f"found-{format_}.parquet"), wanted, key=(0, 1), text=format_)
    assert facts["by_record"] == 60
