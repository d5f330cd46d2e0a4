"""One export by several real worker processes, side by side; one of them killed; on both databases."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from jobs import sweeper
from jobs.lease import take
from tests.cast import Program, gather
from tests.conftest import SECRET_KEY, close_app, settings_for
from tests.jobs.waiting import eventually
from tests.views.speak import make
from webapp import clock, create_app, storage
from webapp.exports import services as exports
from webapp.exports.models import Export, ExportPart
from webapp.extensions import db, reading, redis_client, writing
from webapp.monitoring import health

FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "code", "type": "number", "options": {"min": 1, "max": 10_000_000}, "unique": True},
    {"name": "who", "type": "name"},
    {"name": "mail", "type": "email"},
    {"name": "city", "type": "city"},
    {"name": "price", "type": "number", "options": {"min": 1, "max": 5000, "decimals": 2}},
    {"name": "both", "type": "derived", "options": {"value": "{{who}}, {{city}}"}},
]
ROWS, PART = 320_000, 40_000


class Served:
    """An application on a database, and the workers that work on it."""

    def __init__(self, url: str, redis: str, folder: Path) -> None:
        self.app = create_app(settings_for(url, redis, folder))
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            "SECRET_KEY": SECRET_KEY,
            "DATABASE_URL": url,
            "REDIS_URL": redis,
            "ROWSMITH_DATA_DIR": str(folder),
        }
        self.workers: list[subprocess.Popen[bytes]] = []
        with self.app.app_context():
            redis_client().flushdb()
            db.create_all()
            self.cast = gather()
            db.session.remove()
        self.edith = Program(self.app, self.cast.edith.key)

    def start(self) -> subprocess.Popen[bytes]:
        """One more worker, ready."""
        with self.log(len(self.workers)).open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "jobs.worker"], env=self.environment, stderr=out
            )
        self.workers.append(process)
        with self.app.app_context():
            client = redis_client()
            eventually(lambda: health.alive(client, health.WORKER, 0) == len(self.workers), within=60)
        return process

    def log(self, number: int) -> Path:
        return self.folder / f"worker-{number}.log"

    def begun(self, number: int) -> int:
        """How many parts a worker has taken."""
        return self.log(number).read_text().count(" jobs.lease: part ")

    def parts(self, export_id: str) -> list[ExportPart]:
        with self.app.app_context(), reading() as session:
            found = select(ExportPart).where(ExportPart.export_id == export_id).order_by(ExportPart.number)
            return list(session.scalars(found))

    def held(self, export_id: str) -> bool:
        """Stop the process that makes a part, not the first one, in the middle of it; False if it was too late."""
        parts = self.parts(export_id)
        working = [one for one in parts if one.status == "running"]
        if not working or all(one.status != "completed" for one in parts):
            return False
        pid = int(working[0].lease_owner.rpartition(":")[2])
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            now = {one.number: one for one in self.parts(export_id)}[working[0].number]
            if now.status == "running":
                return True
            os.kill(pid, signal.SIGCONT)
        return False

    def ended(self, export_id: str) -> dict[str, object]:
        """The export, once it has ended."""

        def look() -> dict[str, object] | None:
            found = self.edith.get(f"/exports/{export_id}").json
            return found if found["finished_at"] else None

        return eventually(look, within=90)

    def close(self) -> None:
        for process in self.workers:
            process.kill()
            process.wait()
        close_app(self.app)


@pytest.fixture(params=["sqlite", "postgresql"])
def served(request, shared_redis, tmp_path):
    url = (
        f"sqlite:///{tmp_path}/data.db"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_url")
    )
    made = Served(url, shared_redis, tmp_path)
    yield made
    made.close()


@pytest.fixture
def ask():
    return {"count": ROWS, "seed": "s", "format": "csv"}


def test_two_workers_make_one_export_side_by_side(served, ask):
    path = f"/templates/{make(served.edith, fields=FIELDS)['id']}"
    served.start()
    served.start()
    export = served.edith.post(f"{path}/exports", json={**ask, "part_rows": PART}).json
    export = served.ended(export["id"])
    assert (export["status"], export["parts"], export["parts_done"]) == ("completed", 8, 8)
    shares = [served.begun(number) for number in (0, 1)]
    assert sum(shares) == 8
    assert all(shares), "both made parts"
    parts = served.parts(export["id"])
    at_once = [one for one in parts[1:] if one.started_at < parts[0].finished_at]
    assert at_once, "a second part was begun before the first one ended"
    file = served.edith.get(f"/exports/{export['id']}/download").data
    assert file == served.edith.post(f"{path}/generate", json=ask).data


def test_after_a_kill_only_the_current_part_is_created_again(served, ask):
    path = f"/templates/{make(served.edith, fields=FIELDS)['id']}"
    doomed = served.start()
    export = served.edith.post(f"{path}/exports", json={**ask, "part_rows": PART}).json
    eventually(lambda: served.held(export["id"]), within=60)
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.wait()
    lost = {one.number for one in served.parts(export["id"]) if one.status == "running"}
    before = {one.number: one.sha256 for one in served.parts(export["id"]) if one.status == "completed"}
    assert len(lost) == 1
    assert before
    with served.app.app_context():
        client = redis_client()
        health.gone(client, health.WORKER, f"{os.uname().nodename}:{doomed.pid}")
        with writing() as session:
            for part in session.scalars(select(ExportPart).where(ExportPart.status == "running")):
                part.lease_until = clock.now() - timedelta(seconds=1)
        served.workers.clear()
        sweeper.sweep(client, clock.now())
    served.start()
    export = served.ended(export["id"])
    parts = served.parts(export["id"])
    assert export["status"] == "completed", export["error"]
    assert {one.number for one in parts if one.attempt == 2} == lost
    assert all(one.attempt == 1 for one in parts if one.number not in lost)
    assert {one.number: one.sha256 for one in parts if one.number in before} == before
    file = served.edith.get(f"/exports/{export['id']}/download").data
    assert file == served.edith.post(f"{path}/generate", json=ask).data
    with served.app.app_context():
        assert {stored.key for stored in storage.of(served.app).listing("exports")} >= {
            one.storage_key for one in parts
        }


def test_a_cancel_stops_every_worker_within_six_seconds(served, ask):
    path = f"/templates/{make(served.edith, fields=FIELDS)['id']}"
    served.start()
    served.start()
    asked = {**ask, "count": 8_000_000, "part_rows": 1_000_000}
    export = served.edith.post(f"{path}/exports", json=asked).json
    eventually(lambda: sum(one.status == "running" for one in served.parts(export["id"])) == 2, within=60)
    served.edith.delete(f"/exports/{export['id']}")
    export = eventually(
        lambda: (found := served.edith.get(f"/exports/{export['id']}").json)["finished_at"] and found,
        within=6,
    )
    assert export["status"] == "cancelled"
    assert {one.status for one in served.parts(export["id"])} <= {"cancelled", "completed"}
    eventually(lambda: served.edith.get("/usage").json["rows"]["used"] == export["rows_done"])


def test_a_worker_saves_and_ends_a_part_while_its_export_is_locked(served, ask):
    """A cancel holds the export and then wants the parts: a worker that holds a part must not wait for the export."""
    path = f"/templates/{make(served.edith, fields=FIELDS)['id']}"
    export = served.edith.post(f"{path}/exports", json={**ask, "part_rows": PART}).json
    part = served.parts(export["id"])[0]
    with served.app.app_context():
        work = take(exports.PART_KIND, part.id, clock.now, exports.may_start(part.id))
    if served.app.config["SQLALCHEMY_DATABASE_URI"].startswith("sqlite"):
        pytest.skip("SQLite has one lock for all rows")

    def write() -> None:
        with served.app.app_context():
            work.save(rows_done=1)
            work.finish("cancelled")

    writer = threading.Thread(target=write)
    with served.app.app_context(), writing() as session:
        session.get(Export, export["id"], with_for_update=True)
        writer.start()
        writer.join(10)
        waits = writer.is_alive()
    writer.join()
    assert not waits
    assert served.parts(export["id"])[0].status == "cancelled"
