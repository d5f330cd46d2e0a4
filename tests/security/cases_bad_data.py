"""Who may read answer keys, and what became of bad rows."""

from __future__ import annotations

from typing import Any

from flask import Flask

from tests.cast import Cast
from tests.security.matrix import Case
from webapp.access import actors
from webapp.connections.services import connections
from webapp.engine import ENGINE
from webapp.exports import services as exports
from webapp.extensions import db
from webapp.pushes.models import Push
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services import compilation, templates

FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "n", "type": "number", "invalid": {"rate": 0.5, "kinds": ["missing"]}},
]


def prepare(app: Flask, cast: Cast) -> dict[str, Any]:
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    template = templates.create(acme, name="Bad", fields=FIELDS)["id"]
    export = exports.create(acme, template, GenerateInput(count=2)).id
    stored = {"type": "sqlite", "settings": {"file": "bad.db"}, "verifies": False}
    target = connections.create(acme, name="Bad target", **stored).id
    push = _push(cast, template, target)
    return {"bad_template": template, "bad_export": export, "bad_push": push}


def _push(cast: Cast, template: str, target: str) -> str:
    columns = [{"column": "id", "field": "id"}, {"column": "n", "field": "n"}]
    table = {
        "name": "Bad", "template_id": template, "version": 1, "target": "bad", "count": 3, "offset": 0,
        "mode": "insert", "key_columns": ["id"], "columns": columns, "capture": [], "from_parent": {}, "later": [],
        "create": False, "recipe": 0, "bad": True,
    }  # fmt: skip
    pins = {
        "seed": "s", "now": "2026-11-21T00:00:00Z", "vocabulary": compilation.vocabulary().id, "template_id": template,
        "version": 1, "locale": None, "engine": ENGINE, "related": {},
    }  # fmt: skip
    result = Push(
        workspace_id=cast.acme, project_id=cast.main, team_id=cast.blue, connection_id=target, template_id=template,
        template_version=1, target="bad", total=3, tables=[table], pins=pins, request={"ask": {}}, status="completed",
    )  # fmt: skip
    db.session.add(result)
    db.session.commit()
    found = result.id
    db.session.remove()
    return found


CASES = [
    Case("GET", "/exports/<export_id>/answers", "viewer", url="/exports/{bad_export}/answers", scope="read"),
    Case(
        "POST",
        "/templates/<template_id>/answers",
        "editor",
        url="/templates/{bad_template}/answers",
        body={"count": 2, "seed": "s"},
        scope="generate",
    ),
    Case("GET", "/pushes/<push_id>/bad", "viewer", url="/pushes/{bad_push}/bad", scope="read"),
]
