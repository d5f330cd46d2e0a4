"""Who may do what with pushes."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp import clock
from webapp.access import actors
from webapp.connections.services import connections
from webapp.datasets.services import datasets
from webapp.engine import ENGINE
from webapp.extensions import db
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.row_templates.services import templates

FIELDS = [{"name": "id", "type": "row_number"}, {"name": "n", "type": "number"}]


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    template = templates.create(acme, name="Pushed", fields=FIELDS)["id"]
    dataset = datasets.create(acme, name="Pushed", templates=[{"template_id": template, "count": 2}])["id"]
    stored = {"type": "sqlite", "settings": {"file": "pushes.db"}, "verifies": False}
    target = connections.create(acme, name="Target", **stored).id
    queued, ended = (_push(cast, template, target, status).id for status in ("queued", "completed"))
    db.session.add(PushRange(push_id=ended, table=0, first=1, last=3))
    db.session.add(PushRow(push_id=ended, row=2, state="failed", code="unique", message="no"))
    db.session.add(PushLine(push_id=ended, number=1, at=clock.now(), text="completed"))
    db.session.commit()
    db.session.remove()
    return {
        "push_template": template,
        "push_dataset": dataset,
        "push_target": target,
        "queued_push": queued,
        "ended_push": ended,
    }


def _push(cast: Cast, template: str, target: str, status: str) -> Push:
    table = {
        "name": "Pushed", "template_id": template, "version": 1, "target": "pushed", "count": 3, "offset": 0,
        "mode": "insert", "key_columns": ["id"], "columns": [{"column": "id", "field": "id"}], "capture": [],
        "from_parent": {}, "later": [], "create": False, "recipe": 0,
    }  # fmt: skip
    pins = {
        "seed": "s", "now": "2026-11-21T00:00:00Z", "vocabulary": "", "template_id": template, "version": 1,
        "locale": None, "engine": ENGINE, "related": {},
    }  # fmt: skip
    done = {"delivered": 2, "failed": 1} if status == "completed" else {}
    result = Push(
        workspace_id=cast.acme,
        project_id=cast.main,
        team_id=cast.blue,
        connection_id=target,
        template_id=template,
        template_version=1,
        target="pushed",
        total=3,
        tables=[table],
        request={"ask": {}},
        pins=pins,
        status=status,
        **done,
    )
    db.session.add(result)
    db.session.flush()
    return result


HOW = {"connection_id": "{push_target}", "create_table": True}
TEMPLATE, DATASET = "/templates/{push_template}/push", "/datasets/{push_dataset}/push"
ENDED, QUEUED = "/pushes/{ended_push}", "/pushes/{queued_push}"
ROWS = {"table": "rows", "rows": [{"a": 1}], "dry_run": True, **HOW}  # a dry run waits for no worker

CASES = [
    Case("POST", "/templates/<template_id>/push", "editor", url=TEMPLATE, body=HOW, ok=201, scope="push"),
    Case(
        "POST", "/templates/<template_id>/push/plan", "editor", url=f"{TEMPLATE}/plan", body=HOW, scope="push"
    ),
    Case("POST", "/datasets/<dataset_id>/push", "editor", url=DATASET, body=HOW, ok=201, scope="push"),
    Case("POST", "/datasets/<dataset_id>/push/plan", "editor", url=f"{DATASET}/plan", body=HOW, scope="push"),
    Case("POST", "/export/db", "editor", body=ROWS, scope="push"),
    Case("GET", "/pushes", "viewer", scope="read"),
    Case("GET", "/pushes/<push_id>", "viewer", url=ENDED, scope="read"),
    Case("GET", "/pushes/<push_id>/rows", "viewer", url=f"{ENDED}/rows?state=failed", scope="read"),
    Case("GET", "/pushes/<push_id>/logs", "viewer", url=f"{ENDED}/logs", scope="read"),
    Case("GET", "/pushes/<push_id>/events", "viewer", url=f"{ENDED}/events", scope="read"),
    Case("DELETE", "/pushes/<push_id>", "editor", url=QUEUED, scope="push"),
    Case("POST", "/pushes/<push_id>/retry", "editor", url=f"{ENDED}/retry", body={}, ok=201, scope="push"),
    Case("POST", "/pushes/<push_id>/undo", "editor", url=f"{ENDED}/undo", body={}, ok=201, scope="push"),
]
