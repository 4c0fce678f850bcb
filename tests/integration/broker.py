"""One real Apache Kafka, broker and controller in one process: `python broker.py` keeps it up until it is stopped."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jars import BROKER, CONNECTORS, NoJars, fetch

PATIENCE = 60
"""Seconds in which a broker must be up."""

QUERIES = """SELECT symbol, window.start AS start, avg(price) AS price
  FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds')"""


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


def main() -> None:
    try:
        connectors = fetch("connectors", CONNECTORS, alone=True)
        with tempfile.TemporaryDirectory(prefix="weft-kafka-") as folder, kafka(Path(folder), 9092) as servers:
            print(
                f"Kafka listens on {servers}. In another terminal, weave a topic of JSON records:\n\n"
                f'  echo "{QUERIES}" > queries.sql\n'
                f"  export WEFT_CONNECTOR_JARS={connectors}\n"
                f"  .venv/bin/weft run queries.sql --source kafka:{servers}/trades "
                "--schema 'ts TIMESTAMP, symbol STRING, price DOUBLE' "
                f"--sink kafka:{servers}/answers --checkpoint state\n\n"
                "Ctrl-C stops it, and its topics are gone.",
                flush=True,
            )
            while True:
                time.sleep(1)
    except KeyboardInterrupt:
        return
    except NoJars as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
