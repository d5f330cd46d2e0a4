"""A target database that is killed and comes back: the push waits for it, and its ledger equals the table row for row.

Against PostgreSQL and MariaDB servers of the test's own, killed before, during and after a COMMIT. The waits and the
chunks are a tenth of the real ones; TARGET_OUTAGE_SECONDS=20 runs with the real ones and an outage of 20 s.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa

from jobs import sweeper
from jobs.lease import NotAvailable
from tests.fakes.database_server import DatabaseServer, MariadbServer, PostgresqlServer
from tests.jobs.pushing import Pushing, rows, table_spec
from tests.jobs.waiting import eventually
from webapp import clock, limits
from webapp.connectors import KINDS
from webapp.connectors.base import ConnectionLost, Session
from webapp.extensions import redis_client, write_session
from webapp.net.gate import Gate
from webapp.pushes.models import Push, PushRow
from webapp.pushes.services.ledger import read
from webapp.work import jobs_queue
from webapp.work.models import END_STATES

OUTAGE = float(os.environ.get("TARGET_OUTAGE_SECONDS", "2"))
REAL = OUTAGE > 10
ROWS = 30_000 if REAL else 3_000
SERVERS = {"postgresql": PostgresqlServer, "mysql": MariadbServer}


@pytest.fixture(scope="module", params=SERVERS)
def server(request) -> Iterator[DatabaseServer]:
    result = SERVERS[request.param]()
    result.kind = request.param
    yield result
    result.close()


def connect(server: DatabaseServer) -> Session:
    kind = KINDS[server.kind]
    session = kind(kind.Settings(connection_string=server.url), Gate(["127.0.0.0/8"])).open()
    assert isinstance(session, Session)
    return session


@pytest.fixture
def table(server) -> Iterator[str]:
    if server.process.poll() is not None:
        server.start()
    with connect(server) as session:
        session.execute("CREATE TABLE people (id int PRIMARY KEY, name varchar(60) NOT NULL)")
    yield "people"
    with connect(server) as session:
        session.execute("DROP TABLE people")


@pytest.fixture
def pushing(app, monkeypatch, server, table) -> Pushing:
    result = Pushing(app, monkeypatch)
    result.connect = lambda: connect(server)
    if not REAL:
        waits = tuple(wait / 10 for wait in limits.PUSH_TARGET_RETRY_SECONDS)
        monkeypatch.setattr(limits, "PUSH_TARGET_RETRY_SECONDS", waits)
        monkeypatch.setattr(limits, "PUSH_WORKER_WAIT_SECONDS", limits.PUSH_WORKER_WAIT_SECONDS / 10)
        for name in ("PUSH_FIRST_ROWS", "PUSH_CHUNK_ROWS"):
            monkeypatch.setattr(limits, name, getattr(limits, name) // 10)
    return result


def people(count: int = ROWS):
    value = rows(count)
    return [(table_spec("people", value), value)]


def there(server: DatabaseServer) -> list[int]:
    """The ids in the table."""
    with connect(server) as session:
        entity = session.entity("people")
        found = [row for batch in session.keys(entity, ["id"]) for row in batch.column(0).to_pylist()]
    return sorted(int(row) for row in found)


def delivered(push_id: str) -> list[int]:
    """The rows that the ledger says are there."""
    with write_session() as session:
        push = session.get_one(Push, push_id)
        return read.delivered_row_numbers(session, push, 0, 1, push.tables[0]["count"]).tolist()


class Outage:
    """Kills the server around a commit, and starts it again after the outage."""

    def __init__(self, server: DatabaseServer, pushing: Pushing, when: str, commit: int = 2) -> None:
        self.server, self.when, self.left = server, when, commit
        self.back = threading.Event()
        plain = pushing.connect

        def opened() -> Session:
            session = plain()
            make = session.target

            def target(writing):
                created = make(writing)
                real = created.commit
                created.commit = lambda: self._commit(real)
                return created

            session.target = target
            return session

        pushing.connect = opened

    def _commit(self, real) -> None:
        self.left -= 1
        if self.left != 0:
            return real()
        if self.when == "after":
            real()
            self._kill()
            raise ConnectionLost("The connection was lost.")
        if self.when == "before":
            self._kill()
            return real()
        killer = threading.Thread(target=self._kill)  # during the statement: either can win
        killer.start()
        try:
            return real()
        finally:
            killer.join()

    def _kill(self) -> None:
        self.server.kill()
        threading.Thread(target=self._restart).start()

    def _restart(self) -> None:
        time.sleep(OUTAGE)
        self.server.start()
        self.back.set()


def until_ended(pushing: Pushing, push_id: str) -> Push:
    """Do what a worker and the sweeper do, until the push has ended."""
    while True:
        push = pushing.do(push_id)
        if push.status in END_STATES:
            return push
        assert (push.status, push.lease_owner, push.attempt) == ("running", None, 1), "the worker is released"
        result = read.waiting_details(push.status, push.retry_at, push.waiting)
        assert result["next_try_at"] == clock.to_text(push.retry_at)
        assert result["message"]
        with pytest.raises(NotAvailable):  # no worker takes it before its time
            pushing.do(push_id)
        eventually(lambda push=push: push.retry_at <= clock.now(), 60)


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_ledger_equals_the_table_after_the_server_was_killed_around_a_commit(pushing, server, when):
    outage = Outage(server, pushing, when)
    push_id = pushing.push(people())
    done = until_ended(pushing, push_id)
    assert outage.back.wait(60)
    assert (done.status, done.delivered, done.failed, done.unknown) == ("completed", ROWS, 0, 0)
    assert there(server) == delivered(push_id) == list(range(1, ROWS + 1))
    text = [line.text for line in read.log_lines(push_id, limit=1_000)]
    assert any("Waiting for the target, next try in" in line for line in text)
    assert any("it was committed" in line or "it was not committed" in line for line in text)
    assert read.waiting_details(done.status, done.retry_at, done.waiting) is None


def test_a_push_to_an_unavailable_target_starts_when_it_is_back(pushing, server):
    server.kill()
    back = threading.Timer(OUTAGE, server.start)
    push_id = pushing.push(people(500))
    back.start()
    done = until_ended(pushing, push_id)
    back.join()
    assert (done.status, done.delivered) == ("completed", 500)


def test_resuming_a_failed_push_settles_the_chunk_in_doubt_first(pushing, server):
    for when in ("before", "after"):
        outage = Outage(server, pushing, when)
        push_id = pushing.push(people(), ask={"target_wait_seconds": 0})
        failed = pushing.do(push_id)
        assert (failed.status, failed.error["details"]["reason"]) == ("failed", "lost")
        assert failed.unknown > 0
        assert outage.back.wait(60)
        before = there(server)
        retry = resumed(pushing, push_id)
        done = pushing.do(retry)
        assert (done.status, done.failed, done.unknown) == ("completed", 0, 0)
        first = pushing.read(push_id)
        assert (first.delivered, first.failed, first.unknown) == (ROWS, 0, 0)
        assert there(server) == list(range(1, ROWS + 1))
        assert delivered(push_id) == list(range(1, ROWS + 1))
        assert done.delivered == ROWS - len(before), "what had arrived is not sent again"
        with connect(server) as session:
            session.execute("DELETE FROM people")


def resumed(pushing: Pushing, push_id: str) -> str:
    """A retry of the rows that were never sent, as `push_again.retry` makes it."""
    retry = pushing.retry(push_id, ["pending"], request={"ask": {"again": {"states": ["pending"]}}})
    with write_session() as session:
        push = session.get_one(Push, push_id)
        chunk = push.unsettled
        assert chunk is not None
        marked = session.execute(
            sa.update(PushRow)
            .where(PushRow.push_id == push_id, PushRow.row >= chunk["first"], PushRow.row <= chunk["last"])
            .values(retried_by=retry)
        ).rowcount
        session.get_one(Push, retry).total += marked
    return retry


def test_a_push_that_waited_its_time_fails_with_the_reason_and_a_hint(pushing, server):
    server.kill()
    try:
        done = until_ended(pushing, pushing.push(people(10), ask={"target_wait_seconds": 1}))
    finally:
        server.start()
    assert (done.status, done.error["code"], done.error["details"]["reason"]) == (
        "failed",
        "target_failed",
        "refused",
    )
    assert done.total - done.delivered - done.failed - done.unknown == 10


def test_a_waiting_push_is_cancelled_by_the_sweeper_and_found_when_it_is_due(pushing, server, client, app):
    server.kill()
    try:
        push_id = pushing.push(people(10))
        push = pushing.do(push_id)
        assert push.status == "running"
        soon = clock.now()
        if push.retry_at > soon:
            assert sweeper.sweep(client, soon)["rung"] == 0
        eventually(lambda: push.retry_at <= clock.now(), 60)
        assert sweeper.sweep(client, clock.now())["rung"] == 1
        assert push_id in jobs_queue.queued_ids(redis_client(), "push")
        with write_session() as session:
            session.get_one(Push, push_id).cancel_requested_at = clock.now() - timedelta(seconds=1)
        assert sweeper.sweep(client, clock.now())["cancelled"] == 1
        assert pushing.read(push_id).status == "cancelled"
    finally:
        server.start()
