"""One export by several real worker processes, side by side; one of them killed; on both databases."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from jobs import sweeper
from tests.cast import Program, gather
from tests.conftest import SECRET_KEY, _database, close_app, settings_for
from tests.jobs.waiting import eventually
from tests.views.speak import make
from webapp import clock, create_app, storage
from webapp.exports.models import ExportPart
from webapp.extensions import db, read_session, redis_client, write_session
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
        self._workers: list[subprocess.Popen[bytes]] = []
        with self.app.app_context():
            redis_client().flushdb()
            db.create_all()
            self.cast = gather()
            db.session.remove()
        self.edith = Program(self.app, self.cast.edith.key)

    def workers(self, count: int) -> list[subprocess.Popen[bytes]]:
        """That many workers, ready, and no others."""
        while len(self._workers) > count:
            self.kill(self._workers[-1])
        while len(self._workers) < count:
            self._start()
        return list(self._workers)

    def _start(self) -> None:
        starting = self.folder / "starting.log"
        with starting.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "jobs.worker"], env=self.environment, stderr=out
            )
        starting.rename(self._log(process))
        self._workers.append(process)
        with self.app.app_context():
            client = redis_client()
            eventually(lambda: health.count_alive(client, health.WORKER, 0) == len(self._workers), within=60)

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """End a worker in the middle of what it does."""
        worker.kill()
        worker.wait()
        self._workers.remove(worker)
        with self.app.app_context():
            health.record_end(redis_client(), health.WORKER, f"{os.uname().nodename}:{worker.pid}")

    def _log(self, worker: subprocess.Popen[bytes]) -> Path:
        return self.folder / f"worker-{worker.pid}.log"

    def begun(self, worker: subprocess.Popen[bytes]) -> int:
        """How many parts a worker has taken."""
        return self._log(worker).read_text().count(" jobs.lease: part ")

    def used(self) -> int:
        """The rows that count against the workspace's quota."""
        return self.edith.get("/usage").json["rows"]["used"]

    def parts(self, export_id: str) -> list[ExportPart]:
        with self.app.app_context(), read_session() as session:
            found = select(ExportPart).where(ExportPart.export_id == export_id).order_by(ExportPart.number)
            return list(session.scalars(found))

    def held(self, export_id: str) -> bool:
        """Stop the process that makes a part, not the first one, in the middle of it; False if it was too late."""
        parts = self.parts(export_id)
        working = [part for part in parts if part.status == "running"]
        if not working or all(part.status != "completed" for part in parts):
            return False
        pid = int(working[0].lease_owner.rpartition(":")[2])
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            now = {part.number: part for part in self.parts(export_id)}[working[0].number]
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
        self.workers(0)
        close_app(self.app)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def served(request, shared_redis, tmp_path_factory):
    """One for the module: to start a worker takes longer than most exports."""
    folder = tmp_path_factory.mktemp("served")
    sqlite = request.param == "sqlite"
    with nullcontext(f"sqlite:///{folder}/data.db") if sqlite else _database() as url:
        result = Served(url, shared_redis, folder)
        yield result
        result.close()


@pytest.fixture
def ask():
    return {"count": ROWS, "seed": "s", "format": "csv"}


def test_two_workers_make_one_export_side_by_side(served, ask):
    path = f"/templates/{make(served.edith, fields=FIELDS)['id']}"
    workers = served.workers(2)
    before = [served.begun(worker) for worker in workers]
    export = served.edith.post(f"{path}/exports", json={**ask, "part_rows": PART}).json
    export = served.ended(export["id"])
    assert (export["status"], export["parts"], export["parts_done"]) == ("completed", 8, 8)
    shares = [served.begun(worker) - earlier for worker, earlier in zip(workers, before, strict=True)]
    assert sum(shares) == 8
    assert all(shares), "both made parts"
    parts = served.parts(export["id"])
    at_once = [part for part in parts[1:] if part.started_at < parts[0].finished_at]
    assert at_once, "a second part was begun before the first one ended"
    file = served.edith.get(f"/exports/{export['id']}/download").data
    assert file == served.edith.post(f"{path}/generate", json=ask).data


def test_after_a_kill_only_the_current_part_is_created_again(served, ask):
    path = f"/templates/{make(served.edith, fields=FIELDS)['id']}"
    (doomed,) = served.workers(1)
    export = served.edith.post(f"{path}/exports", json={**ask, "part_rows": PART}).json
    eventually(lambda: served.held(export["id"]), within=60)
    served.kill(doomed)
    lost = {item.number for item in served.parts(export["id"]) if item.status == "running"}
    before = {item.number: item.sha256 for item in served.parts(export["id"]) if item.status == "completed"}
    assert len(lost) == 1
    assert before
    with served.app.app_context():
        with write_session() as session:
            for part in session.scalars(select(ExportPart).where(ExportPart.status == "running")):
                part.lease_until = clock.now() - timedelta(seconds=1)
        sweeper.sweep(redis_client(), clock.now())
    served.workers(1)
    export = served.ended(export["id"])
    parts = served.parts(export["id"])
    assert export["status"] == "completed", export["error"]
    assert {item.number for item in parts if item.attempt == 2} == lost
    assert all(item.attempt == 1 for item in parts if item.number not in lost)
    assert {item.number: item.sha256 for item in parts if item.number in before} == before
    file = served.edith.get(f"/exports/{export['id']}/download").data
    assert file == served.edith.post(f"{path}/generate", json=ask).data
    with served.app.app_context():
        assert {stored.key for stored in storage.get_storage(served.app).listing("exports")} >= {
            item.storage_key for item in parts
        }


def test_a_cancel_stops_every_worker_within_six_seconds(served, ask):
    path = f"/templates/{make(served.edith, fields=FIELDS)['id']}"
    served.workers(2)
    used = served.used()
    requests = {**ask, "count": 8_000_000, "part_rows": 1_000_000}
    export = served.edith.post(f"{path}/exports", json=requests).json
    eventually(lambda: sum(part.status == "running" for part in served.parts(export["id"])) == 2, within=60)
    served.edith.delete(f"/exports/{export['id']}")
    export = eventually(
        lambda: (found := served.edith.get(f"/exports/{export['id']}").json)["finished_at"] and found,
        within=6,
    )
    assert export["status"] == "cancelled"
    assert {part.status for part in served.parts(export["id"])} <= {"cancelled", "completed"}
    eventually(lambda: served.used() - used == export["rows_done"])
