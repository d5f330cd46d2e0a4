"""Who may make templates from files, and bring them up to date."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp import clock
from webapp.access import actors
from webapp.extensions import write_session
from webapp.imports.models import ImportJob
from webapp.row_templates.services import templates


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    fields = [{"name": "id", "type": "row_number"}]
    return {
        "imported": templates.create(acme, name="Imported", fields=fields)["id"],
        **{name: _job(cast) for name in ("followed", "cancelled")},
    }


def _job(cast: Cast) -> str:
    with write_session() as session:
        job = ImportJob(
            request={"name": "", "save": True}, document_key="imports/none", created_by=cast.edith.user_id,
            workspace_id=cast.acme, team_id=cast.blue, project_id=cast.main, created_at=clock.now(),
        )  # fmt: skip
        session.add(job)
        session.flush()
        return job.id


ROWS = {"content": "id,email\n1,a@example.org\n", "format": "csv"}
ONE = "/templates/{imported}/import"

CASES = [
    Case("GET", "/import", "editor", person=True),
    Case("GET", "/import/sample", "viewer", url="/import/sample?types[0]=city", person=True),
    Case("POST", "/import", "editor", body=ROWS, ok=201, scope="write"),
    Case("GET", "/imports/<import_id>", "editor", url="/imports/{followed}", scope="write"),
    Case("DELETE", "/imports/<import_id>", "editor", url="/imports/{cancelled}", scope="write"),
    Case("GET", "/templates/<template_id>/import", "editor", url=ONE, person=True),
    Case("POST", "/templates/<template_id>/import", "editor", url=ONE, body=ROWS, scope="write"),
]
