"""A real OData server: SAP CAP with its V2 adapter and a gateway in front (tests/odata/cap), on a free port of this
machine. It is installed once, by npm from its lock file, into a folder outside of the tree; where that cannot be done
the tests are skipped with the reason.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.jobs.conftest import app, environment  # noqa: F401 - fixtures of the worker's tests
from webapp.connectors.odata.connector import OdataConnector, OdataSettings
from webapp.net.gate import Gate

CAP = Path(__file__).parent / "cap"
INSTALL_SECONDS = 600
START_SECONDS = 60


def installed() -> Path:
    """The folder of the server with its packages; made when it is missing or its lock file changed."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: the OData server of the tests is a package of it")
    expected = hashlib.sha256((CAP / "package-lock.json").read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rowsmith-tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"cap-{expected}"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may start at the same time
        if not (folder / "installed").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(CAP / name, folder)
            done = subprocess.run(
                [npm, "ci", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True, check=False,
                timeout=INSTALL_SECONDS,
            )  # fmt: skip
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
                pytest.skip(f"npm could not install the OData server: {last}")
            (folder / "installed").touch()
    return folder


@dataclass
class Server:
    """The server as the tests speak to it."""

    url: str

    def become(self, **rules: Any) -> None:
        """Change how the gateway behaves (see cap/server.js), and empty the tables."""
        requests.post(f"{self.url}/control", json=rules, timeout=10).raise_for_status()

    def holds(self) -> dict[str, Any]:
        """Rows by table, and what the gateway saw."""
        return requests.get(f"{self.url}/control", timeout=10).json()

    def rows(self, path: str) -> list[dict[str, Any]]:
        """What a V4 query answers."""
        answer = requests.get(f"{self.url}/odata/v4/shop/{path}", timeout=10)
        answer.raise_for_status()
        return answer.json()["value"]

    def connector(self, version: str, **settings: Any) -> OdataConnector:
        value = {"service_url": f"{self.url}/odata/{version}/shop", **settings}
        return OdataConnector(OdataSettings.model_validate(value), Gate(["127.0.0.0/8"]))


@pytest.fixture(scope="session")
def started() -> Iterator[Server]:
    packages = installed()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(CAP, folder, dirs_exist_ok=True)
        (folder / "node_modules").symlink_to(packages / "node_modules")
        node = folder / "node_modules" / "node" / "bin" / "node"
        if not node.exists():
            pytest.skip("the package node of npm brings no program for this machine")
        process = subprocess.Popen(
            [str(node), "node_modules/@sap/cds/bin/serve.js"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PATH": os.environ.get("PATH", ""), "HOME": name, "PORT": "0", "NODE_ENV": "test"},
        )  # fmt: skip
        timer = threading.Timer(START_SECONDS, process.kill)
        timer.start()
        assert process.stdout is not None
        text, port, drain = [], None, None
        try:
            for line in process.stdout:
                text.append(line)
                if found := re.search(r"server listening on .*?:(\d+)'", line):
                    port = found[1]
                    break
            timer.cancel()
            assert port, "".join(text)
            drain = threading.Thread(target=_drain, args=(process,), daemon=True)
            drain.start()
            yield Server(f"http://127.0.0.1:{port}")
        finally:
            timer.cancel()
            process.kill()
            process.wait()
            if drain is not None:
                drain.join()
            process.stdout.close()


def _drain(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ValueError, OSError):
        for _ in process.stdout or ():
            pass


@pytest.fixture
def server(started: Server) -> Server:
    """The server with empty tables and a gateway that wants tokens."""
    started.become()
    return started
