"""PostgreSQL restarted in the middle of a push: a server of the test's own, stopped like a power cut.

Promise 3 of docs/promises.md.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from glob import glob
from pathlib import Path

import pytest

from tests.chaos.conftest import COUNT, ids, make_table, slow_down
from tests.jobs.waiting import eventually
from webapp.pushes.services.ledger import read


def programs() -> Path:
    """Return the folder of PostgreSQL's server programs; skip the test if they are not installed."""
    found = shutil.which("pg_ctl") or next(
        iter(sorted(glob("/usr/lib/postgresql/*/bin/pg_ctl"), reverse=True)), ""
    )
    if not found:
        pytest.skip("no pg_ctl: install PostgreSQL's server")
    return Path(found).parent


class Server:
    """A PostgreSQL server in a folder; as root it runs as the user postgres, which it insists on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, programs()
        self.user = "postgres" if os.getuid() == 0 else None
        if self.user:
            shutil.chown(folder, self.user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-D", f"{folder}/data", "-U", "postgres", "-A", "trust", "--no-sync")
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                f"port={self.port}\nlisten_addresses='127.0.0.1'\nunix_socket_directories='{folder}'\n"
            )
        self.control("start")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def control(self, *command: str) -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-l", f"{self.folder}/log", *command)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.bin / program), *arguments]
        done = subprocess.run(
            command, user=self.user, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="rowsmith-pg-"))  # pytest's own folders are closed to other users
    result = None
    try:
        result = Server(folder)
        yield result
    finally:
        if result is not None:
            result.control("stop", "-m", "immediate")
        shutil.rmtree(folder)


@pytest.fixture
def target(server: Server) -> str:
    make_table(server.url)
    return server.url


def test_a_restart_of_the_target_in_mid_push_loses_and_doubles_nothing(
    nursery: Callable, new_push: Callable, pushing, server: Server, target: str
):
    keeper = nursery()
    slow_down(target, "heap", 0.0002)
    push_id = new_push("heap")
    keeper.start(push_id)
    chance = random.Random(5)
    for rows in (1, 2_000, 4_000, 6_000):
        eventually(lambda rows=rows: pushing.read(push_id).delivered >= rows, within=60)
        threading.Event().wait(chance.uniform(0, 0.5))  # any moment of a chunk
        server.control("restart", "-m", "immediate")
    eventually(lambda: pushing.read(push_id).has_ended, within=60)
    keeper.over()
    ended = pushing.read(push_id)
    assert (ended.status, ended.delivered, ended.unknown) == ("completed", COUNT, 0), ended.error
    assert ids(target, "heap") == list(range(1, COUNT + 1))


def test_a_target_that_stays_unavailable_ends_the_push_with_a_reason(
    nursery: Callable, new_push: Callable, pushing, server: Server, target: str
):
    keeper = nursery()
    slow_down(target, "heap", 0.0002)
    push_id = new_push("heap", ask={"target_wait_seconds": 5})
    keeper.start(push_id)
    eventually(lambda: pushing.read(push_id).delivered)
    server.control("stop", "-m", "immediate")
    eventually(lambda: pushing.read(push_id).has_ended, within=60)
    keeper.over()
    server.control("start")
    ended = pushing.read(push_id)
    assert (ended.status, ended.error["code"]) == ("failed", "target_failed")
    assert any("Gave up after waiting 5 s for the target" in line.text for line in read.log_lines(push_id))
    found = len(ids(target, "heap"))
    assert ended.delivered <= found <= ended.delivered + ended.unknown
