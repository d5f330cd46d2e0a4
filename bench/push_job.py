"""A complete push: planned by the service and executed by the job, with its ledger, in this process.

Used by `push`. The service's own database is a SQLite file, as in `./rowsmith up`; the embedded Valkey runs
as a separate process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cryptography.fernet import Fernet
from sqlalchemy import select

from bench.sample import FIELDS
from jobs.pushes import push as job
from webapp import create_app
from webapp.access import actors
from webapp.access.actors import Actor
from webapp.access.models import Project
from webapp.cli import probe, valkey
from webapp.config import Settings
from webapp.connections.services import connections
from webapp.extensions import db, redis_client
from webapp.operations import demo_workspace
from webapp.pushes.models import Push
from webapp.pushes.schemas import PushInput
from webapp.pushes.services import preparation, pushes
from webapp.row_templates.services import templates

_READY_SECONDS = 20.0


class Service:
    """A Rowsmith with a template (the benchmark's, if no fields are given) and one connection."""

    def __init__(
        self, kind: str, settings: dict[str, object], fields: Sequence[dict[str, object]] = FIELDS
    ) -> None:
        self.actor = _actor()
        self.template = templates.create(self.actor, name="bench", fields=list(fields))["id"]
        self.connection = connections.create(self.actor, name="bench", type=kind, settings=settings).id

    def push(self, table: str, rows: int) -> tuple[float, int]:
        """Return the seconds from the request to the end of the last row, and the number of failed rows."""
        start = time.perf_counter()
        ask = PushInput(connection_id=self.connection, target=table, count=rows, seed="benchmark")
        prepared = preparation.prepare_template(self.actor, self.template, ask)
        push_id = pushes.queue(self.actor, prepared, "template.push").id
        job.run(push_id)
        seconds = time.perf_counter() - start
        db.session.expire_all()
        done = db.session.get_one(Push, push_id)
        assert done.delivered + done.failed == rows, (done.status, done.delivered, done.failed)
        return seconds, done.failed


def _actor() -> Actor:
    result = demo_workspace.ensure_demo("enterprise")
    assert result is not None
    project = db.session.scalars(select(Project).where(Project.id == result.project_id)).one()
    return replace(actors.system_actor(result.workspace_id), project_id=project.id, team_id=project.team_id)


@contextmanager
def service(
    kind: str, settings: dict[str, object], fields: Sequence[dict[str, object]] = FIELDS
) -> Iterator[Service]:
    """A service in a temporary folder, removed at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = valkey.prepare(folder)
        process = subprocess.Popen(server.command, stdout=subprocess.DEVNULL)
        try:
            answers, deadline = probe.redis_check(server.url), time.monotonic() + _READY_SECONDS
            while not answers():
                assert time.monotonic() < deadline, "the embedded Valkey does not respond"
                time.sleep(0.02)
            app = create_app(
                Settings(
                    secret_key="0123456789abcdefghijklmnopqrstuvwxyzABCDEF",
                    database_url=f"sqlite:///{folder / 'bench.db'}",
                    redis_url=server.url,
                    data_dir=folder,
                    vault_keys=(Fernet.generate_key().decode(),),
                )
            )
            with app.app_context():
                db.create_all()
                yield Service(kind, settings, fields)
                db.session.remove()
                db.engine.dispose()
                redis_client().close()
        finally:
            process.kill()
            process.wait()
