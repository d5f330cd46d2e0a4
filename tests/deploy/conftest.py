"""Two hosts, simulated on one machine: processes started by the commands of the Procfile, each host with a separate
data folder, sharing only PostgreSQL, Redis and S3.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SECRET_KEY, VAULT_KEY, _database
from tests.jobs.waiting import eventually
from tests.s3.conftest import BUCKET, KEYS, Server
from webapp.extensions import create_redis_client
from webapp.paths import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))

import rowsmith

START_SECONDS = 180


def procfile() -> dict[str, str]:
    """Name and command of each part."""
    lines = (ROOT / "Procfile").read_text().splitlines()
    return {name: command.strip() for name, command in (line.split(":", 1) for line in lines)}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Host:
    """One machine: its data folder, its settings, the parts that run on it."""

    def __init__(self, name: str, folder: Path, settings: dict[str, str]) -> None:
        self.name, self.folder, self.port = name, folder / name, free_port()
        self.folder.mkdir()
        self.url = f"http://127.0.0.1:{self.port}"
        bin_folder = str(Path(sys.executable).parent)
        self.env = {
            "PATH": os.pathsep.join([bin_folder, os.environ["PATH"]]),
            "HOME": os.environ.get("HOME", str(folder)),
            **settings,
            "ROWSMITH_DATA_DIR": str(self.folder),
            "ROWSMITH_PORT": str(self.port),
            "ROWSMITH_WEB_WORKERS": "1",
            "PORT": str(self.port),
            "RUN_API_URL": self.url,
        }
        self.parts: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, part: str) -> None:
        """A part, by the command of the Procfile, in the shell that would read it."""
        command = procfile()[part].replace(
            "0.0.0.0", "127.0.0.1"
        )  # the only change: tests listen only on loopback
        with (self.folder / f"{part}.log").open("ab") as log:
            self.parts[part] = subprocess.Popen(
                ["sh", "-c", f"exec {command}"],
                cwd=ROOT,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def run(self, *command: str) -> str:
        """A command to its end; what it printed."""
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def log(self, part: str) -> str:
        return (self.folder / f"{part}.log").read_text(errors="replace")

    def ready(self, key: str = "") -> dict[str, Any] | None:
        """What /health/ready says, when all is there. `key`: of an admin, for the details."""
        for name, process in self.parts.items():
            assert process.poll() is None, f"{self.name} {name}:\n{self.log(name)[-3000:]}"
        try:
            headers = {"X-API-Key": key} if key else {}
            request = urllib.request.Request(f"{self.url}/health/ready", headers=headers)
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except (OSError, urllib.error.HTTPError):
            return None

    def kill(self, part: str) -> None:
        """As a machine that loses its power."""
        process = self.parts.pop(part)
        process.kill()
        process.wait()

    def stop(self) -> dict[str, int]:
        """Ask every part to end; their exit codes."""
        for process in self.parts.values():
            process.terminate()
        codes = {}
        for name, process in self.parts.items():
            try:
                codes[name] = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                codes[name] = process.wait()
        self.parts.clear()
        return codes


class Hosts:
    """Both of them. `api` speaks to the first, `other` to the second, with one key."""

    def __init__(self, first: Host, second: Host, ways_in: dict[str, str]) -> None:
        self.first, self.second, self.ways_in = first, second, ways_in
        self.key = ways_in["api_key"]
        self.api = rowsmith.Api(self.key, first.url)
        self.other = rowsmith.Api(self.key, second.url)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory, shared_redis: str) -> Iterator[Hosts]:
    """Web, worker and sweeper on one host; web, worker and runner on the other."""
    folder, files = tmp_path_factory.mktemp("hosts"), Server()
    files.start()
    try:
        with _database() as database:
            redis = create_redis_client(shared_redis)
            redis.flushdb()
            redis.close()
            settings = {
                "SECRET_KEY": SECRET_KEY,
                "VAULT_KEYS": VAULT_KEY,
                "DATABASE_URL": database,
                "REDIS_URL": shared_redis,
                "STORAGE_URL": f"s3://{BUCKET}/production",
                "AWS_ENDPOINT_URL": files.url,
                **{name.upper(): value for name, value in KEYS.items()},
            }
            first, second = Host("first", folder, settings), Host("second", folder, settings)
            for host in (first, second):
                host.env["PUBLIC_URL"] = first.url  # as behind one proxy
            try:
                first.run("sh", "-c", procfile()["release"])
                result = json.loads(first.run(sys.executable, "-m", "webapp.cli.prepare"))
                for part in ("web", "worker", "sweeper"):
                    first.start(part)
                for part in ("web", "worker", "runner"):
                    second.start(part)
                for host in (first, second):
                    eventually(host.ready, within=START_SECONDS)
                yield Hosts(first, second, result)
            finally:
                first.stop()
                second.stop()
    finally:
        files.stop()
