"""Sessions that weft makes: how they talk to their Python workers."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from weft.spark import session

LIFE = """
import json, os, sys
from weft.spark import local_session

spark = local_session({"spark.driver.memory": "1g"})
count = spark.range(10, numPartitions=1).mapInArrow(lambda batches: batches, "id long").count()
folder = spark.conf.get("spark.python.unix.domain.socket.dir")
found = {"count": count, "folder": folder, "mode": os.stat(folder).st_mode, "sockets": len(os.listdir(folder))}
print(json.dumps(found))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux delays acknowledgements so: elsewhere Spark's default")
def test_workers_are_reached_through_sockets_in_a_folder_of_this_user_alone_that_ends_with_the_process() -> None:
    life = subprocess.run([sys.executable, "-c", LIFE], capture_output=True, text=True, check=True)
    found = json.loads(life.stdout.splitlines()[-1])
    assert found["count"] == 10
    assert found["sockets"] > 0
    assert stat.S_IMODE(found["mode"]) == stat.S_IRWXU
    assert not Path(found["folder"]).exists()
    assert "Traceback" not in life.stderr


def test_where_temporary_folders_have_long_names_spark_keeps_its_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * session.LONGEST_SOCKET_FOLDER)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert session.worker_sockets.__wrapped__() == {}
    assert list(long.iterdir()) == []
