"""Targets are accessed from a separate process: it blocks no other request, leaks nothing, and always exits."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.cli.conftest import ROOT, descendants
from tests.jobs.waiting import eventually
from webapp import limits
from webapp.config import LOCAL_NETWORKS
from webapp.connectors import KINDS, driver_process
from webapp.connectors.base import Connector, ConnectorError
from webapp.net.gate import Gate

SECRET = "canary-5d1e07"
ASKS = """
import sys
from webapp.connectors import KINDS, driver_process
from webapp.net.gate import Gate
kind = KINDS["postgresql"]
settings = kind.Settings(host="127.0.0.1", port=int(sys.argv[1]), username="u", password=sys.stdin.readline().strip())
driver_process.stages(kind(settings, Gate(["127.0.0.0/8"])), 60)
"""


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def asking(silent: int) -> Iterator[subprocess.Popen[str]]:
    """A process whose child waits for that server."""
    process = subprocess.Popen(
        [sys.executable, "-c", ASKS, str(silent)], cwd=ROOT, stdin=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(f"{SECRET}\n")
    process.stdin.flush()
    yield process
    process.kill()
    process.communicate()


def waiting_on(port: int) -> Connector:
    kind = KINDS["postgresql"]
    settings = kind.Settings(host="127.0.0.1", port=port, username="u", password=SECRET)  # type: ignore[call-arg]
    return kind(settings, Gate(LOCAL_NETWORKS))


def on_file(folder: Path) -> Connector:
    kind = KINDS["sqlite"]
    return kind(kind.Settings(file="box.db"), Gate(), str(folder))  # type: ignore[call-arg]


def test_a_server_that_is_silent_fails_its_stage_when_the_time_is_up(silent):
    began = time.monotonic()
    found = driver_process.stages(waiting_on(silent), 3.0)
    assert time.monotonic() - began < 6
    assert [(item["name"], item["ok"], item["code"]) for item in found] == [
        ("resolve", True, ""), ("connect", True, ""), ("tls", False, "timeout"),
    ]  # fmt: skip


def test_metadata_that_take_too_long_are_a_time_out(silent):
    driver_process.stages(waiting_on(silent), 2.0)  # starts the process that is forked
    before = descendants(os.getpid())
    with pytest.raises(ConnectorError) as late:
        driver_process.metadata(waiting_on(silent), 2.0)
    assert late.value.code == "target_timeout"
    eventually(lambda: descendants(os.getpid()) <= before)


def test_no_secret_is_in_the_childs_arguments_or_environment(asking):
    child = eventually(lambda: descendants(asking.pid))
    for pid in child:
        result = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        assert result
        assert SECRET.encode() not in result


def test_the_service_own_secrets_are_not_in_the_childs_environment(silent, monkeypatch):
    monkeypatch.setenv("VAULT_KEYS", SECRET)
    monkeypatch.setenv("DATABASE_URL", f"postgresql://{SECRET}@h/d")
    driver_process.server.stop()  # the next one starts with these variables
    before = descendants(os.getpid())
    asker = threading.Thread(target=driver_process.stages, args=(waiting_on(silent), 3.0))
    asker.start()
    children = eventually(lambda: len(found := descendants(os.getpid()) - before) == 2 and found)
    for child in children:
        assert SECRET.encode() not in Path(f"/proc/{child}/environ").read_bytes()
    asker.join()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel of Linux ends it")
def test_a_child_ends_with_the_process_that_asked(asking):
    children = eventually(lambda: descendants(asking.pid))
    # It has bound itself to its parent before it reaches the server.
    eventually(lambda: any(_connected(pid) for pid in children))
    asking.send_signal(signal.SIGKILL)
    asking.wait()
    eventually(lambda: not any(Path(f"/proc/{pid}/environ").exists() and _alive(pid) for pid in children))


def test_a_child_process_exits_by_itself(silent):
    requests = {
        "question": "stages", "kind": "postgresql", "folder": "", "read_only": False, "networks": ["127.0.0.0/8"],
        "settings": {"host": "127.0.0.1", "port": silent}, "seconds": 1.0, "secrets": {}, "document": None,
    }  # fmt: skip
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            assert driver_process.server.fork("webapp.connectors.postgresql.session", [theirs.fileno()])
        ours.settimeout(30)
        ours.sendall(orjson.dumps(requests))
        ours.shutdown(socket.SHUT_WR)
        text = b""
        while piece := ours.recv(1024):
            text += piece
    assert b"resolve" in text
    assert b"done" not in text
    assert b"error" not in text


def test_output_of_a_driver_before_its_crash_counts(silent, monkeypatch):
    def killed(asked: bytes, module: str, seconds: float) -> tuple[bytes, bool]:
        return b'{"part":{"name":"resolve","ok":true,"ms":1}}\n{"part":{"na', False

    monkeypatch.setattr(driver_process, "_run_child", killed)
    found = driver_process.stages(waiting_on(silent), 3.0)
    assert [(item["name"], item["ok"]) for item in found] == [("resolve", True), ("connect", False)]
    assert found[-1]["code"] == "driver_failed"


def test_a_request_that_waits_too_long_for_a_slot_gets_a_retry_after(silent, monkeypatch):
    monkeypatch.setattr(driver_process, "_slots", threading.BoundedSemaphore(1))
    monkeypatch.setattr(limits, "CHILD_QUEUE_SECONDS", 0.05)
    with driver_process._slots, pytest.raises(ConnectorError) as busy:
        driver_process.metadata(waiting_on(silent), 2.0)
    assert (busy.value.reason, busy.value.transient) == ("busy", True)


def test_samples_are_the_rows_of_the_tables_that_are_there(tmp_path):
    result = sqlite3.connect(tmp_path / "box.db")
    result.executescript("create table pet(id integer primary key, name text)")
    result.executescript("insert into pet(name) values ('Rex'), (null)")
    result.close()
    found = driver_process.samples(on_file(tmp_path), ["pet", "no such table"], 10, 20.0)
    assert {name: rows.to_pylist() for name, rows in found.items()} == {
        "pet": [{"id": 1, "name": "Rex"}, {"id": 2, "name": None}]
    }


def test_there_are_no_samples_where_there_is_no_way_to_the_target(silent):
    with pytest.raises(ConnectorError):
        driver_process.samples(waiting_on(silent), ["pet"], 10, 2.0)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def _connected(pid: int) -> bool:
    try:
        return any("socket:" in os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
