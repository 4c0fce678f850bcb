"""One real Apache Kafka, broker and controller in one process; `make kafka` keeps it up until it is stopped."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import IO

from tests.support.jars import BROKER, CONNECTORS, TOOLS, NoJars, fetch

PATIENCE = 60
"""Seconds in which a broker must be up."""

TOPIC = "trades"
SYMBOLS = ("AAPL", "MSFT", "NVDA")
TRADES_A_SECOND = 10

QUERIES = """SELECT symbol, window.start AS start, avg(price) AS price
  FROM trades GROUP BY symbol, window(ts, '10 seconds', '2 seconds')"""


@contextmanager
def kafka(folder: Path, port: int | None = None) -> Iterator[str]:
    """A broker with its logs in the folder; gives where it listens."""
    java = _java()
    jars = fetch("broker", BROKER)
    port = port or _free_port()
    controller = _free_port()
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": folder / "logs",
        "num.partitions": 3,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
    }
    (folder / "server.properties").write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
    command = [java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    cluster = urlsafe_b64encode(b"weft" + os.urandom(12)).decode().rstrip("=")
    with (folder / "out.txt").open("w") as out:
        formatting = ["kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", "server.properties"]
        subprocess.run([*command, *formatting], cwd=folder, stdout=out, stderr=out, check=True)
        process = subprocess.Popen([*command, "kafka.Kafka", "server.properties"], cwd=folder, stdout=out, stderr=out)
        try:
            _wait(process, port, folder / "out.txt")
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, out: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"Kafka did not come up: {out.read_text()[-2000:]}")
        time.sleep(0.1)


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    if found is None or not Path(found).exists():
        raise NoJars("Kafka needs a Java runtime: install JDK 17 or 21 (apt-get install openjdk-17-jdk-headless)")
    return found


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def trade(random: Random) -> bytes:
    """A record as the commands below read it."""
    now = datetime.now(UTC).isoformat()
    found = {"ts": now, "symbol": random.choice(SYMBOLS), "price": round(random.uniform(90, 110), 2)}
    return json.dumps(found).encode() + b"\n"


@contextmanager
def producer(servers: str, tools: Path, topic: str = TOPIC) -> Iterator[IO[bytes]]:
    """Kafka's own producer: a line is a record. The topic is made when its first record comes."""
    program = [_java(), "-Xmx128m", "-cp", f"{tools}/*", "org.apache.kafka.tools.ConsoleProducer"]
    process = subprocess.Popen(
        [*program, "--bootstrap-server", servers, "--topic", topic], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    try:
        yield process.stdin
    finally:
        process.terminate()
        process.wait()


def reader(servers: str, tools: Path, topic: str) -> list[str]:
    """The command that shows what a topic holds, and what comes."""
    program = ["java", "-cp", f"{tools}/*", "org.apache.kafka.tools.consumer.ConsoleConsumer"]
    return [*program, "--bootstrap-server", servers, "--topic", topic, "--from-beginning"]


def main() -> None:
    try:
        connectors, tools = fetch("connectors", CONNECTORS, alone=True), fetch("tools", TOOLS)
        with (
            tempfile.TemporaryDirectory(prefix="weft-kafka-") as folder,
            kafka(Path(folder), 9092) as servers,
            producer(servers, tools) as records,
        ):
            print(
                f"Kafka listens on {servers}; {TRADES_A_SECOND} trades a second go to the topic {TOPIC}. In another "
                "terminal, in this folder, weave them:\n\n"
                f'  echo "{QUERIES}" > queries.sql\n'
                f"  export WEFT_CONNECTOR_JARS={connectors}\n"
                f"  .venv/bin/weft run queries.sql --source kafka:{servers}/{TOPIC} "
                "--schema 'ts TIMESTAMP, symbol STRING, price DOUBLE' "
                f"--sink kafka:{servers}/answers --checkpoint state\n\n"
                f"and in a third, read the answers:\n\n  {shlex.join(reader(servers, tools, 'answers'))}\n\n"
                "Ctrl-C stops it, and its topics are gone.",
                flush=True,
            )
            random = Random(1)
            while True:
                records.write(trade(random))
                records.flush()
                time.sleep(1 / TRADES_A_SECOND)
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        sys.exit("Kafka's producer has ended; start again")
    except NoJars as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
