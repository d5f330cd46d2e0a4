"""A real S3 server on this machine: moto's, on a free port. Its packages conflict with ours, so it is in a separate
environment, created once by uv from tests/s3/requirements.lock in a folder outside of the repository. If that is not
possible, the tests are skipped with the reason.
"""

from __future__ import annotations

import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import settings_for
from tests.jobs.waiting import eventually
from tests.separate_environment import installed

LOCK = Path(__file__).parent / "requirements.lock"
BUCKET = "rowsmith-tests"
KEYS = {"aws_access_key_id": "tests", "aws_secret_access_key": "tests", "aws_region": "us-east-1"}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """The server as tests speak to it; it can be stopped and comes back empty."""

    def __init__(self) -> None:
        self.python = installed("moto", LOCK) / "bin" / "python"
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(self.python), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self._answers, within=60)
        request = urllib.request.Request(
            f"{self.url}/{BUCKET}", method="PUT"
        )  # a bucket needs no signature here
        urllib.request.urlopen(request, timeout=10).close()

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/moto-api/", timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def empty(self) -> None:
        urllib.request.urlopen(f"{self.url}/moto-api/reset", data=b"", timeout=10).close()
        request = urllib.request.Request(f"{self.url}/{BUCKET}", method="PUT")
        urllib.request.urlopen(request, timeout=10).close()


@pytest.fixture(scope="session")
def running() -> Iterator[Server]:
    server = Server()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(running: Server) -> Server:
    """The server, running and empty."""
    if running._process is None:
        running.start()
    else:
        running.empty()
    return running


@pytest.fixture
def settings(database_url, shared_redis, data_dir, server):
    """The application keeps its files on the server."""
    more = {"storage_url": f"s3://{BUCKET}/some/prefix", "aws_endpoint_url": server.url, **KEYS}
    return settings_for(database_url, shared_redis, data_dir, **more)
