"""A program that runs pushes, each in a forked process, as a worker does: for tests that kill processes.

It reads the id of a push from each line of its input and answers with the pid of the process that does it. TARGET is
the address of the target, HTTP the settings of an HTTP target, as JSON; LEASE_SECONDS, CHUNK_ROWS and FIRST_ROWS
replace the limits with these names. With the argument `worker` it is a real worker, which waits for jobs.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from webapp import limits

for name, limit in (
    ("LEASE_SECONDS", "LEASE_SECONDS"),
    ("LEASE_RENEWAL_SECONDS", "LEASE_RENEWAL_SECONDS"),
    ("CHUNK_ROWS", "PUSH_CHUNK_ROWS"),
    ("FIRST_ROWS", "PUSH_FIRST_ROWS"),
):
    if name in os.environ:
        given = float(os.environ[name])
        setattr(limits, limit, int(given) if given == int(given) else given)

from flask import current_app

from jobs.process import create_application, exit_with_parent
from tests.jobs.pushing import Parents, connect, rows
from webapp import storage
from webapp.connectors.base import Capabilities, OpenConnection
from webapp.connectors.rest.connector import RestConnector
from webapp.extensions import after_fork, read_session
from webapp.net.gate import Gate
from webapp.pushes.models import Push
from webapp.pushes.services import planning
from webapp.pushes.services.ledger import read
from webapp.pushes.services.planning import PushJob
from webapp.pushes.services.rows import TableRows


def order(push_id: str) -> PushJob:
    """Rows by their number into the target of the environment."""
    with read_session() as session:
        push = session.get_one(Push, push_id)
        first = read.original_push(session, push)
    result = [
        TableRows(
            place, spec, Parents(rows(spec["count"]).select([c["column"] for c in spec["columns"]]), {})
        )
        for place, spec in enumerate(push.tables)
    ]
    app: Any = current_app._get_current_object()
    spool = planning.KeySpool(storage.get_storage(app), planning.keys_folder(first.workspace_id, first.id))
    can = RestConnector.can if _over_http() else Capabilities()
    return PushJob(push, result, opened, can, spool)


def _over_http() -> bool:
    return os.environ["TARGET"].startswith("http")


def opened() -> OpenConnection:
    """The target of the environment."""
    if not _over_http():
        return connect(os.environ["TARGET"])
    value = {"base_url": os.environ["TARGET"], **json.loads(os.environ.get("HTTP", "{}"))}
    return RestConnector(RestConnector.Settings.model_validate(value), Gate(["127.0.0.0/8"])).open()


def main() -> None:
    """Do what comes."""
    app = create_application()
    planning.load_push_job = order
    if sys.argv[1:] == ["worker"]:
        from jobs import worker

        worker.main()
        return
    from jobs.pushes import push as job

    print("ready", flush=True)
    for line in sys.stdin:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            print(pid, flush=True)
            os.waitpid(pid, 0)
            print("over", flush=True)
            continue
        exit_with_parent(parent)
        after_fork(app)
        try:
            with app.app_context():
                job.run(line.strip())
        finally:
            os._exit(0)


if __name__ == "__main__":
    main()
