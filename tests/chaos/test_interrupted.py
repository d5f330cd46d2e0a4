"""What else may happen to a push that is under way: a cancel, a stop, an empty Redis, a target that goes away.

Promises 2 and 8 of docs/promises.md.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from jobs import sweeper
from tests.chaos.conftest import COUNT, alive, cancel, ids, lose, slow_down
from tests.jobs.waiting import eventually
from webapp import clock
from webapp.extensions import write_session
from webapp.monitoring import health
from webapp.pushes.models import Push
from webapp.pushes.services.ledger import read
from webapp.work import jobs_queue


def under_way(pushing, push_id: str, rows: int = 1) -> Push:
    """Wait until this many rows are delivered; return the push."""
    return eventually(lambda: (row := pushing.read(push_id)).delivered >= rows and row)


@pytest.fixture
def worker(nursery, client):
    """Starts a real worker and waits until it beats; returns its process."""

    def begin():
        before = health.count_alive(client, health.WORKER, 0)
        result = nursery("worker")
        eventually(lambda: health.count_alive(client, health.WORKER, 0) > before or result.process.poll())
        assert result.process.poll() is None, result.log.read_text()[-3000:]
        return result.process

    return begin


def horse_of(parent: int) -> int:
    """The process that does the job of a worker."""

    def child() -> int:
        for name in os.listdir("/proc"):
            if name.isdigit() and f"\nPPid:\t{parent}\n" in _status(name):
                return int(name)
        return 0

    return eventually(child)


def _status(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/status") as file:
            return file.read()
    except OSError:
        return ""


# --- Cancel ---------------------------------------------------------------------------------------------------


def test_a_cancel_takes_effect_within_six_seconds_while_a_statement_hangs(nursery, new_push, pushing, target):
    keeper = nursery()
    slow_down(target, "people", 0.001)
    push_id = new_push()
    pid = keeper.start(push_id)
    under_way(pushing, push_id)
    with psycopg.connect(target, autocommit=True) as other:
        other.execute("ALTER FUNCTION slowly() RENAME TO once")
        other.execute(
            "CREATE OR REPLACE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN PERFORM pg_sleep(600); RETURN NEW; END$$"
        )
    threading.Event().wait(0.5)  # it hangs by then, or at its next row
    request = time.monotonic()
    cancel(push_id)
    ended = eventually(lambda: (row := pushing.read(push_id)).has_ended and row)
    eventually(lambda: not alive(pid))
    assert time.monotonic() - request < 6
    keeper.over()
    ended = pushing.read(push_id)
    assert (ended.status, ended.failed, ended.unknown) == ("cancelled", 0, 0)
    assert ids(target) == list(range(1, ended.delivered + 1))
    assert ended.request["settled"]


def test_a_cancel_of_a_queued_push_means_that_it_never_starts(nursery, new_push, pushing, target):
    push_id = new_push()
    cancel(push_id)
    nursery().do(push_id)
    assert pushing.read(push_id).status == "queued", "the sweeper ends it"
    assert ids(target) == []


class Wire:
    """A way to the target that can be cut without anybody being told."""

    def __init__(self, port: int) -> None:
        self.port, self.dead = port, threading.Event()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.own = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(near)
            if self.dead.is_set():
                continue
            far = socket.create_connection(("127.0.0.1", self.port))
            self._sockets.append(far)
            for item, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(item, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while piece := one.recv(65536):
                if self.dead.is_set():
                    return
                other.sendall(piece)
        except OSError:
            return
        if not self.dead.is_set():
            for side in (one, other):
                side.close()

    def close(self) -> None:
        self._listener.close()
        for item in self._sockets:
            item.close()


@pytest.fixture
def wire(target) -> Iterator[Wire]:
    result = Wire(psycopg.conninfo.conninfo_to_dict(target).get("port") or 5432)
    yield result
    result.close()


def test_a_cancel_holds_while_the_target_has_fallen_silent(nursery, new_push, pushing, target, wire):
    address = psycopg.conninfo.make_conninfo(target, host="127.0.0.1", port=wire.own)
    keeper = nursery(TARGET=address)
    slow_down(target, "people", 0.001)
    push_id = new_push()
    pid = keeper.start(push_id)
    under_way(pushing, push_id)
    wire.dead.set()
    threading.Event().wait(1)
    request = time.monotonic()
    cancel(push_id)
    eventually(lambda: pushing.read(push_id).has_ended and not alive(pid))
    took = time.monotonic() - request
    keeper.over()
    assert took < 6
    ended = pushing.read(push_id)
    found = len(ids(target))
    assert ended.status == "cancelled"
    assert ended.delivered <= found <= ended.delivered + ended.unknown


# --- Workers --------------------------------------------------------------------------------------------------


def test_a_stopping_worker_releases_its_push_and_the_next_continues(
    worker, new_push, pushing, client, target
):
    slow_down(target, "heap", 0.0005)
    first = worker()
    push_id = new_push("heap")
    jobs_queue.enqueue(client, "push", push_id)
    under_way(pushing, push_id)
    request = time.monotonic()
    first.send_signal(signal.SIGTERM)
    assert first.wait(timeout=30) == 0
    assert time.monotonic() - request < 20
    freed = pushing.read(push_id)
    assert (freed.status, freed.lease_owner, freed.attempt) == ("running", None, 1)
    worker()
    ended = eventually(lambda: (row := pushing.read(push_id)).has_ended and row, within=60)
    assert (ended.status, ended.delivered, ended.attempt) == ("completed", COUNT, 1)
    assert ids(target, "heap") == list(range(1, COUNT + 1))


def test_killing_only_the_parent_never_makes_two_senders(worker, new_push, pushing, client, target):
    slow_down(target, "heap", 0.0003)
    first = worker()
    push_id = new_push("heap")
    jobs_queue.enqueue(client, "push", push_id)
    under_way(pushing, push_id)
    horse = horse_of(first.pid)
    first.kill()
    first.wait()
    eventually(lambda: not alive(horse))
    lose(push_id)
    worker()
    sweeper.sweep(client, clock.now())
    ended = eventually(lambda: (row := pushing.read(push_id)).has_ended and row, within=60)
    assert (ended.status, ended.delivered, ended.attempt) == ("completed", COUNT, 2)
    assert ids(target, "heap") == list(range(1, COUNT + 1))


def test_emptying_redis_loses_no_push_and_no_line(worker, new_push, pushing, client, target):
    slow_down(target, "heap", 0.0003)
    worker()
    running, waiting = new_push("heap"), new_push("people")
    for push_id in (running, waiting):
        jobs_queue.enqueue(client, "push", push_id)
    under_way(pushing, running)
    client.flushall()
    with write_session() as session:
        session.get_one(Push, waiting).created_at = clock.now().replace(year=2020)
    sweeper.sweep(client, clock.now())
    for push_id in (running, waiting):
        eventually(lambda push_id=push_id: pushing.read(push_id).status == "completed", within=60)
        lines = read.log_lines(push_id)
        assert [line.number for line in lines] == list(range(1, len(lines) + 1))
        assert "completed" in lines[-1].text
    assert ids(target, "heap") == ids(target) == list(range(1, COUNT + 1))


# --- Targets --------------------------------------------------------------------------------------------------


def test_a_push_outlives_the_ends_of_its_connections(nursery, new_push, pushing, target):
    keeper = nursery()
    slow_down(target, "heap", 0.0002)
    push_id = new_push("heap")
    keeper.start(push_id)
    chance, ends = random.Random(3), 0
    with psycopg.connect(target, autocommit=True) as other:
        for rows in range(1, COUNT, 1_500):
            under_way(pushing, push_id, rows)
            threading.Event().wait(chance.uniform(0, 0.5))  # any moment of a chunk
            ends += other.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            ).fetchone()[0]
    keeper.over()
    ended = pushing.read(push_id)
    assert (ended.status, ended.delivered, ended.unknown) == ("completed", COUNT, 0), ended.error
    assert ids(target, "heap") == list(range(1, COUNT + 1))
    assert ends
