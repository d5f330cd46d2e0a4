"""Who may look after the service: metrics, the status page, work taken from a worker."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.access import actors
from webapp.exports import services as exports
from webapp.exports.models import Export
from webapp.extensions import db, write_session
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services import templates


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    created = templates.create(acme, name="Held", fields=[{"name": "id", "type": "row_number"}])
    stored = exports.create(acme, created["id"], GenerateInput(count=1)).id
    db.session.remove()
    with write_session() as session:
        export = session.get_one(Export, stored)
        export.status, export.epoch, export.attempt = "running", 3, 1
    return {"held_export": stored}


CASES = [
    Case("GET", "/metrics", "public", ok=404),  # nothing is counted unless the operator says so
    Case("GET", "/status", "anyone", person=True),
    Case(
        "POST",
        "/status/leases/<work_id>/release",
        "admin",
        url="/status/leases/{held_export}/release",
        body={"epoch": "3"},
        ok=303,
        person=True,
    ),
]
