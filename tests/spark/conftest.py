"""The data source in a real Spark, in local mode: two tasks at a time, each tried up to four times.

PySpark is in a separate environment, created once by uv from requirements.lock (compiled from requirements.in by `uv
pip compile --universal --generate-hashes --no-header --no-annotate --no-emit-index-url`), outside of the repository.
Spark needs Java. If one of them is not available, the tests are skipped with the reason.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compat.conftest import origin  # noqa: F401 - a fixture
from webapp.paths import ROOT

LOCK = Path(__file__).parent / "requirements.lock"
INSTALL_SECONDS = 900
PACKAGES = [str(ROOT), *(str(ROOT / "sdk" / name / "src") for name in ("python", "spark"))]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def installed() -> Path:
    """The folder with PySpark's modules; made when it is missing or its lock file changed."""
    uv = Path(sys.executable).parent / "uv"
    if not uv.is_file():
        pytest.skip("uv is not installed: it makes the environment of Spark")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    expected = hashlib.sha256(LOCK.read_bytes() + version.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rowsmith-tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"spark-{expected}"
    with (cache / "spark-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may start at the same time
        if not (folder / "installed").exists():
            shutil.rmtree(folder, ignore_errors=True)
            words = ["--quiet", "pip", "install", "--python", sys.executable, "--target", str(folder)]
            done = subprocess.run(
                [str(uv), *words, "--require-hashes", "-r", str(LOCK)], capture_output=True, text=True, check=False,
                timeout=INSTALL_SECONDS,
            )  # fmt: skip
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
                pytest.skip(f"PySpark could not be installed: {last}")
            (folder / "installed").touch()
    return folder


@pytest.fixture(scope="module")
def pyspark() -> Iterator[Path]:
    """PySpark and the packages of sdk/ can be imported, here and in the processes that Spark starts. For a module at a
    time, since other tests in this process shall not see it."""
    folder = installed()
    paths = [*PACKAGES, str(folder)]
    before, stored = dict(os.environ), list(sys.path)
    sys.path[:0] = [path for path in paths if path not in sys.path]
    os.environ.update(
        PYTHONPATH=os.pathsep.join(paths),
        PYSPARK_PYTHON=sys.executable,
        SPARK_LOCAL_IP="127.0.0.1",
        RWS_SERVER=str(ROOT),
    )
    yield folder
    sys.path[:] = stored
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def spark(pyspark: Path) -> Iterator[Any]:
    """A session of Spark."""
    if shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark needs")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2, 4]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    context = session.sparkContext
    gateway, type(context)._gateway, type(context)._jvm = context._gateway, None, None
    gateway.shutdown()
    gateway.proc.stdin.close()  # it ends with its input
    gateway.proc.wait(30)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """`file(fields)`: the path of a template's file."""

    def write(fields: list[dict[str, Any]], **more: Any) -> str:
        path = tmp_path / "template.json"
        path.write_text(json.dumps({"name": "Orders", "fields": fields, **more}))
        return str(path)

    return write
