"""The program of tests/chaos/nursery.py, whose pushes go to an OData service: TARGET is its root, HTTP further
settings as JSON."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.chaos import nursery

from flask import current_app  # isort: skip - the nursery sets the limits before anything reads them

from tests.jobs.pushing import Parents, rows
from webapp import storage
from webapp.connectors.base import OpenConnection
from webapp.connectors.odata.connector import OdataConnector
from webapp.extensions import read_session
from webapp.net.gate import Gate
from webapp.pushes.models import Push
from webapp.pushes.services import planning
from webapp.pushes.services.ledger import read
from webapp.pushes.services.planning import PushJob
from webapp.pushes.services.rows import TableRows


def order(push_id: str) -> PushJob:
    """Rows by their number into the entity set of the push."""
    with read_session() as session:
        push = session.get_one(Push, push_id)
        first = read.original_push(session, push)
    result = [
        TableRows(place, spec, Parents(rows(spec["count"]), {})) for place, spec in enumerate(push.tables)
    ]
    app: Any = current_app._get_current_object()
    spool = planning.KeySpool(storage.get_storage(app), planning.keys_folder(first.workspace_id, first.id))
    return PushJob(push, result, opened, OdataConnector.can, spool)


def opened() -> OpenConnection:
    """The service of the environment."""
    value = {"service_url": os.environ["TARGET"], **json.loads(os.environ.get("HTTP", "{}"))}
    return OdataConnector(OdataConnector.Settings.model_validate(value), Gate(["127.0.0.0/8"])).open()


if __name__ == "__main__":
    nursery.order = order
    nursery.main()
